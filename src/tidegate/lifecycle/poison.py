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
what they hold against whom. All that is held against a request is its deaths, and a death has an id that everybody
gives it who saw it (`death_id`): so one that several saw counts once, with the graver weight, in whatever order it is
seen and told, and two deaths are two however soon one follows the other.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b

CONDEMNED_AT = 4
MIN_DEATHS = 2
FIRST_SENTENCE_S = 60.0
LONGEST_SENTENCE_S = 3600.0
FORGOTTEN_AFTER_S = 7200.0
MAX_SUSPECTS = 4096
"""Fingerprints under suspicion at once; beyond it the one that was blamed longest ago is let go."""
MAX_DEATHS = 16
"""Deaths held against one request, the newest: the sentence for so many is the longest, whatever they weigh."""
_ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Suspect:
    """Who was in the engine when it died. `has_output`: some token of it had come."""

    fingerprint: bytes
    has_output: bool


@dataclass(frozen=True, slots=True)
class Death:
    """One death of an engine, as it weighs on one request. `died_at` is when it was first seen, on the monotonic clock
    that all processes of a machine share.
    """

    death: bytes
    weight: int
    died_at: float


@dataclass(frozen=True, slots=True)
class Blame:
    """What is held against one request, as processes tell it each other. Without deaths it is cleared."""

    fingerprint: bytes
    deaths: tuple[Death, ...]


@dataclass(frozen=True, slots=True)
class PoisonStatistics:
    """`num_suspects` fingerprints carry blame now; `num_refusals` counts requests refused since the start."""

    num_suspects: int
    num_refusals: int


class _Record:
    """The deaths that are held against one request, oldest first; everything else follows from them."""

    __slots__ = ("blamed_at", "deaths", "refused_until")

    def __init__(self) -> None:
        self.deaths: tuple[Death, ...] = ()
        self.blamed_at = 0.0
        self.refused_until: float | None = None

    def add(self, deaths: Iterable[Death]) -> None:
        """Takes in deaths, known ones or not: each counts once, as grave as anybody saw it."""
        known = {one.death: one for one in self.deaths}
        for new in deaths:
            old = known.get(new.death, new)
            known[new.death] = Death(new.death, max(old.weight, new.weight), min(old.died_at, new.died_at))
        ordered = sorted(known.values(), key=lambda one: (one.died_at, one.death))
        self.deaths = tuple(ordered[-MAX_DEATHS:])
        self.blamed_at = self.deaths[-1].died_at if self.deaths else 0.0
        num_sentences = self._num_sentences()
        sentence_s = min(LONGEST_SENTENCE_S, FIRST_SENTENCE_S * 2.0 ** (num_sentences - 1))
        self.refused_until = self.blamed_at + sentence_s if num_sentences else None

    def is_refused(self, now: float) -> bool:
        return self.refused_until is not None and now < self.refused_until

    def _num_sentences(self) -> int:
        """Each death condemns with which the blame is enough."""
        blame = number = 0
        for count, one in enumerate(self.deaths, 1):
            blame += one.weight
            number += count >= MIN_DEATHS and blame >= CONDEMNED_AT
        return number


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
        if record.is_refused(now):
            self._num_refusals += 1
            return True
        if now - record.blamed_at > FORGOTTEN_AFTER_S:
            del self._records[fingerprint]
        return False

    def note_death(self, suspects: Iterable[Suspect], now: float, death: bytes) -> int:
        """The engine died with these requests in it; returns how many of them are refused from now on.

        `death` is its id: see `death_id`.
        """
        by_fingerprint: dict[bytes, bool] = {}
        for suspect in suspects:
            had_output = by_fingerprint.get(suspect.fingerprint, True)
            by_fingerprint[suspect.fingerprint] = had_output and suspect.has_output
        is_alone = len(by_fingerprint) == 1
        self._forget_old(now)
        for key, had_output in by_fingerprint.items():
            self._blame(key, [Death(death, 1 if had_output and not is_alone else 2, now)])
        num_refused = sum(self._records[key].is_refused(now) for key in by_fingerprint)
        self._trim()
        for key in by_fingerprint:
            self._tell(key)
        return num_refused

    def take(self, told: Blame) -> None:
        """Somebody else has seen a death, or an end."""
        if told.deaths:
            self._blame(told.fingerprint, told.deaths)
            self._trim()
        else:
            self._records.pop(told.fingerprint, None)

    def blames(self) -> list[Blame]:
        """Returns everything that is held against anybody."""
        return [Blame(key, record.deaths) for key, record in self._records.items()]

    def note_completed(self, fingerprint: bytes) -> None:
        """A request came to a good end: it is no poison. Harmless for one that nobody suspects."""
        if self._records.pop(fingerprint, None) is not None:
            self._tell(fingerprint)

    def statistics(self) -> PoisonStatistics:
        """Returns a snapshot."""
        return PoisonStatistics(len(self._records), self._num_refusals)

    def _blame(self, fingerprint: bytes, deaths: Iterable[Death]) -> None:
        """Adds to a record, which becomes the newest."""
        record = self._records.pop(fingerprint, None) or _Record()
        record.add(deaths)
        self._records[fingerprint] = record

    def _trim(self) -> None:
        while len(self._records) > self._max_suspects:
            self._records.popitem(last=False)

    def _tell(self, fingerprint: bytes) -> None:
        if self.on_blame is not None:
            record = self._records.get(fingerprint)
            self.on_blame(Blame(fingerprint, () if record is None else record.deaths))

    def _forget_old(self, now: float) -> None:
        """Records stand in the order of their last blame: the old ones come first."""
        while self._records:
            fingerprint, record = next(iter(self._records.items()))
            if record.is_refused(now) or now - record.blamed_at <= FORGOTTEN_AFTER_S:
                return
            del self._records[fingerprint]


def death_id(life: str) -> bytes:
    """Returns the id of the death that ends a life: one start of an engine's process, named so that whoever uses that
    engine names it alike, and no other start has the name.
    """
    return blake2b(life.encode(), digest_size=_ID_BYTES).digest()
