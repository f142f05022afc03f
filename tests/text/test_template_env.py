"""What templates may do, what they may not, and what it may cost them."""

from collections.abc import Callable
from datetime import datetime
from itertools import count

import pytest

from tidegate.errors import InvalidTemplateInput
from tidegate.text.template_budget import RenderBudget, RenderLimits
from tidegate.text.template_env import BrokenTemplate, CompiledTemplate

DATE = datetime(2026, 1, 2, 3, 4, 5)


def frozen() -> float:
    return 0.0


def ticking() -> Callable[[], float]:
    """A clock that moves on by a millisecond each time it is read."""
    readings = count()
    return lambda: next(readings) / 1000


def render(source: str, *, max_bytes: int = 10_000, now: Callable[[], float] = frozen, **variables: object) -> str:
    limits = RenderLimits(max_bytes=max_bytes, max_ms=1000, now=now)
    compiled = CompiledTemplate(source, limits)
    return compiled.render(variables, date=DATE, budget=RenderBudget(limits))


# source, text; `m` is a small message
FEATURES = [
    ("{% if true %}\n  x\n{% endif %}\ny", "  x\ny"),
    ("  {% if true %}x{% endif %}", "x"),
    ("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
    ("{% for i in range(4) %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "023"),
    ("{% generation %}said{% endgeneration %}!", "said!"),
    ("{% for i in [1, 2] %}{% generation %}{{ i }}{{ loop.last }}{% endgeneration %}{% endfor %}", "1False2True"),
    ("{% set ns = namespace(n=0) %}{% for i in [1, 2] %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}", "3"),
    ("{{ strftime_now('%Y-%m-%d %H:%M') }}", "2026-01-02 03:04"),
    ("{{ m | tojson }}", '{"z": "<b>é&\'", "a": [1, 2.5, null, true]}'),
    ("{{ m | tojson(sort_keys=true) }}", '{"a": [1, 2.5, null, true], "z": "<b>é&\'"}'),
    ("{{ [1] | tojson(indent=2) }}", "[\n  1\n]"),
    ("{{ [1, 2] | tojson(separators=(',', ':')) }}", "[1,2]"),
    ("{{ 'é😀' | tojson(ensure_ascii=true) }}", '"\\u00e9\\ud83d\\ude00"'),
    ("{{ m.a | map('string') | tojson }}", '["1", "2.5", "None", "True"]'),
    ("{{ 'a' ~ 1 ~ none ~ m.nothing }}", "a1None"),
    ("{{ undefined_name }}{{ undefined_name is defined }}", "False"),
    ("{% macro f(n) %}{% if n %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "321"),
    ("{{ '%s-%d' % ('a', 3) }}{{ '{}:{:>3}'.format(1, 2) }}{{ '%s' | format('x') }}", "a-31:  2x"),
    ("{{ 'a-b' | replace('-', '+') }}{{ ['a', 'b'] | join(', ') }}{{ 'x' | center(3) }}|", "a+ba, b x |"),
    ("{% set l = [] %}{% set _ = l.append(1) %}{{ l }}{{ l.pop() }}", "[1]1"),
    ("{{ [{'k': 1}, {'k': 2}] | join('/', attribute='k') }}", "1/2"),
    ("{{ 'a\nb' | indent(2) }}", "a\n  b"),
    ("{{ m.items() | list | length }}{{ (m | items | first)[0] }}", "2z"),
    ("{% filter upper %}a{% endfilter %}{% set x %}b{{ 1 }}{% endset %}{{ x }}", "Ab1"),
    ("{% macro g() %}<{{ caller(1) }}>{% endmacro %}{% call(x) g() %}{{ x }}{% endcall %}", "<1>"),
    ("{{ (1, 2)[::-1] }}{{ 'abc'[1:] }}{{ 7 // 2 }}{{ 2 ** 10 }}{{ 3 * 'a' }}", "(2, 1)bc31024aaa"),
    ("{% for k, v in {'a': 1} | dictsort recursive %}{{ k }}{{ v }}{% endfor %}", "a1"),
]


@pytest.mark.parametrize(("source", "text"), FEATURES)
def test_what_hugging_face_offers_is_here(source: str, text: str) -> None:
    assert render(source, m={"z": "<b>é&'", "a": [1, 2.5, None, True]}) == text


BROKEN = [
    ("{% if %}", "line 1"),
    ("a\n{{ x | no_such_filter }}", "line 2"),
    ("{% for x in y %}", "line 1"),
    ("{% include 'other' %}", "load"),
    ("{% import 'other' as o %}", "load"),
    ("{% extends 'other' %}", "load"),
    ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "."),
    ("{{ x | urlize }}", "urlize"),
    ("{{ [1] | random }}", "random"),
]


@pytest.mark.parametrize(("source", "message"), BROKEN, ids=range(len(BROKEN)))
def test_a_broken_template_is_refused_when_it_is_loaded(source: str, message: str) -> None:
    with pytest.raises(BrokenTemplate, match=message):
        CompiledTemplate(source, RenderLimits(max_bytes=10_000, max_ms=1000, now=frozen))


UNSAFE = [
    "{{ ''.__class__.__mro__ }}",
    "{{ [].extend([1]) }}",
    "{{ raise_exception.__globals__.x }}",
    "{{ m.clear() }}",
    "{{ m.update({'a': 1}) }}",
    "{{ '{0.__class__}'.format(1) }}{{ m.clear() }}",
    "{{ m | attr('__class__') }}{{ m.clear() }}",
    "{{ lipsum() }}",
]


@pytest.mark.parametrize("source", UNSAFE)
def test_the_sandbox_holds(source: str) -> None:  # SEC-8
    with pytest.raises(InvalidTemplateInput) as caught:
        render(source, m={"a": 1})
    assert caught.value.param == "messages"
    assert "class" not in caught.value.message


# Each takes more than a thousand rounds or calls, and the clock moves on a millisecond for each look at it.
ENDLESS = [
    "{% for a in many %}{% for b in many %}{% endfor %}{% endfor %}",
    "{% macro f() %}{% for a in many %}{% for b in many %}{% endfor %}{% endfor %}{% endmacro %}{% set x = f() %}",
    "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
    "{% for a in range(100000) %}{% for b in range(100000) %}{{ b }}{% endfor %}{% endfor %}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(30) }}",
    "{% macro f() %}{% endmacro %}{% for a in range(100000) if f() %}{% endfor %}",
    "{% set l = [] %}{% for a in range(100000) %}{% set _ = l.append(a) %}{% endfor %}",
    "{% for a in words recursive %}{% if loop.depth < 30 %}{{ loop(words) }}{% endif %}{% endfor %}",
]


@pytest.mark.parametrize("source", ENDLESS)
def test_time_is_bounded_wherever_a_template_can_spend_it(source: str) -> None:  # SEC-7
    with pytest.raises(InvalidTemplateInput) as caught:
        render(source, now=ticking(), max_bytes=10**9, words=["a", "b"], many=[1] * 1_500)
    assert caught.value.limit is not None
    assert (caught.value.limit.name, caught.value.limit.value) == ("template_ms", 1000)
    assert caught.value.limit.actual > 1000


HUGE = [
    "{{ 'a' * (10 ** 9) }}",
    "{{ n * 'a' }}",
    "{{ ([1] * n) | length }}",
    "{{ 'a'.center(n) }}",
    "{{ 'a'.ljust(n) }}{{ 'a'.rjust(n) }}",
    "{{ 'a'.zfill(n) }}",
    "{{ '\t'.expandtabs(n) }}",
    "{{ 'a' | center(n) }}",
    "{{ 'a\nb' | indent(n) }}",
    "{{ long | replace('a', long) }}",
    "{{ long.replace('a', long) }}",
    "{{ long.join(long) }}",
    "{{ long.join(range(9000) | map('string')) }}",
    "{{ range(9000) | join(long) }}",
    "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(40) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(40) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(40) %}{% set x %}{{ ns.x }}{{ ns.x }}{% endset %}"
    "{% set ns.x = x %}{% endfor %}",
    "{% set ns = namespace(x=[1, 2]) %}{% for i in range(40) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "{% for i in range(9000) %}{{ long }}{% endfor %}",
    "{% macro f() %}{% for i in range(9000) %}{{ long }}{% endfor %}{% endmacro %}{% set x = f() %}",
    "{% for i in range(9000) %}{% set x = long + long %}{% endfor %}",
]


@pytest.mark.parametrize("source", HUGE)
def test_size_is_bounded_before_anything_is_built(source: str) -> None:  # SEC-7
    with pytest.raises(InvalidTemplateInput) as caught:
        render(source, max_bytes=10_000, n=10**9, long="a" * 9_000)
    assert caught.value.limit is not None
    assert (caught.value.limit.name, caught.value.limit.value) == ("template_bytes", 10_000)


FAILING = [
    "{{ 9 ** 999999999 }}",
    "{% set ns = namespace(x=9) %}{% for i in range(100) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
    "{{ '%999999999d' % 1 }}",
    "{{ '%*d' % (999999999, 1) }}",
    "{{ '%999999999d' | format(1) }}",
    "{{ '{:999999999}'.format(1) }}",
    "{{ '{:{}}'.format(1, 999999999) }}",
    "{{ [1] | batch(999999999, 'x') | list }}",
    "{{ [1] | slice(999999999) | list }}",
    "{{ range(999999999) | list }}",
    "{{ [1] | tojson(indent=999999999) }}",
    "{{ strftime_now('%999999999Y') }}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{{ 1 / 0 }}",
    "{{ none.x.y }}",
    "{{ 'a' + 1 }}",
    "{{ undefined_name | tojson }}",
]


@pytest.mark.parametrize("source", FAILING)
def test_what_fails_in_a_template_is_the_requests_fault_and_says_nothing_of_ours(source: str) -> None:  # SEC-7
    with pytest.raises((InvalidTemplateInput, BrokenTemplate)) as caught:
        render(source)
    if isinstance(caught.value, InvalidTemplateInput):
        assert caught.value.param == "messages"
        assert "0x" not in caught.value.message
        assert "/" not in caught.value.message


def test_the_templates_own_refusal_is_shown() -> None:
    with pytest.raises(InvalidTemplateInput, match="roles must alternate") as caught:
        render("{{ raise_exception('roles must alternate') }}")
    assert caught.value.param == "messages"
    assert caught.value.limit is None


def test_a_long_refusal_is_cut() -> None:
    with pytest.raises(InvalidTemplateInput) as caught:
        render("{{ raise_exception(x) }}", x="y" * 9_000)
    assert len(caught.value.message) < 1_000


def test_output_is_counted_as_it_comes() -> None:
    assert render("{{ x }}", max_bytes=4, x="abcd") == "abcd"
    with pytest.raises(InvalidTemplateInput) as caught:
        render("{{ x }}{{ x }}", max_bytes=4, x="abcd")
    assert caught.value.limit is not None
    assert caught.value.limit.actual == 8
