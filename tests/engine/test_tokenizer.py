from __future__ import annotations

from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models

from engine.request import Request, RequestState, Sample, SamplingParams
from engine.tokenizer import Tokenizer

MODEL = Path(__file__).parents[2] / "fixtures" / "models" / "storyteller-llama-1m"
TOKENIZER = Tokenizer(MODEL)
INCOMPLETE = "\N{REPLACEMENT CHARACTER}"
# The first ids are single bytes, most of which are no character alone.
TOKENS = st.lists(st.one_of(st.integers(0, 300), st.integers(0, 2047)), max_size=80)


def test_pieces_add_up_to_the_text() -> None:
    text = "Zoë met Łukasz; 日本語 🦉👩‍🚀 and a note.\n\tEnd"
    stream = TOKENIZER.stream()
    pieces = [stream.add(token_id) for token_id in TOKENIZER.encode(text)]
    assert "".join(pieces) == text
    assert "" in pieces, "a character of several tokens is given with its last one"


@given(TOKENS)
def test_pieces_of_any_tokens_add_up_to_their_text_but_for_an_incomplete_end(token_ids: list[int]) -> None:
    stream, text = TOKENIZER.stream(), ""
    for count, token_id in enumerate(token_ids, start=1):
        text += stream.add(token_id)
        assert text == TOKENIZER.decode(token_ids[:count]).rstrip(INCOMPLETE)


@pytest.fixture(scope="module")
def sentencepiece(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """A tokenizer of the other common kind: words with a mark for the space before them, and bytes as a fallback."""
    words = ["▁a", "▁the", "b", "▁", "▁cat", "s"]
    vocabulary = {f"<0x{byte:02X}>": byte for byte in range(256)} | {word: 256 + i for i, word in enumerate(words)}
    subject = tokenizers.Tokenizer(models.BPE(vocabulary, [], byte_fallback=True))
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    subject.decoder = decoders.Sequence(steps)
    folder = tmp_path_factory.mktemp("sentencepiece")
    subject.save(str(folder / "tokenizer.json"))
    return Tokenizer(folder)


def test_a_tokenizer_that_strips_the_first_space_gives_the_same_pieces(sentencepiece: Tokenizer) -> None:
    bytes_of_owl = list("🦉é".encode())
    token_ids = [257, 260, 261, 256, 258, *bytes_of_owl, 259, *bytes_of_owl * 8, 257, 260] * 4
    stream, text = sentencepiece.stream(), ""
    for count, token_id in enumerate(token_ids, start=1):
        text += stream.add(token_id)
        whole = sentencepiece.decode(token_ids[:count])
        # It shows a character again as incomplete while the one behind it is.
        assert whole.endswith(INCOMPLETE) or text == whole
    assert text.count("🦉é") == 4 * 9


def plain_stop(token_ids: list[int], stop_strings: tuple[str, ...]) -> tuple[int, int] | None:
    """Decode everything, then look: after how many tokens, and at which character."""
    for count in range(1, len(token_ids) + 1):
        text = TOKENIZER.decode(token_ids[:count]).rstrip(INCOMPLETE)
        places = [text.find(stop) for stop in stop_strings if stop in text]
        if places:
            return count, min(places)
    return None


@given(TOKENS, st.data())
def test_stop_strings_are_found_as_by_decoding_everything(token_ids: list[int], data: st.DataObject) -> None:
    text = TOKENIZER.decode(token_ids)
    starts = st.integers(0, max(len(text) - 1, 0))
    places = data.draw(st.lists(st.tuples(starts, st.integers(1, 12)), min_size=1, max_size=3))
    stop_strings = tuple(text[start : start + length] or "absent" for start, length in places)
    sampling = SamplingParams(max_new_tokens=100, stop_strings=stop_strings, ignore_eos=True)
    state = RequestState.start(Request("0", (1,), sampling), frozenset(), TOKENIZER.stream())
    for token_id in token_ids:
        state.promised += 1
        if state.accept(Sample(token_id, -1.0, 1.0)):
            output = state.output()
            assert (len(output.generated_token_ids), output.stop_string_at) == plain_stop(token_ids, stop_strings)
            return
    assert plain_stop(token_ids, stop_strings) is None


@pytest.mark.parametrize("stop", ["Ł", "🦉", "日本"])
def test_a_stop_string_of_several_bytes_is_found_across_tokens(stop: str) -> None:
    token_ids = TOKENIZER.encode(f"One {stop} two")
    assert len(TOKENIZER.encode(stop)) > 1, "no single token writes it"
    expected = plain_stop(token_ids, (stop,))
    assert expected is not None
    assert expected[1] == 4
