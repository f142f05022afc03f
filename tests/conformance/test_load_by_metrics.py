"""What servers say of their load is read in their own formats, and a verdict on it is only what it proves."""

from dataclasses import replace

import pytest

from harness.exchanges import exchanged, http
from tidegate.conformance.checks.load import (
    ends_with_its_client,
    has_quickened,
    is_back_to,
    is_no_slower_than_beside,
    rests,
    work_is_still_due,
)
from tidegate.conformance.verdict import CannotTell
from tidegate.conformance.wire.exchange import Ending, Exchange, Piece
from tidegate.conformance.wire.metric_formats import MAX_PAGE_CHARS, read_load, read_samples

PAGES = {
    "Tidegate": 'tidegate_requests_running 2\ntidegate_kv_blocks{state="used"} 7\ntidegate_kv_blocks{state="free"} 9\n',
    "vLLM": 'vllm:num_requests_running{engine="0",model_name="m"} 1.0\nvllm:num_requests_running{engine="1"} 1.0\n',
    "SGLang": 'sglang:num_running_reqs{model_name="a \\" b"} 2.0\nsglang:num_queue_reqs{model_name="m"} 3.0\n',
    "llama-server": "llamacpp:requests_processing 2\nllamacpp:requests_deferred 0\n",
}


@pytest.mark.parametrize("server", PAGES)
def test_running_requests_are_read_in_each_format(server: str) -> None:
    load = read_load(f"# HELP x y\n# TYPE x gauge\n{PAGES[server]}")
    assert load is not None
    assert (load.server, load.running) == (server, 2)


def test_other_pages_have_no_load() -> None:
    assert read_load("<html>no metrics</html>") is None
    assert read_load("go_goroutines 7\nx{a=") is None
    assert read_samples("x NaNa\ny 1 1700000000\n")[0].name == "y"


def test_a_page_of_metrics_that_is_too_long_is_not_read() -> None:
    page = PAGES["vLLM"] + "#" * (MAX_PAGE_CHARS - len(PAGES["vLLM"]))
    assert read_load(page) is not None
    assert read_load(page + "#") is None


LABELS = {"one long word": "a" * 1_000_000, "names without values": "a=" * 500_000, "open quotes": 'a="\\"' * 200_000}


@pytest.mark.parametrize("name", LABELS)
def test_labels_are_read_in_the_time_that_their_length_takes(name: str) -> None:
    assert [sample.value for sample in read_samples(f"x{{{LABELS[name]}}} 2\n")] == [2.0]


def test_only_used_blocks_are_counted_as_used() -> None:
    load = read_load(PAGES["Tidegate"])
    assert load is not None
    assert load.used == 7


def _page(text: str) -> Exchange:
    return exchanged(http(200, text.encode(), "text/plain"), method="GET")


def _took(seconds: float) -> Exchange:
    return exchanged(http(200, b"{}"), duration_s=seconds)


def test_more_running_than_before_is_a_fault_except_where_gauges_may_be_stale() -> None:
    faults = list(is_back_to(_page("vllm:num_requests_running 0\n"), _page("vllm:num_requests_running 3\n")))
    assert "3 running and waiting requests, 0 before" in faults[0].says
    with pytest.raises(CannotTell, match="SGLang"):
        list(is_back_to(_page("sglang:num_running_reqs 0\n"), _page("sglang:num_running_reqs 3\n")))


def _look(num_running: int, at_s: float, num_waiting: int = 0) -> Exchange:
    text = f"vllm:num_requests_running {num_running}\nvllm:num_requests_waiting {num_waiting}\n"
    return replace(_page(text), sent_at_s=at_s)


def _left(at_s: float, for_s: float, ending: Ending = Ending.LEFT) -> Exchange:
    return exchanged(http(200, b""), ending=ending, sent_at_s=at_s, duration_s=for_s)


