"""A counter with labels that cannot grow without bound, whatever a caller manages to put into a label."""

OTHER = "other"


class LabelCounter:
    """Counts by label values. Beyond `max_series` combinations new ones count as `other` in every label.

    Without labels there is one series, which begins at 0.
    """

    def __init__(self, num_labels: int, max_series: int = 500) -> None:
        self._overflow = (OTHER,) * num_labels
        self._max_series = max_series
        self._values: dict[tuple[str, ...], int] = {} if num_labels else {(): 0}

    def add(self, *labels: str, amount: int = 1) -> None:
        """Adds to one series. Labels come in the order of the metric's definition."""
        if labels not in self._values and len(self._values) >= self._max_series:
            labels = self._overflow
        self._values[labels] = self._values.get(labels, 0) + amount

    def value(self, *labels: str) -> int:
        return self._values.get(labels, 0)

    def items(self) -> list[tuple[tuple[str, ...], float]]:
        """Returns every series with its value."""
        return [(labels, float(value)) for labels, value in self._values.items()]
