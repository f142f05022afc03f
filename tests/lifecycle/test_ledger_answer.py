"""RecordedAnswer: what goes into a ledger comes out of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.lifecycle.recorded_answer import COMPRESS_ABOVE_BYTES, RecordedAnswer, pack, unpack

FRAME = b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}\n\n'


BODIES = st.binary(max_size=100) | st.integers(0, 600).map(lambda size: b"ab" * size)
LINES = st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9)), max_size=3)


@given(st.integers(200, 599), LINES, st.booleans(), BODIES)
def test_packing_loses_nothing(status: int, headers: list[tuple[str, str]], is_stream: bool, body: bytes) -> None:
    answer = RecordedAnswer(status, tuple(headers), is_stream, body)
    assert unpack(pack(answer)) == answer


def test_streams_shrink() -> None:
    answer = RecordedAnswer(200, (), is_stream=True, body=FRAME * 200)
    assert len(pack(answer)) < len(answer.body) / 10
    small = RecordedAnswer(200, (), is_stream=True, body=b"x" * COMPRESS_ABOVE_BYTES)
    assert small.body in pack(small)


@pytest.mark.parametrize(
    "stored",
    [
        b"",
        b"\xc1",
        pack(RecordedAnswer(200, (), is_stream=False, body=FRAME, format=2)),
        pack(RecordedAnswer(200, (), is_stream=False, body=FRAME * 9))[:-1],
        pack(RecordedAnswer(200, (), is_stream=False, body=b"not compressed", is_compressed=True)),
    ],
)
def test_what_this_version_did_not_write_is_refused(stored: bytes) -> None:
    with pytest.raises(ValueError, match="answer"):
        unpack(stored)
