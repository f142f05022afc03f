"""Numbers within bounds, in EBNF. Decimal digits only: a number with bounds has no exponent, an integer no fraction."""

import math
from decimal import Decimal

from tidegate.grammar.refusal import unsupported

INTEGER = '("-"? ("0" | [1-9] [0-9]*))'
NUMBER = f'({INTEGER} ("." [0-9]+)? ([eE] ("+" | "-")? [0-9]+)?)'

_MAX_DIGITS = 40


def integer_between(low: Decimal | None, high: Decimal | None) -> str | None:
    """Returns integers from `low` to `high`, both included and whole; None for no integer. Raises Refused."""
    if low is None and high is None:
        return INTEGER
    least = None if low is None else math.ceil(low)
    most = None if high is None else math.floor(high)
    options = []
    if most is None or most >= 0:
        options += _digits(max(0, least or 0), most)
    if least is None or least < 0:
        negative = _digits(1 if most is None or most >= 0 else -most, None if least is None else -least)
        options += [f'"-" {_group(negative)}'] if negative else []
    return _group(options) if options else None


def number_between(low: Decimal | None, high: Decimal | None, *, is_open_low: bool, is_open_high: bool) -> str | None:
    """Returns numbers from `low` to `high`; None for no number. Raises Refused for what takes too long to say."""
    if low is None and high is None:
        return NUMBER
    options = []
    if high is None or high > 0 or (high == 0 and not is_open_high):
        floor, is_open = (low, is_open_low) if low is not None and low >= 0 else (Decimal(0), False)
        options += _decimals(floor, is_open, high, is_open_high)
    if low is None or low < 0:
        ceiling, is_open = (-high, is_open_high) if high is not None and high <= 0 else (Decimal(0), True)
        negative = _decimals(ceiling, is_open, None if low is None else -low, is_open_low)
        options += [f'"-" {_group(negative)}'] if negative else []
    return _group(options) if options else None


def as_decimal(value: float) -> Decimal:
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def _group(options: list[str]) -> str:
    return f"({' | '.join(options)})"


def _digits(least: int, most: int | None) -> list[str]:
    """Whole numbers without sign, `least` and `most` included."""
    if most is not None and least > most:
        return []
    if len(str(least)) > _MAX_DIGITS or len(str(most or 0)) > _MAX_DIGITS:
        raise unsupported("a bound of so many digits")
    options = []
    if least == 0:
        options, least = ['"0"'], 1
    if most is None:
        size = len(str(least))
        return [*options, *_same_size(str(least), "9" * size), f"[1-9] [0-9]{{{size},}}"]
    for size in range(len(str(least)), len(str(most)) + 1):
        low = str(max(least, 10 ** (size - 1)))
        high = str(min(most, 10**size - 1))
        if int(low) <= int(high):
            options += _same_size(low, high)
    return options


def _same_size(low: str, high: str) -> list[str]:
    if not low:
        return ['""']
    if low == high:
        return [f'"{low}"']
    if set(low[1:]) <= {"0"} and set(high[1:]) <= {"9"}:
        return [_digit(low[0], high[0]) + (f" [0-9]{{{len(low) - 1}}}" if len(low) > 1 else "")]
    if low[0] == high[0]:
        return [f'"{low[0]}" {_group(_same_size(low[1:], high[1:]))}']
    rest = len(low) - 1
    options = [f'"{low[0]}" {_group(_same_size(low[1:], "9" * rest))}']
    if int(high[0]) - int(low[0]) > 1:
        options.append(f"{_digit(str(int(low[0]) + 1), str(int(high[0]) - 1))} [0-9]{{{rest}}}")
    return [*options, f'"{high[0]}" {_group(_same_size("0" * rest, high[1:]))}']


def _digit(low: str, high: str) -> str:
    return f"[{low}-{high}]" if low != high else f"[{low}]"


def _decimals(low: Decimal, is_open_low: bool, high: Decimal | None, is_open_high: bool) -> list[str]:
    """Numbers without sign from `low`, which is not negative, to `high`."""
    if high is not None and (low > high or (low == high and (is_open_low or is_open_high))):
        return []
    whole, fraction = _split(low)
    if high is None:
        return [*_from(whole, fraction, is_open_low), *_with_any(_digits(whole + 1, None))]
    top, top_fraction = _split(high)
    if whole < top:
        between = _with_any(_digits(whole + 1, top - 1))
        return [*_from(whole, fraction, is_open_low), *between, *_up_to(top, top_fraction, is_open_high)]
    if not fraction and not is_open_low:
        return _up_to(top, top_fraction, is_open_high)
    raise unsupported("bounds that lie between two neighbouring integers")


def _split(value: Decimal) -> tuple[int, str]:
    text = f"{value:f}"
    if len(text) > _MAX_DIGITS:
        raise unsupported("a bound of so many digits")
    whole, _, fraction = text.partition(".")
    return int(whole), fraction.rstrip("0")


def _with_any(options: list[str]) -> list[str]:
    return [f'{_group(options)} ("." [0-9]+)?'] if options else []


def _from(whole: int, fraction: str, is_open: bool) -> list[str]:
    """Numbers with this whole part whose fraction is that one, or a greater one."""
    if not fraction and not is_open:
        return _with_any([f'"{whole}"'])
    tails = []
    for i, digit in enumerate(fraction):
        if digit != "9":
            tails.append(f'"{fraction[:i]}" {_digit(str(int(digit) + 1), "9")} [0-9]*')
    tails.append(f'"{fraction}" ' + ("[0-9]* [1-9] [0-9]*" if is_open else "[0-9]*"))
    return [f'"{whole}." {_group(tails)}']


def _up_to(whole: int, fraction: str, is_open: bool) -> list[str]:
    """Numbers with this whole part whose fraction is that one, or a smaller one."""
    if not fraction:
        return [] if is_open else [f'"{whole}" ("." "0"+)?']
    tails = [f'"{fraction}" "0"*'] if not is_open else []
    for i, digit in enumerate(fraction):
        if digit != "0":
            tails.append(f'"{fraction[:i]}" {_digit("0", str(int(digit) - 1))} [0-9]*')
        if i:
            tails.append(f'"{fraction[:i]}"')
    return [f'"{whole}" ("." {_group(tails)})?']
