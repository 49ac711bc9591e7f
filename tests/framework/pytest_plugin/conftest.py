from __future__ import annotations

from pathlib import Path

import pytest

from tests.framework.toy_root import ToyRoot, make_toy_root


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    root = make_toy_root(tmp_path_factory.mktemp("recorded") / "root")
    root.write("default")
    root.write(
        "mode/legacy", engine="async_sched_mode: legacy", more="relations: [{kind: same_outputs_as, with: default}]"
    )
    root.regen()
    (root.path / "pytest.ini").write_text("[pytest]\n")
    return root


@pytest.fixture
def toy(recorded: ToyRoot, tmp_path: Path) -> ToyRoot:
    return recorded.copy(tmp_path / "root")
