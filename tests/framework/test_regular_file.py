from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from framework.regular_file import TooLargeError, read_regular_file


def test_a_file_up_to_the_limit_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert read_regular_file(tmp_path / "file", 5) == b"12345"


def test_a_larger_file_is_refused_by_its_size_alone(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as stream:
        stream.truncate(2 * 1024**3)
    with pytest.raises(TooLargeError, match="2,147,483,648 bytes, more than the 1,000 that are read"):
        read_regular_file(path, 1000)


def test_a_pipe_is_refused_and_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is a pipe, not a file"):
        read_regular_file(tmp_path / "pipe", 10)


def test_a_device_a_socket_and_a_folder_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="it is a device, not a file"):
        read_regular_file(Path("/dev/zero"), 10)
    with pytest.raises(IsADirectoryError, match="it is a folder, not a file"):
        read_regular_file(tmp_path, 10)
    monkeypatch.chdir(tmp_path)  # a socket's whole name must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        with pytest.raises(OSError, match="it is a socket, not a file"):
            read_regular_file(tmp_path / "socket", 10)


def test_what_is_not_there_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_regular_file(tmp_path / "none", 10)
    with pytest.raises(ValueError, match="null"):
        read_regular_file(tmp_path / "a\0b", 10)
    with pytest.raises(OSError, match="too long"):
        read_regular_file(tmp_path / ("a" * 5000), 10)
