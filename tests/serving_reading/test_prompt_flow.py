"""How the prompts of one call go into the engine, where it takes only so many at a time."""

from collections.abc import Callable

import pytest

from tidegate.engine.gauges import EngineGauges, EngineStatus
from tidegate.engine.port import DeltaSink
from tidegate.errors import ServeError
from tidegate.inference.output import TokenDelta
from tidegate.inference.request import InferenceRequest
from tidegate.serving.choice import ChoicePlan
from tidegate.serving.prepared import PreparedPrompt
from tidegate.serving.prompt_flow import PromptFlow, PromptSink
from tidegate.testing.requests import make_request
from tidegate.text.byte_tokenizer import ByteVocabulary


class Notes:
    """An engine, and a receiver, that write down what they are told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def submit(self, request: InferenceRequest, sink: DeltaSink) -> None:
        self.told.append(f"submit {request.request_id}")

    def abort(self, request_id: str, choice: int | None = None) -> None:
        self.told.append(f"abort {request_id}")

    def hold(self, request_id: str, *, held: bool) -> None:
        self.told.append(f"hold {request_id} {held}")

    def statistics(self) -> EngineStatus:
        return EngineStatus(True, 1, 0, 0, EngineGauges(), None)

    def deliver(self, sink: PromptSink, delta: TokenDelta) -> None:
        raise AssertionError("nothing is said here")

    def fail(self, error: ServeError) -> None:
        raise AssertionError("nothing fails here")


def _flow(notes: Notes, num_choices: int = 1) -> PromptFlow:
    prompts = [PreparedPrompt(make_request(str(i), "hi"), ChoicePlan(ByteVocabulary()), [104, 105]) for i in range(4)]
    return PromptFlow(prompts, num_choices, notes, width=2)


def test_one_goes_in_when_one_has_left() -> None:
    notes = Notes()
    flow = _flow(notes)
    flow.submit(notes)
    flow.submit(notes)
    assert notes.told == ["submit 0", "submit 1"]
    flow.note_closed()
    flow.submit(notes)
    assert notes.told[2:] == ["submit 2"]


@pytest.mark.parametrize(
    "end",
    [lambda flow, notes: flow.abort(notes), lambda flow, _: flow.drop_waiting(), lambda flow, _: flow.close()],
    ids=["abort", "drop", "close"],
)
def test_what_was_given_up_never_goes_in(end: Callable[[PromptFlow, Notes], object]) -> None:
    notes = Notes()
    flow = _flow(notes)
    flow.submit(notes)
    end(flow, notes)
    assert not flow.has_waiting
    flow.note_closed()
    flow.submit(notes)
    assert [told for told in notes.told if "submit" in told] == ["submit 0", "submit 1"]


def test_only_what_is_inside_and_open_is_aborted_or_held() -> None:
    notes = Notes()
    flow = _flow(notes, num_choices=2)
    flow.submit(notes)
    flow.sinks[0].is_open = [False, True]
    flow.hold(notes, held=True)
    flow.sinks[0].is_open = [False, False]
    flow.hold(notes, held=False)
    assert flow.abort(notes) == 6, "three prompts of two choices have not been given"
    assert notes.told == ["submit 0", "hold 0 True"]
    assert [sink.num_prompt_tokens for sink in flow.sinks] == [2, 0, 0, 0]
