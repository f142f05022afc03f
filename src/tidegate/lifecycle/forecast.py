"""Forecast: when a waiting request's first token can be expected.

    predicted = when the prefills ahead are done, or a row is free, whichever is later + own prefill + one step

Prefills ahead are those of requests in the engine without output, in the order in which they got there, and then those
that wait at the gate and go first. The oldest of the former is under way since the last first output (or since it
entered an idle engine): while it takes no longer than it should, the prediction stands still as time passes; when it
is late, the prediction moves with the clock. Rows are short when all are taken; one is expected each time that a row's
mean time, measured from first output to end, divided by the number of rows has passed. Before enough requests have
ended nothing is expected of rows.

Both sums say the least that a request can expect: it is vetoed when even that is too late. What is predicted does not
change a request's order.

Several engines prefill at once, and which one a request will meet is not known: then as many prefills as there are
engines count as done already, and the rest as spread so that the least loaded engine has the least that it can have,
given that no engine gets more than the largest of them above another (`engines/pool/routing.py`).

Does not know deadlines, and changes nothing but what it has learned.
"""

from dataclasses import dataclass

from tidegate.lifecycle.cost_model import ChunkRule, CostFitter, CostModel, StepTotals
from tidegate.lifecycle.engine_load import EngineLoad
from tidegate.lifecycle.ticket import Ticket

MIN_ROW_TIMES = 8
ROW_FORGETTING = 1 / 16
MAX_ROW_SURPRISE = 8.0


class RowTimes:
    """How long a sequence keeps its row after its first output: a mean that forgets."""

    def __init__(self) -> None:
        self._mean_s = 0.0
        self._num_seen = 0

    @property
    def mean_s(self) -> float | None:
        return self._mean_s if self._num_seen >= MIN_ROW_TIMES else None

    def observe(self, seconds: float) -> None:
        self._num_seen += 1
        if self._num_seen > MIN_ROW_TIMES:
            seconds = min(seconds, MAX_ROW_SURPRISE * self._mean_s)
        self._mean_s += (seconds - self._mean_s) * max(ROW_FORGETTING, 1 / self._num_seen)


@dataclass(slots=True)
class Survey:
    """What stands before one more request at one instant. `pass_by` puts requests in front.

    `prefill_from`: when the prefill under way is done; `prefill_s`: the sum of those behind it, `prefill_max_s` the
    longest. `num_rows_short`: how many rows must become free before the next request gets one; `row_from`: when the
    first one is expected.
    """

    model: CostModel
    chunk: int | None
    is_mixed: bool
    prefill_from: float
    prefill_s: float
    num_rows_short: int
    row_from: float
    row_s: float
    num_engines: int = 1
    prefill_max_s: float = 0.0

    def prefill_time(self, num_tokens: int) -> float:
        """Returns what the prefill of one prompt takes."""
        seconds = self.model.prefill_base_s + self.model.prefill_token_s * num_tokens
        if self.chunk is not None and num_tokens > self.chunk:
            seconds += ((num_tokens - 1) // self.chunk) * self._chunk_s
        return seconds

    def pass_by(self, ticket: Ticket) -> None:
        """Another request goes first."""
        seconds = self.prefill_time(ticket.num_prompt_tokens)
        self.prefill_s += seconds
        self.prefill_max_s = max(self.prefill_max_s, seconds)
        self.num_rows_short += ticket.num_choices

    def pass_by_all(self, num_requests: int, num_tokens: int, num_sequences: int) -> None:
        """Many go first: at least what `pass_by` would add for each of them."""
        self.prefill_s += num_requests * self.model.prefill_base_s + num_tokens * self.model.prefill_token_s
        if self.chunk is not None:
            self.prefill_s += num_tokens / self.chunk * self._chunk_s
        self.num_rows_short += num_sequences

    def predict(self, ticket: Ticket) -> float:
        """Returns the instant of the request's first token, if it came next."""
        queued_until = max(self.prefill_from + self._prefills_s, self.row_from + self._rows_s)
        return queued_until + self.prefill_time(ticket.num_prompt_tokens) + self.model.step_s

    def time_after_now(self, ticket: Ticket) -> float:
        """Returns the least time from any later instant to the first token, should nothing move until then."""
        rest_s = max(self._prefills_s, self._rows_s)
        return rest_s + self.prefill_time(ticket.num_prompt_tokens) + self.model.step_s

    @property
    def _prefills_s(self) -> float:
        if self.num_engines == 1:
            return self.prefill_s
        return max(0.0, self.prefill_s - (self.num_engines - 1) * self.prefill_max_s) / self.num_engines

    @property
    def _rows_s(self) -> float:
        return max(0, self.num_rows_short - 1) * self.row_s if self.num_rows_short > 0 else 0.0

    @property
    def _chunk_s(self) -> float:
        return self.model.prefill_base_s + (self.model.step_s if self.is_mixed else 0.0)


class Forecast:
    """Makes surveys from a declared model, or from one that it fits while the server runs."""

    def __init__(self, declared: CostModel | None = None, chunks: ChunkRule | None = None) -> None:
        self._declared = declared
        self.chunks = chunks if chunks is not None else ChunkRule()
        self._fitter = CostFitter()
        self.row_times = RowTimes()

    @property
    def model(self) -> CostModel | None:
        """What is known of costs; None for not enough."""
        return self._declared if self._declared is not None else self._fitter.model

    def observe(self, totals: StepTotals) -> bool:
        """Learns from the engine's totals; says whether the model may have moved."""
        return self._declared is None and self._fitter.observe(totals)

    def survey(self, load: EngineLoad, now: float) -> Survey | None:
        """Returns what stands before a request that goes next; None while costs are unknown."""
        model = self.model
        if model is None:
            return None
        is_mixed = load.num_started > 0
        chunk = self.chunks.beside_decodes if is_mixed else self.chunks.alone
        row_s = (self.row_times.mean_s or 0.0) / load.max_sequences
        survey = Survey(model, chunk, is_mixed, now, 0.0, 0, now, row_s, load.num_engines)
        prefills = [survey.prefill_time(permit.ticket.num_prompt_tokens) for permit in load.unstarted.values()]
        if load.num_engines > 1:
            behind = prefills[load.num_engines :]
            survey.prefill_s, survey.prefill_max_s = sum(behind), max(behind, default=0.0)
        elif prefills:
            survey.prefill_from = max(now, load.prefill_since + prefills[0])
            survey.prefill_s = sum(prefills[1:])
        survey.num_rows_short = load.num_sequences + 1 - load.max_sequences
        if survey.num_rows_short > 0:
            survey.row_from = max(now, load.row_freed_at + row_s)
        return survey
