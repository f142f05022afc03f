"""Which sequences live, and who of them has memory.

Every live sequence is in exactly one place: active (it has memory and a sequence id), waiting, or parked (without
memory, and held: its reader is behind, or its grammar is not compiled yet). Moving it between places opens and closes
its memory and its chooser's state. Does not decide who moves: the scheduler does.
"""

from bisect import insort

from tidegate.core.chooser import Chooser
from tidegate.core.kv.manager import KvManager, KvSource
from tidegate.core.sequence import LiveRequest, Sequence
from tidegate.core.sequence_status import EVENT_OF_FINISH, SequenceEvent
from tidegate.core.waiting import WaitingQueue
from tidegate.errors import InternalError
from tidegate.inference.finish import EngineFinish


class Roster:
    """All live sequences. `active` is in order: the first runs first and is preempted last."""

    def __init__(self, kv: KvManager, chooser: Chooser) -> None:
        self.requests: dict[str, LiveRequest] = {}
        self.active: list[Sequence] = []
        self.waiting: WaitingQueue[Sequence] = WaitingQueue()
        self.parked: dict[int, Sequence] = {}
        self.num_constrained = 0
        self._awaiting: dict[int, Sequence] = {}
        self.num_preemptions = 0
        self.num_prompt_tokens = 0
        self.num_cached_tokens = 0
        self._kv = kv
        self._chooser = chooser

    def enter(self, live: LiveRequest) -> None:
        """Takes a new request; its choices wait."""
        self.requests[live.request.request_id] = live
        if live.grammar is not None:
            self.num_constrained += len(live.sequences)
        for sequence in live.sequences:
            self.waiting.add(sequence)

    def admit(self, sequence: Sequence, now: float, *, source: KvSource | None = None) -> None:
        """Gives a waiting sequence memory; its first tokens come from `source`."""
        self.waiting.remove(sequence)
        sequence.apply(SequenceEvent.ADMIT)
        salt = sequence.live.request.cache_salt
        sequence.seq_id = self._kv.open(sequence.key, sequence.num_tokens, salt=salt, source=source)
        sequence.num_computed = 0 if source is None else source.num_tokens
        insort(self.active, sequence, key=lambda other: other.order)
        if not sequence.is_started:
            self._start(sequence, now)

    def preempt(self, sequence: Sequence) -> None:
        """Takes an active sequence's memory; it waits again, in its old order."""
        sequence.apply(SequenceEvent.PREEMPT)
        self.num_preemptions += 1
        self._release(sequence)
        if sequence.is_held:
            self.parked[sequence.key] = sequence
        else:
            self.waiting.add(sequence)

    def finish(self, sequence: Sequence, finish: EngineFinish) -> None:
        """Ends a live sequence and gives back all that it holds."""
        sequence.apply(EVENT_OF_FINISH[finish])
        if sequence.seq_id is not None:
            self._release(sequence)
        elif self.parked.pop(sequence.key, None) is None:
            self.waiting.remove(sequence)
        self._chooser.close(sequence.key)
        self._awaiting.pop(sequence.key, None)
        live = sequence.live
        live.num_unfinished -= 1
        if live.grammar is not None:
            self.num_constrained -= 1
            live.grammar.is_wanted = live.num_unfinished > 0
        if live.num_unfinished == 0:
            del self.requests[live.request.request_id]

    def hold(self, live: LiveRequest, *, held: bool) -> None:
        """Parks a request's choices, or lets them run again. Those with memory keep it for now."""
        for sequence in live.sequences:
            if not sequence.is_finished:
                was_held, sequence.is_reader_behind = sequence.is_held, held
                self._replace(sequence, was_held=was_held)

    def await_grammar(self, sequence: Sequence) -> None:
        """Holds a live sequence until its grammar is compiled."""
        was_held, sequence.awaits_grammar = sequence.is_held, True
        self._awaiting[sequence.key] = sequence
        self._replace(sequence, was_held=was_held)

    @property
    def has_new_grammar(self) -> bool:
        """Whether a sequence could go on with `take_grammars`."""
        return any(not s.has_grammar_on_its_way and not s.is_reader_behind for s in self._awaiting.values())

    def take_grammars(self) -> None:
        """Lets the sequences run again whose grammars are compiled, or refused."""
        for sequence in [s for s in self._awaiting.values() if not s.has_grammar_on_its_way]:
            del self._awaiting[sequence.key]
            was_held, sequence.awaits_grammar = sequence.is_held, False
            self._replace(sequence, was_held=was_held)

    def check_integrity(self) -> None:
        """Raises InternalError unless each live sequence is in one place, and memory agrees."""
        live = [s for request in self.requests.values() for s in request.sequences if not s.is_finished]
        for sequence in live:
            places = (sequence in self.active) + (sequence in self.waiting) + (sequence.key in self.parked)
            if places != 1 or (sequence.seq_id is not None) != (sequence in self.active):
                raise InternalError(f"sequence {sequence.key} ({sequence.status.value}) is in {places} places")
        if len(live) != len(self.active) + len(self.waiting) + len(self.parked):
            raise InternalError("finished sequences are still listed")
        if [s.order for s in self.active] != sorted(s.order for s in self.active):
            raise InternalError("active sequences are out of order")
        self._kv.check_integrity({s.key: s.num_computed for s in self.active})

    def _replace(self, sequence: Sequence, *, was_held: bool) -> None:
        """Moves a sequence without memory to where it belongs, when being held has begun or ended."""
        if sequence.is_held == was_held or sequence.seq_id is not None:
            return
        if sequence.is_held:
            self.waiting.remove(sequence)
            self.parked[sequence.key] = sequence
        else:
            del self.parked[sequence.key]
            self.waiting.add(sequence)

    def _start(self, sequence: Sequence, now: float) -> None:
        live = sequence.live
        sequence.is_started = True
        if live.request.script is not None:
            sequence.not_before = now + live.request.script.prefill_delay_s
        self._chooser.open(sequence.key, live.request, sequence.choice, live.grammar)
        if not live.is_admitted:
            live.is_admitted = True
            live.queue_s = now - live.arrived_at
            live.num_cached = min(sequence.num_computed, len(live.prompt))
            self.num_prompt_tokens += len(live.prompt)
            self.num_cached_tokens += live.num_cached

    def note_computed(self) -> None:
        """Makes what the active sequences have computed known to those that come."""
        for sequence in self.active:
            self._kv.fill(sequence.key, sequence.num_computed, sequence.packed)

    def _release(self, sequence: Sequence) -> None:
        self._kv.close(sequence.key, sequence.num_computed, sequence.packed)
        self.active.remove(sequence)
        sequence.seq_id = None
        sequence.num_computed = 0
