"""Stop strings, found in text that arrives in pieces of any size.

Decides where the text of one choice ends and what may be sent already.
- The match that completes first wins, whatever the order of the list and however the text was cut; of two that
  complete at the same character, the longer.
- Text before the match is released, the matched string only with `include_match`, text after it never.
- Held back is the longest end of the text that is a proper prefix of some stop, and nothing else.

One prefix automaton (Knuth, Morris and Pratt) for each stop, all moved in step, so the work is linear in the text. A
stop's failure table grows with the longest prefix that the text has reached: a stop of a megabyte costs nothing until
the text begins to resemble it.

Does not know tokens, why generation ends, or which text is visible: it is fed visible text only.
"""

import re


class _Needle:
    """One stop and how many of its characters the text ends with. `failure[k]` serves a prefix of k+1 characters."""

    __slots__ = ("failure", "num_matched", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.failure = [0]
        self.num_matched = 0

    def step(self, character: str) -> bool:
        """Moves over one character of the text; True when the stop is complete. Not to be called after that."""
        text, matched = self.text, self.num_matched
        while text[matched] != character:
            if matched == 0:
                self.num_matched = 0
                return False
            matched = self.failure[matched - 1]
        matched += 1
        self.num_matched = matched
        if matched == len(text):
            return True
        if matched > len(self.failure):
            self._extend()
        return False

    def _extend(self) -> None:
        """Adds the failure entry of the prefix that has just been reached."""
        text, failure = self.text, self.failure
        character = text[len(failure)]
        border = failure[-1]
        while border and text[border] != character:
            border = failure[border - 1]
        failure.append(border + 1 if text[border] == character else 0)


class StopMatcher:
    """Searches one choice's visible text for its stop strings.

    `match` is None until a stop has completed, then that stop; from then on nothing more is released.
    """

    __slots__ = ("_first", "_held", "_include_match", "_needles", "match")

    def __init__(self, stops: tuple[str, ...], *, include_match: bool) -> None:
        if "" in stops:
            raise ValueError("an empty stop string matches everywhere")
        self._needles = [_Needle(stop) for stop in stops]
        self._first = re.compile("|".join({re.escape(stop[0]) for stop in stops})) if stops else None
        self._include_match = include_match
        self._held = ""
        self.match: str | None = None

    @property
    def num_held(self) -> int:
        """How many characters are held back now."""
        return len(self._held)

    def feed(self, text: str) -> str:
        """Returns the text that is released now. Look at `match` afterwards."""
        first = self._first
        if first is None:
            return text
        if self.match is not None:
            return ""
        if not self._held and first.search(text) is None:
            return text
        return self._search(text)

    def pass_through(self, text: str) -> str:
        """Releases `text`, and what was held, unsearched: no later match begins in it. For `min_tokens`."""
        if self.match is not None:
            return ""
        released = self._held + text
        self._forget()
        return released

    def finish(self) -> str:
        """Ends the text: releases what is held. After a match there is nothing."""
        return self.pass_through("")

    def _search(self, text: str) -> str:
        assert self._first is not None
        whole = self._held + text
        at, end = len(self._held), len(whole)
        num_held = at
        while at < end:
            if num_held == 0:
                candidate = self._first.search(whole, at)
                if candidate is None:
                    break
                at = candidate.start()
            character = whole[at]
            at += 1
            completed = [needle.text for needle in self._needles if needle.step(character)]
            if completed:
                return self._end(whole[:at], max(completed, key=len))
            num_held = max(needle.num_matched for needle in self._needles)
        self._held = whole[end - num_held :]
        return whole[: end - num_held]

    def _end(self, text: str, stop: str) -> str:
        """Ends the search; `text` ends with `stop`."""
        self._forget()
        self.match = stop
        return text if self._include_match else text[: len(text) - len(stop)]

    def _forget(self) -> None:
        self._held = ""
        for needle in self._needles:
            needle.num_matched = 0
