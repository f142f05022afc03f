"""PoisonWatch: which requests are refused because the engine died with them in it.

Decides from the deaths of the engine, and from who was in it, whether a request may be tried again. A request is known
by its fingerprint: what it asks for, whatever it is called. Time is an argument. Does not know: engines, why one died,
whether a caller has been told.

The evidence. A death puts blame on everybody who was in the engine. The culprit is among them each time; a bystander
is there by chance, and sooner or later completes. So blame adds up over deaths, and any completion wipes it out:

- Each death weighs 1 on a request that had output already: it had survived steps. It weighs 2 on one that had none:
  its prompt was new to the engine, and most faults are of that kind. It weighs 2 on a request that was alone.
- A blame of 4 from at least two deaths in a row condemns. So what was alone, or in its prefill, when the engine died
  twice is refused; a long stream among others needs four deaths, and its neighbours seldom share all four with it.
- A sentence is bounded: one minute, doubled each time up to an hour. After it the request is tried again, and one more
  death is enough. Blame that nothing was added to for two hours is forgotten.

Being aborted is no proof of innocence, even by a stop string, which looks the same from here. A restart that somebody
asked for is no death. Several server processes on one engine each see the requests of their own, and tell each other
what they hold against whom. A death that two saw counts once: `take` keeps of two records the graver one, and a death
that is seen here within `SAME_DEATH_S` of one that was told is that one.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

CONDEMNED_AT = 4
MIN_DEATHS = 2
FIRST_SENTENCE_S = 60.0
LONGEST_SENTENCE_S = 3600.0
FORGOTTEN_AFTER_S = 7200.0
SAME_DEATH_S = 1.5
MAX_SUSPECTS = 4096
"""Fingerprints under suspicion at once; beyond it the one that was blamed longest ago is let go."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """Who was in the engine when it died. `has_output`: some token of it had come."""

    fingerprint: bytes
    has_output: bool


@dataclass(slots=True)
class _Record:
    num_deaths: int = 0
    blame: int = 0
    num_sentences: int = 0
    blamed_at: float = 0.0
    refused_until: float | None = None
    told_at: float | None = None
    """When a death happened that was told, and has not been seen here yet."""


@dataclass(frozen=True, slots=True)
class Blame:
    """What is held against one request, as processes tell it each other. Instants are of the monotonic clock that all
    processes of a machine share. Without deaths it is cleared.
    """

    fingerprint: bytes
    num_deaths: int
    blame: int
    num_sentences: int
    blamed_at: float
    refused_until: float | None


@dataclass(frozen=True, slots=True)
class PoisonStatistics:
    """`num_suspects` fingerprints carry blame now; `num_refusals` counts requests refused since the start."""

    num_suspects: int
    num_refusals: int


class PoisonWatch:
    """Remembers at most `max_suspects` fingerprints. `on_blame` hears of every change that happened here."""

    def __init__(self, max_suspects: int = MAX_SUSPECTS) -> None:
        self._max_suspects = max_suspects
        self._records: OrderedDict[bytes, _Record] = OrderedDict()
        self._num_refusals = 0
        self.on_blame: Callable[[Blame], None] | None = None

    @property
    def is_idle(self) -> bool:
        """True while nobody is under suspicion: then no fingerprint need be made."""
        return not self._records

    def refuses(self, fingerprint: bytes, now: float) -> bool:
        """Says whether a request must not enter the engine now, and counts it when so."""
        record = self._records.get(fingerprint)
        if record is None:
            return False
        if record.refused_until is not None and now < record.refused_until:
            self._num_refusals += 1
            return True
        record.refused_until = None
        if now - record.blamed_at > FORGOTTEN_AFTER_S:
            del self._records[fingerprint]
        return False

    def note_death(self, suspects: Iterable[Suspect], now: float) -> int:
        """The engine died with these requests in it; returns how many of them are refused from now on."""
        by_fingerprint: dict[bytes, bool] = {}
        for suspect in suspects:
            had_output = by_fingerprint.get(suspect.fingerprint, True)
            by_fingerprint[suspect.fingerprint] = had_output and suspect.has_output
        is_alone = len(by_fingerprint) == 1
        self._forget_old(now)
        verdicts = [self._blame(key, 2 if is_alone or not had else 1, now) for key, had in by_fingerprint.items()]
        self._trim()
        for key in by_fingerprint:
            self._tell(key)
        return sum(verdicts)

    def take(self, told: Blame) -> None:
        """Somebody else has seen a death, or an end. Of two records the graver one is kept."""
        if not told.num_deaths:
            self._records.pop(told.fingerprint, None)
            return
        record = self._records.pop(told.fingerprint, None) or _Record()
        self._records[told.fingerprint] = record
        if told.num_deaths > record.num_deaths:
            record.told_at = told.blamed_at
        record.num_deaths = max(record.num_deaths, told.num_deaths)
        record.blame = max(record.blame, told.blame)
        record.num_sentences = max(record.num_sentences, told.num_sentences)
        record.blamed_at = max(record.blamed_at, told.blamed_at)
        if told.refused_until is not None:
            record.refused_until = max(record.refused_until or 0.0, told.refused_until)
        self._trim()

    def blames(self) -> list[Blame]:
        """Returns everything that is held against anybody."""
        return [_describe(key, record) for key, record in self._records.items()]

    def note_completed(self, fingerprint: bytes) -> None:
        """A request came to a good end: it is no poison. Harmless for one that nobody suspects."""
        if self._records.pop(fingerprint, None) is not None:
            self._tell(fingerprint)

    def statistics(self) -> PoisonStatistics:
        """Returns a snapshot."""
        return PoisonStatistics(len(self._records), self._num_refusals)

    def _blame(self, fingerprint: bytes, weight: int, now: float) -> bool:
        """Adds to a record, which becomes the newest; says whether it condemns."""
        record = self._records.pop(fingerprint, None) or _Record()
        self._records[fingerprint] = record
        told_at, record.told_at = record.told_at, None
        if told_at is not None and now - told_at <= SAME_DEATH_S:
            record.blame = max(record.blame, weight)
            return record.refused_until is not None and now < record.refused_until
        record.num_deaths += 1
        record.blame += weight
        record.blamed_at = now
        if record.num_deaths < MIN_DEATHS or record.blame < CONDEMNED_AT:
            return False
        sentence_s = min(LONGEST_SENTENCE_S, FIRST_SENTENCE_S * 2.0 ** min(record.num_sentences, 60))
        record.num_sentences += 1
        record.refused_until = now + sentence_s
        return True

    def _trim(self) -> None:
        while len(self._records) > self._max_suspects:
            self._records.popitem(last=False)

    def _tell(self, fingerprint: bytes) -> None:
        if self.on_blame is not None:
            self.on_blame(_describe(fingerprint, self._records.get(fingerprint, _Record())))

    def _forget_old(self, now: float) -> None:
        """Records stand in the order of their last blame: the old ones come first."""
        while self._records:
            fingerprint, record = next(iter(self._records.items()))
            is_refused = record.refused_until is not None and now < record.refused_until
            if is_refused or now - record.blamed_at <= FORGOTTEN_AFTER_S:
                return
            del self._records[fingerprint]


def _describe(fingerprint: bytes, record: _Record) -> Blame:
    return Blame(
        fingerprint=fingerprint,
        num_deaths=record.num_deaths,
        blame=record.blame,
        num_sentences=record.num_sentences,
        blamed_at=record.blamed_at,
        refused_until=record.refused_until,
    )
