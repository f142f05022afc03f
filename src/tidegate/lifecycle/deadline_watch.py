"""DeadlineWatch: whose first token can no longer come in time, found as soon as that can be known.

Decides by the forecast, at three times: for a newcomer, when it enters; for all that wait, when an instant comes at
which one of them might be late; and when the costs were learned anew.

What can make a prediction worse is known beforehand: time that passes without progress, and what gets in front. So two
numbers stand for everybody: `check_at`, until when all are in time if nothing gets in front, and the least slack of
all, which what gets in front takes from. Both err on the early side: a look for nothing costs a look, and sets them
right. What leaves or starts in front only helps. So looks at everybody are rare, and each is exact.

Does not know who may enter, and refuses nobody by itself.
"""

from tidegate.errors import DeadlineUnreachable
from tidegate.lifecycle.engine_load import EngineLoad
from tidegate.lifecycle.forecast import Forecast, Survey
from tidegate.lifecycle.ticket import Ticket
from tidegate.lifecycle.waiting_room import Waiter, WaitingRoom

TICK_S = 0.001
"""How much later than `check_at` the look is taken: at the instant itself all are still in time."""


class DeadlineWatch:
    """Reads the room, the load and the forecast; changes none of them."""

    def __init__(self, room: WaitingRoom, load: EngineLoad, forecast: Forecast) -> None:
        self._room = room
        self._load = load
        self._forecast = forecast
        self._check_at: float | None = None
        self._slack_s = 0.0

    @property
    def wake_at(self) -> float | None:
        """When to look, if nothing happens until then; None for never."""
        return None if self._check_at is None else self._check_at + TICK_S

    def foretell(self, waiter: Waiter, now: float) -> None:
        """Predicts the first token of one that has just been added to the room. Raises DeadlineUnreachable."""
        survey = self._forecast.survey(self._load, now)
        if survey is None:
            return
        ticket = waiter.ticket
        self._push_back(survey, ticket, now)
        must_start_by = ticket.must_start_by
        if must_start_by is not None and survey.predict(ticket) > must_start_by:
            raise unreachable(survey.predict(ticket), now)
        self._pass_all_others(survey, ticket)
        waiter.predicted_at = survey.predict(ticket)
        if must_start_by is None:
            return
        if waiter.predicted_at > must_start_by:
            survey = self._before(ticket, now)
            waiter.predicted_at = survey.predict(ticket)
            if waiter.predicted_at > must_start_by:
                raise unreachable(waiter.predicted_at, now)
        self._note(survey, ticket, must_start_by)

    def note_learned(self, now: float) -> None:
        """Costs have moved: everybody has to be looked at."""
        if self._room.num_hurried:
            self._check_at = now

    def find_lost(self, now: float) -> list[tuple[Ticket, DeadlineUnreachable]]:
        """Returns those whose first token cannot come in time, if it is time to look. None of them delays another."""
        if self._check_at is None or now < self._check_at:
            return []
        self._check_at = None
        survey = self._forecast.survey(self._load, now)
        if survey is None or not self._room.num_hurried:
            return []
        lost: list[tuple[Ticket, DeadlineUnreachable]] = []
        for ticket in self._room.in_order():
            must_start_by = ticket.must_start_by
            if must_start_by is not None:
                predicted_at = survey.predict(ticket)
                if predicted_at > must_start_by:
                    lost.append((ticket, unreachable(predicted_at, now)))
                    continue
                self._note(survey, ticket, must_start_by)
            survey.pass_by(ticket)
        return lost

    def _note(self, survey: Survey, ticket: Ticket, must_start_by: float) -> None:
        """One more that is in time, with what stands before it."""
        check_at = must_start_by - survey.time_after_now(ticket)
        slack_s = must_start_by - survey.predict(ticket)
        if self._check_at is None:
            self._check_at, self._slack_s = check_at, slack_s
        else:
            self._check_at, self._slack_s = min(self._check_at, check_at), min(self._slack_s, slack_s)

    def _push_back(self, survey: Survey, ticket: Ticket, now: float) -> None:
        """A newcomer may have got in front of others: they may be late by as much as it takes."""
        if self._check_at is None:
            return
        work_s = max(survey.prefill_time(ticket.num_prompt_tokens), ticket.num_choices * survey.row_s)
        self._slack_s -= work_s
        self._check_at = now if self._slack_s < 0 else self._check_at - work_s

    def _pass_all_others(self, survey: Survey, ticket: Ticket) -> None:
        room = self._room
        survey.pass_by_all(
            len(room) - 1, room.num_tokens - ticket.num_prompt_tokens, room.num_sequences - ticket.num_choices
        )

    def _before(self, ticket: Ticket, now: float) -> Survey:
        """Returns what stands before one that waits, exactly."""
        survey = self._forecast.survey(self._load, now)
        assert survey is not None
        for other in self._room.in_order():
            if other is ticket:
                break
            survey.pass_by(other)
        return survey


def unreachable(predicted_at: float, now: float) -> DeadlineUnreachable:
    """Returns the error that says when the first token is expected."""
    wait_ms = round((predicted_at - now) * 1000)
    return DeadlineUnreachable(f"The first token cannot come in time: it is expected in {wait_ms} ms.")
