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


def digits(value: float) -> str:
    """Returns a number with three significant digits, whole from 100 on."""
    if value == 0:
        return "0"
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    if abs(value) >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.2g}"
