"""Bytes of event streams."""

import pytest

from tidegate.http.sse import COMMENT, PING, data_frame


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        (b'{"a":1}', b'data: {"a":1}\n\n'),
        ('{"a":"\u2028\u2029\u0085é"}'.encode(), 'data: {"a":"\\u2028\\u2029\\u0085é"}\n\n'.encode()),
    ],
)
def test_a_frame_is_one_data_line_without_hidden_line_breaks(line: bytes, frame: bytes) -> None:  # SSE-2
    assert data_frame(line) == frame


@pytest.mark.parametrize("comment", [PING, COMMENT])
def test_a_comment_is_one_line_and_dispatches_nothing(comment: bytes) -> None:  # SSE-6
    assert comment.startswith(b":")
    assert comment.endswith(b"\n")
    assert comment.count(b"\n") == 1
