"""Engines that several server processes share: one row of them all, and what each does on its owner's wish."""

from typing import Any, get_args

import msgspec
import pytest

from tidegate.cli.pooled_operator import add_rows
from tidegate.cli.reached_fleet import _follow
from tidegate.cli.worker_spec import EngineTie, Wish
from tidegate.serving.engine_rows import EngineRow

ROW = EngineRow(
    name="engine-1",
    model="model",
    state="ready",
    ready=True,
    condition=None,
    revision="r",
    epoch=1,
    process_id=7,
    restarts=0,
    rows=8,
    requests=0,
    sequences=0,
    outstanding_tokens=0,
    submitted=0,
    lost=0,
    moved=0,
    ejections=0,
    ejected_for_s=None,
    prompt_tokens=0,
    matched_tokens=0,
)
UNREACHED = "not every server process has reached it"


@pytest.mark.parametrize(
    ("own", "others", "ready", "condition"),
    [
        (True, (True, True), True, None),
        (True, (True, False), False, UNREACHED),
        (True, (False, True), False, UNREACHED),
        (False, (True, True), False, None),
        (True, (), True, None),
    ],
)
def test_an_engine_is_ready_when_it_is_so_for_every_process(
    own: bool, others: tuple[bool, ...], ready: bool, condition: str | None
) -> None:
    theirs = [[msgspec.structs.replace(ROW, ready=one, requests=2)] for one in others]
    (row,) = add_rows([msgspec.structs.replace(ROW, ready=own)], theirs)
    assert (row.ready, row.condition, row.requests) == (ready, condition, 2 * len(others))


def test_an_engine_that_has_just_left_is_no_row_and_its_own_words_stay() -> None:
    own = [msgspec.structs.replace(ROW, condition="ejected")]
    gone = msgspec.structs.replace(ROW, name="engine-9", requests=5)
    theirs = [[gone, msgspec.structs.replace(ROW, ready=False)]]
    (row,) = add_rows(own, theirs)
    assert (row.name, row.condition, row.requests) == ("engine-1", "ejected", 0)


class NotingPool:
    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []

    def drain(self, name: str) -> None:
        self.done.append(("drain", name))

    def retire(self, name: str) -> None:
        self.done.append(("retire", name))

    def restore(self, name: str) -> None:
        self.done.append(("restore", name))


ACTS = {"in": "restore", "draining": "drain", "retiring": "retire"}


@pytest.mark.parametrize("wish", get_args(Wish))
def test_every_wish_is_done(wish: Any) -> None:
    pool: Any = NotingPool()
    _follow(pool, EngineTie("engine-1", "model", wish=wish))
    assert pool.done == [(ACTS[wish], "engine-1")]
