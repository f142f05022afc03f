"""How numbers are spelled for people. Pure."""


def spell(value: float | None, unit: str) -> str:
    """Returns a number with its unit; `-` for none. `unit`: `s`, `/s`, or nothing for a share."""
    if value is None:
        return "-"
    if unit == "s":
        return spell_time(value)
    if unit == "/s":
        return f"{digits(value)}/s"
    return f"{100 * value:.1f} %"


def spell_time(seconds: float) -> str:
    """Returns a time in the unit in which it reads best, with three significant digits."""
    if abs(seconds) < 1:
        return f"{digits(seconds * 1000)} ms"
    return f"{digits(seconds)} s"


def spell_tick(value: float) -> str:
    """Returns a round number as short as it is."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def spell_tick_time(seconds: float) -> str:
    """Returns a round time as short as it is."""
    return f"{seconds:g} s" if seconds >= 1 else f"{seconds * 1000:.4g} ms" if seconds else "0"


def digits(value: float) -> str:
    """Returns a number with three significant digits, whole from 100 on."""
    if value == 0:
        return "0"
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    if abs(value) >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.2g}"
