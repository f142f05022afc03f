"""EngineParts: the engines of one model by name, while they come and go; and who wants to hear of each."""

from collections.abc import Callable, Iterator, Mapping

from tidegate.engine.port import WatchedEngine


class EngineParts(Mapping[str, WatchedEngine]):
    """In the order in which they joined."""

    def __init__(self, parts: Mapping[str, WatchedEngine]) -> None:
        self._parts = dict(parts)
        self._observers: list[Callable[[str, WatchedEngine], None]] = []

    def __getitem__(self, name: str) -> WatchedEngine:
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def each(self, observer: Callable[[str, WatchedEngine], None]) -> None:
        """Tells `observer` of every engine: of those that are there now, and of each that joins, before it is ready."""
        self._observers.append(observer)
        for name, engine in self._parts.items():
            observer(name, engine)

    def add(self, name: str, engine: WatchedEngine) -> None:
        """Takes in one more."""
        self._parts[name] = engine
        for observer in self._observers:
            observer(name, engine)

    def remove(self, name: str) -> None:
        """Forgets one. Harmless for a name that none has."""
        self._parts.pop(name, None)
