"""What is read of a caller's trace context: W3C Trace Context Level 2, and nothing that is not well formed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.contract.trace_context import (
    MAX_STATE_CHARS,
    MAX_STATE_MEMBERS,
    TraceParent,
    read_traceparent,
    read_tracestate,
)

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"

WELL_FORMED = {
    "sampled": (f"00-{TRACE}-{SPAN}-01", 1),
    "not sampled": (f"00-{TRACE}-{SPAN}-00", 0),
    "random": (f"00-{TRACE}-{SPAN}-03", 3),
    "unknown flags are not kept": (f"00-{TRACE}-{SPAN}-fd", 1),
    "a later version": (f"01-{TRACE}-{SPAN}-01", 1),
    "a later version that says more": (f"cc-{TRACE}-{SPAN}-01-what.the=future", 1),
    "a later version with an empty rest": (f"fe-{TRACE}-{SPAN}-00-", 0),
}
NOT_WELL_FORMED = {
    "empty": "",
    "version ff": f"ff-{TRACE}-{SPAN}-01",
    "version 00 with more": f"00-{TRACE}-{SPAN}-01-x",
    "a later version with more, not divided": f"01-{TRACE}-{SPAN}-01x",
    "capital digits": f"00-{TRACE.upper()}-{SPAN}-01",
    "a trace id of 0": f"00-{'0' * 32}-{SPAN}-01",
    "a parent id of 0": f"00-{TRACE}-{'0' * 16}-01",
    "a short trace id": f"00-{TRACE[1:]}-{SPAN}-01",
    "a long parent id": f"00-{TRACE}-{SPAN}0-01",
    "no flags": f"00-{TRACE}-{SPAN}",
    "flags of one digit": f"00-{TRACE}-{SPAN}-1",
    "flags that are no number": f"00-{TRACE}-{SPAN}-0g",
    "digits of another script": f"00-{TRACE}-{SPAN}-0\u0661",
    "a version of one digit": f"0-{TRACE}-{SPAN}-01",
    "other dividers": f"00_{TRACE}_{SPAN}_01",
    "two headers, joined": f"00-{TRACE}-{SPAN}-01, 00-{TRACE}-{SPAN}-01",
    "two headers of a later version": f"01-{TRACE}-{SPAN}-01-a, 01-{TRACE}-{SPAN}-01",
    "a line break at the end": f"00-{TRACE}-{SPAN}-01\n",
    "quotes": f'"00-{TRACE}-{SPAN}-01"',
}
STATES = {
    "one member": ("congo=t61rcWkgMzE", "congo=t61rcWkgMzE"),
    "several members keep their order": ("rojo=00f067aa0ba902b7,congo=t6", "rojo=00f067aa0ba902b7,congo=t6"),
    "blanks around members": (" a=1 ,\tb=2\t", "a=1,b=2"),
    "empty members": ("a=1,, ,b=2,", "a=1,b=2"),
    "a tenant": ("tenant@vendor=x", "tenant@vendor=x"),
    "a key that begins with a digit": ("0a=1", "0a=1"),
    "a blank inside a value": ("a=b c", "a=b c"),
    "a blank before a value": ("a= b", "a= b"),
    "as many members as there may be": (",".join(f"k{i}=v" for i in range(32)), ",".join(f"k{i}=v" for i in range(32))),
    "one member too many": (",".join(f"k{i}=v" for i in range(33)), ""),
    "a key twice": ("a=1,b=2,a=3", ""),
    "no value": ("a=", ""),
    "no key": ("=1", ""),
    "no sign of equality": ("a", ""),
    "two signs of equality": ("a=b=c", ""),
    "a capital in a key": ("A=1", ""),
    "a key that begins with a sign": ("_a=1", ""),
    "a character beyond ASCII": ("a=\u00e9", ""),
    "a control character": ("a=b\x07", ""),
    "the longest key": (f"{'k' * 256}=v", f"{'k' * 256}=v"),
    "a key that is too long": (f"{'k' * 257}=v", ""),
    "the longest value": (f"a={'v' * 256}", f"a={'v' * 256}"),
    "a value that is too long": (f"a={'v' * 257}", ""),
    "nothing": ("", ""),
    "long members go first": (f"a={'x' * 200},b=1,c={'y' * 200},d={'z' * 200}", f"b=1,c={'y' * 200},d={'z' * 200}"),
}


@pytest.mark.parametrize(("text", "flags"), WELL_FORMED.values(), ids=WELL_FORMED)
def test_a_well_formed_traceparent_is_read(text: str, flags: int) -> None:
    assert read_traceparent(text) == TraceParent(TRACE, SPAN, flags)


@pytest.mark.parametrize("text", NOT_WELL_FORMED.values(), ids=NOT_WELL_FORMED)
def test_what_is_not_well_formed_is_not_read(text: str) -> None:
    assert read_traceparent(text) is None


def test_what_is_passed_on_is_of_version_00_with_known_flags() -> None:
    assert TraceParent(TRACE, SPAN, 0xFF).text == f"00-{TRACE}-{SPAN}-03"
    assert read_traceparent(None) is None


@pytest.mark.parametrize(("text", "kept"), STATES.values(), ids=STATES)
def test_a_tracestate_goes_on_as_it_is_or_not_at_all(text: str, kept: str) -> None:
    assert read_tracestate(text) == kept


def test_a_tracestate_that_is_too_long_loses_its_last_members() -> None:
    members = [f"k{i}={'v' * 60}" for i in range(20)]
    kept = read_tracestate(",".join(members))
    assert len(kept) <= MAX_STATE_CHARS
    assert kept.split(",") == members[: kept.count(",") + 1]
    assert len(kept) + len(members[-1]) + 1 > MAX_STATE_CHARS


@given(st.one_of(st.text(), st.text("0123456789abcdef-, =kv\t", max_size=700)))
def test_no_text_at_all_breaks_the_reading(text: str) -> None:
    parent, state = read_traceparent(text), read_tracestate(text)
    assert parent is None or read_traceparent(parent.text) == parent
    assert len(state) <= MAX_STATE_CHARS
    assert state.count(",") < MAX_STATE_MEMBERS
    assert read_tracestate(state) == state
    assert all(0x20 <= ord(character) <= 0x7E for character in state)
