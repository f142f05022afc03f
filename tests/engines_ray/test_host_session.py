"""What one server is told of an engine, and what is kept for it meanwhile: the session alone."""

import asyncio

import msgspec

from tidegate.engine.gauges import EngineGauges, EngineStatus
from tidegate.engine.messages import StepOutputs
from tidegate.engines.ray.host_session import HostedRequest, HostSession
from tidegate.engines.ray.wire import EngineAway, EventBatch, RequestFailed
from tidegate.errors import EngineLost, InvalidValue
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenDelta
from tidegate.testing.requests import make_request


class Look:
    """An engine as a session sees it."""

    boot = "boot"
    epoch = 3
    is_draining = False
    has_failed = False

    def __init__(self) -> None:
        self.is_ready = True
        self.gauges = EngineGauges()

    def status(self) -> EngineStatus:
        return EngineStatus(self.is_ready, self.epoch, 0, 0, self.gauges, None)


def batch_of(session: HostSession) -> EventBatch:
    async def take() -> EventBatch | None:
        async with asyncio.timeout(5):
            return await session.next_batch()

    batch = asyncio.run(take())
    assert batch is not None
    return batch


def begin(session: HostSession, request_id: str) -> HostedRequest:
    hosted = HostedRequest(session, make_request(request_id, "hi"))
    session.requests[request_id] = hosted
    return hosted


def test_what_was_read_does_not_count_as_unread() -> None:
    session = HostSession("s", Look())
    hosted = begin(session, "a")
    for _ in range(3):
        hosted.deliver(TokenDelta("s/a", 0, [1]))
    assert session.num_unread == 3
    (step,) = batch_of(session).reports
    assert isinstance(step, StepOutputs)
    assert (len(step.outputs), step.epoch, session.num_unread) == (3, 3, 0)


def test_accounts_of_an_engine_that_is_away_are_not_told_as_its_outputs() -> None:
    look = Look()
    session = HostSession("s", look)
    batch_of(session)
    look.is_ready, look.gauges = False, EngineGauges(num_running=5)
    batch = batch_of(session)
    assert (batch.reports, batch.condition) == ([], "the engine is not ready")


def test_a_loss_is_one_word_for_all_requests_and_what_failed_before_for_its_own_reason_stays() -> None:
    look = Look()
    session = HostSession("s", look)
    lost, refused, left = (begin(session, name) for name in ("lost", "refused", "left"))
    refused.fail(InvalidValue("no", param="x"))
    lost.fail(EngineLost("gone"))
    assert list(session.requests) == ["left"]
    look.is_ready = False
    session.note_away("killed", was_asked=False)
    assert session.requests == {}
    reports = batch_of(session).reports
    failed = [one.request_id for one in reports if isinstance(one, RequestFailed)]
    assert (failed, reports[-1]) == (["refused"], EngineAway("killed"))
    left.detach()
    left.deliver(TokenDelta("s/left", 0, [1], EngineFinish.EOS))
    left.fail(EngineLost("gone"))
    assert session.num_unread == 0


def test_a_request_of_several_choices_is_there_until_the_last_of_them_has_ended() -> None:
    session = HostSession("s", Look())
    hosted = HostedRequest(session, msgspec.structs.replace(make_request("a", "hi"), num_choices=2))
    session.requests["a"] = hosted
    hosted.deliver(TokenDelta("s/a", 0, [1], EngineFinish.EOS))
    assert list(session.requests) == ["a"], "its other choice can still be aborted"
    hosted.deliver(TokenDelta("s/a", 1, [1], EngineFinish.EOS))
    assert session.requests == {}


def test_what_happened_is_told_in_its_order() -> None:
    session = HostSession("s", Look())
    one, other = begin(session, "one"), begin(session, "other")
    one.deliver(TokenDelta("s/one", 0, [1]))
    other.fail(InvalidValue("no", param="x"))
    one.deliver(TokenDelta("s/one", 0, [2], EngineFinish.EOS))
    kinds = [type(report) for report in batch_of(session).reports]
    assert kinds == [StepOutputs, RequestFailed, StepOutputs]
    assert session.requests == {}
