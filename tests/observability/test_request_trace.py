"""Whose trace a request belongs to, what is recorded of it, and what the next hop is told."""

import itertools
from collections.abc import Callable

import pytest

from tidegate.contract.trace_context import read_traceparent
from tidegate.observability.request_trace import TracePolicy, begin_trace, child_span_id, is_in_ratio

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED, UNSAMPLED = f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-00"
OFF, ALL, NONE = TracePolicy(), TracePolicy(records=True), TracePolicy(records=True, ratio=0.0)


def counting() -> Callable[[int], bytes]:
    numbers = itertools.count(1)
    return lambda num_bytes: next(numbers).to_bytes(num_bytes)


def test_a_new_trace_begins_where_the_caller_has_none_or_one_that_is_not_well_formed() -> None:
    for given in (None, "", "00-x", f"00-{'0' * 32}-{SPAN}-01"):
        trace = begin_trace(given, "a=1", ALL, counting())
        assert trace.trace_id == "1".zfill(32)
        assert trace.span_id == "2".zfill(16)
        assert trace.parent_id is None
        assert trace.state == ""  # of a trace that is not continued
        assert trace.is_recorded


def test_a_recorded_request_continues_the_callers_trace_and_is_the_parent_of_what_follows() -> None:
    trace = begin_trace(SAMPLED, "a=1", ALL, counting())
    assert (trace.trace_id, trace.parent_id, trace.is_recorded) == (TRACE, SPAN, True)
    hop = trace.hop("mine")
    parent = read_traceparent(hop.traceparent)
    assert parent is not None
    assert (parent.trace_id, parent.parent_id) == (TRACE, child_span_id(trace.span_id, "work"))
    assert parent.is_sampled
    assert (hop.tracestate, hop.client_id) == ("a=1", "mine")


@pytest.mark.parametrize("policy", [OFF, ALL, NONE], ids=["nothing is exported", "all", "none"])
@pytest.mark.parametrize("given", [SAMPLED, UNSAMPLED], ids=["sampled", "unsampled"])
def test_what_is_not_recorded_goes_on_unchanged(policy: TracePolicy, given: str) -> None:
    trace = begin_trace(given, "a=1", policy, counting())
    if trace.is_recorded:
        assert (policy.records, given) == (True, SAMPLED)
        return
    assert (trace.trace_id, trace.span_id, trace.parent_id) == (TRACE, SPAN, None)
    assert (trace.hop("").traceparent, trace.hop("").tracestate) == (given, "a=1")


def test_a_trace_that_begins_where_nothing_is_exported_is_named_in_logs_and_not_told_to_engines() -> None:
    trace = begin_trace(None, None, OFF, counting())
    assert trace.trace_id
    assert trace.span_id
    assert trace.hop("mine").traceparent == ""
    assert trace.hop("mine").client_id == "mine"


def test_a_trace_that_the_ratio_leaves_out_is_told_as_not_sampled() -> None:
    trace = begin_trace(None, None, NONE, counting())
    parent = read_traceparent(trace.hop("").traceparent)
    assert not trace.is_recorded
    assert parent is not None
    assert not parent.is_sampled


def test_the_callers_flag_decides_only_where_it_is_followed() -> None:
    deaf = TracePolicy(records=True, ratio=0.0, follows_caller=False)
    assert not begin_trace(SAMPLED, None, deaf, counting()).is_recorded
    eager = TracePolicy(records=True, ratio=1.0, follows_caller=False)
    trace = begin_trace(UNSAMPLED, None, eager, counting())
    assert trace.is_recorded
    assert trace.hop("").traceparent.endswith("-01")


def test_the_ratio_decides_by_the_trace_id_alone() -> None:
    low, high = "f" * 16 + "0" * 16, "0" * 16 + "f" * 16
    assert [is_in_ratio(low, ratio) for ratio in (0.0, 0.01, 1.0)] == [False, True, True]
    assert [is_in_ratio(high, ratio) for ratio in (0.0, 0.99, 1.0)] == [False, False, True]


def test_no_id_is_ever_0() -> None:
    trace = begin_trace(None, None, ALL, bytes)
    assert trace.trace_id.strip("0")
    assert trace.span_id.strip("0")


def test_children_of_one_span_have_ids_of_their_own() -> None:
    names = ["work", "queue", "prefill", "decode", "write"]
    ids = {child_span_id(SPAN, name) for name in names} | {child_span_id(SPAN[::-1], name) for name in names}
    assert len(ids) == 2 * len(names)
    assert all(len(one) == len(SPAN) for one in ids)