STANDS_STILL = _left(0.0, 7.0)
BEGINS_LATE = replace(STANDS_STILL, pieces=tuple(Piece(float(second), b"x") for second in range(1, 7)))
STAYS = replace(STANDS_STILL, pieces=(*STANDS_STILL.pieces, *(Piece(float(second), b"x") for second in range(1, 7))))
LEAVES = _left(1.0, 1.5)
LEFT_BEHIND: dict[str, tuple[list[Exchange], str]] = {
    "it ends": ([_look(0, 0), _look(1, 0.4), STAYS, LEAVES, _look(1, 3.7)], ""),
    "it runs on": ([_look(0, 0), _look(1, 0.4), STAYS, LEAVES, _look(2, 3.7)], "fault"),
    "the one that stays was still waiting": ([_look(0, 0), _look(0, 0.4, 1), STAYS, LEAVES, _look(1, 3.7)], ""),
    "it runs on, and the other one was still waiting": (
        [_look(0, 0), _look(0, 0.4, 1), STAYS, LEAVES, _look(2, 3.7)],
        "fault",
    ),
    "the one that stays had not begun": (
        [_look(0, 0), _look(1, 0.4), BEGINS_LATE, LEAVES, _look(2, 3.7)],
        "had not begun",
    ),
    "it waits on": ([_look(0, 0), _look(1, 0.4), STAYS, LEAVES, _look(1, 3.7, 1)], "fault"),
    "a step takes as long as all looks": (
        [_look(0, 0), _look(1, 0.4), STANDS_STILL, LEAVES, _look(2, 3.7)],
        "stood still for the 1.2 s",
    ),
    "the model ended one like it": (
        [_look(0, 0), _look(1, 0.4), _left(0.0, 2.0, Ending.WHOLE), LEAVES, _look(0, 2.7)],
        "ended by itself",
    ),
    "it was answered": (
        [_look(0, 0), _look(1, 0.4), STAYS, _left(1.0, 0.2, Ending.WHOLE), _look(1, 2.7)],
        "that was left",
    ),
    "no look shows it": ([_look(0, 0), _look(0, 0.4), STAYS, LEAVES, _look(0, 2.7)], "did not show"),
    "all had left": ([_look(0, 0), _look(1, 0.4), STAYS, LEAVES, _look(0, 7.5)], "was kept"),
    "metrics come late": (
        [_look(0, 0), _look(1, 0.4), STAYS, LEAVES, replace(_look(2, 2.7), duration_s=9.0)],
        "too late to tell anything",
    ),
}


@pytest.mark.parametrize("name", LEFT_BEHIND)
def test_work_counts_as_ended_only_while_work_like_it_goes_on(name: str) -> None:
    exchanges, expected = LEFT_BEHIND[name]
    if expected in ("", "fault"):
        assert bool(list(ends_with_its_client(*exchanges))) == (expected == "fault")
    else:
        with pytest.raises(CannotTell, match=expected):
            list(ends_with_its_client(*exchanges))


def test_time_tells_nothing_of_a_load_that_may_have_ended_by_itself() -> None:
    load, last = _left(1.0, 2.5), _left(4.0, 0.5)
    assert list(work_is_still_due(_left(0.0, 8.0), last, load)) == []
    with pytest.raises(CannotTell, match=r"ends by itself after 3\.0 s"):
        list(work_is_still_due(_left(0.0, 3.0, Ending.WHOLE), last, load))


def test_a_server_that_does_not_come_to_rest_is_not_judged() -> None:
    assert list(rests(_look(0, 0.0))) == []
    with pytest.raises(CannotTell, match="never came to rest"):
        list(rests(_look(3, 0.0)))


def test_memory_counts_only_where_it_is_promised() -> None:
    before, after = (_page(f'tidegate_requests_running 0\ntidegate_kv_blocks{{state="used"}} {n}\n') for n in (0, 5))
    assert list(is_back_to(before, after)) == []
    assert len(list(is_back_to(before, after, with_memory=True))) == 1


@pytest.mark.parametrize(
    ("alone", "beside", "after", "outcome"),
    [
        (0.1, 1.0, (0.1, 0.12, 3.0), "free"),
        (0.1, 1.0, (1.0, 0.95, 0.1), "taken"),
        (0.1, 1.0, (0.7, 0.7, 0.7), "between free and taken"),
        (0.1, 0.15, (0.15, 0.15, 0.15), "does not show"),
    ],
)
def test_time_tells_of_load_only_where_it_is_plain(
    alone: float, beside: float, after: tuple[float, float, float], outcome: str
) -> None:
    exchanges = [_took(seconds) for seconds in (alone, beside, *after)]
    if outcome in ("free", "taken"):
        assert bool(list(has_quickened(*exchanges))) == (outcome == "taken")
    else:
        with pytest.raises(CannotTell, match=outcome):
            list(has_quickened(*exchanges))


WAITS: dict[str, tuple[float, float, float, bool]] = {
    "quick": (0.05, 0.05, 0.06, True),
    "it waits its turn, as beside the control": (0.05, 2.4, 4.6, True),
    "it waits far longer than beside the control": (0.05, 0.1, 3.5, False),
    "a slow machine": (0.4, 0.1, 5.9, True),
}


@pytest.mark.parametrize("name", WAITS)
def test_a_request_is_held_up_only_where_it_waits_longer_than_for_its_turn(name: str) -> None:
    quiet, control, beside, holds = WAITS[name]
    faults = list(is_no_slower_than_beside(_took(quiet), _took(control), _took(beside), spare_s=2.0, times=2.0))
    assert (faults == []) == holds


def test_no_answer_beside_others_is_a_fault_and_no_control_no_verdict() -> None:
    nothing = exchanged(ending=Ending.TIMED_OUT)
    assert list(is_no_slower_than_beside(_took(0.1), _took(0.1), nothing, spare_s=2.0, times=2.0)) != []
    with pytest.raises(CannotTell, match="the control"):
        list(is_no_slower_than_beside(_took(0.1), nothing, _took(9.0), spare_s=2.0, times=2.0))
