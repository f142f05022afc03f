"""The environment that chat templates are written for: Jinja as Hugging Face sets it up, in a sandbox with a budget.

Offers what `apply_chat_template` of Hugging Face offers: block trimming, loop controls, `{% generation %}`,
`raise_exception`, `strftime_now`, and a `tojson` that keeps characters and key order. What differs:
- `append` and `pop` of lists are allowed. Published templates call them, and a rendering's values are its own copies.
- `tojson` turns a generator into a list, where Python's encoder would fail.
- Nothing random or unbounded: no `random`, `urlize` or `lipsum`; every loop and every growing value is on a budget.
- No other templates can be loaded.

The date comes in with each rendering; nothing here reads a clock of its own.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

import jinja2
from jinja2 import TemplateSyntaxError, nodes
from jinja2.exceptions import SecurityError, TemplateError, TemplateRuntimeError, UndefinedError
from jinja2.ext import Extension
from jinja2.filters import do_batch, do_indent, do_join, do_slice, do_wordwrap
from jinja2.meta import find_undeclared_variables
from jinja2.nodes import EvalContext
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import pass_environment, pass_eval_context

from tidegate.errors import InvalidTemplateInput
from tidegate.text.template_budget import (
    CURRENT_BUDGET,
    RenderBudget,
    RenderLimits,
    charge_binary,
    charge_method,
    check_format,
)

_MAX_PARTS = 100_000
"""The most groups or repetitions that a filter may be asked for, as with `range`."""
_MAX_ERROR_CHARACTERS = 512
LEAST_JINJA = (3, 1, 6)
"""Templates can leave the sandbox of earlier versions (CVE-2025-27516, CVE-2024-56326, CVE-2024-56201)."""
_SURROGATE_SAFE_ASCII = re.compile(r"[^\x00-\x7f\ud800-\udfff]")


def _concat(values: Iterable[object]) -> str:
    texts = [value if isinstance(value, str) else str(value) for value in values]
    CURRENT_BUDGET.get().charge(sum(map(len, texts)))
    return "".join(texts)


def _concat_operands(*values: object) -> str:
    return _concat(values)


class TemplateRefusal(TemplateRuntimeError):
    """The template called `raise_exception`."""


class BrokenTemplate(Exception):
    """The source is not a template that can be used here. The message says why, with the line where known."""


class UnusableTemplate(BrokenTemplate):
    """A valid template that fails on every conversation it was tried with."""


def check_sandbox(version: str) -> None:
    """Raises BrokenTemplate for a version of Jinja whose sandbox does not hold."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if numbers < LEAST_JINJA:
        least = ".".join(map(str, LEAST_JINJA))
        raise BrokenTemplate(f"Jinja2 {version} is installed, and templates can leave its sandbox; {least} is needed")


class _GenerationBlock(Extension):
    """`{% generation %}...{% endgeneration %}` marks the assistant's words for training; here it is its contents."""

    tags = {"generation"}  # noqa: RUF012 the base class declares it so

    def parse(self, parser: Parser) -> nodes.Node:
        lineno = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=lineno)


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox: what it lets a template do, and what each act costs."""

    intercepted_binops = frozenset(("+", "*", "**", "%"))
    concat = staticmethod(_concat)

    def is_safe_attribute(self, obj: object, attr: str, value: object) -> bool:
        if attr in ("append", "pop") and isinstance(obj, list):
            return True
        return super().is_safe_attribute(obj, attr, value)

    def call_binop(self, context: Context, operator: str, left: object, right: object) -> object:
        charge_binary(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def wrap_str_format(self, value: object) -> Callable[..., str] | None:
        wrapped = super().wrap_str_format(value)
        if wrapped is not None:
            check_format(str(getattr(value, "__self__", "")))
        return wrapped

    def call(self, context: Context, obj: object, /, *args: object, **kwargs: object) -> object:
        CURRENT_BUDGET.get().tick()
        owner = getattr(obj, "__self__", None)
        if isinstance(owner, str):
            if args and isinstance(args[0], Iterator):
                args = (list(args[0]), *args[1:])
            charge_method(getattr(obj, "__name__", ""), owner, (*args, *kwargs.values()))
        return super().call(context, obj, *args, **kwargs)


def _raise_exception(message: object) -> str:
    raise TemplateRefusal(str(message))


def _tick() -> str:
    return CURRENT_BUDGET.get().tick()


def _jsonable(value: object) -> object:
    if isinstance(value, Iterator):
        return list(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _escape_ascii(found: re.Match[str]) -> str:
    return json.dumps(found.group())[1:-1]


def _tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as Python writes it. Not ASCII by default, no HTML escapes, keys in their own order."""
    if isinstance(indent, int) and indent > 16:
        raise OverflowError("indent too wide")
    text = json.dumps(
        value, ensure_ascii=False, indent=indent, separators=separators, sort_keys=sort_keys, default=_jsonable
    )
    # Lone surrogates are this package's own marks (see template_guard) and must come through as they are.
    return _SURROGATE_SAFE_ASCII.sub(_escape_ascii, text) if ensure_ascii else text


def _center(value: object, width: int = 80) -> str:
    charge_method("center", str(value), (width,))
    return str(value).center(width)


def _indent(value: object, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    text = str(value)
    num_lines = len(text.splitlines()) + 1
    CURRENT_BUDGET.get().charge(len(text) + num_lines * (width if isinstance(width, int) else len(width)))
    return str(do_indent(text, width, first, blank))


def _format(value: object, *args: object, **kwargs: object) -> str:
    check_format(str(value))
    return str(value) % (kwargs or args)


def _replace(value: object, old: object, new: object, count: int | None = None) -> str:
    charge_method("replace", str(value), (str(old), str(new)))
    return str(value).replace(str(old), str(new), -1 if count is None else count)


@pass_eval_context
def _join(context: EvalContext, value: Iterable[object], d: object = "", attribute: str | int | None = None) -> str:
    items = list(value)
    CURRENT_BUDGET.get().charge(sum(len(item) for item in items if isinstance(item, str)) + len(items) * len(str(d)))
    return str(do_join(context, items, str(d), attribute))


@pass_environment
def _wordwrap(
    environment: _Environment,
    value: object,
    width: int = 79,
    break_long_words: bool = True,
    wrapstring: str | None = None,
    break_on_hyphens: bool = True,
) -> str:
    text = str(value)
    CURRENT_BUDGET.get().charge(len(text) * (1 + len(wrapstring or "\n")))
    return str(do_wordwrap(environment, text, width, break_long_words, wrapstring, break_on_hyphens))


def _check_parts(number: object) -> None:
    if isinstance(number, int) and number > _MAX_PARTS:
        raise OverflowError("too many parts")


def _batch(value: Iterable[object], linecount: int, fill_with: object = None) -> Iterator[list[object]]:
    _check_parts(linecount)
    batches: Iterator[list[object]] = do_batch(value, linecount, fill_with)
    return batches


def _slice(value: Iterable[object], slices: int, fill_with: object = None) -> Iterator[list[object]]:
    _check_parts(slices)
    parts: Iterator[list[object]] = do_slice(list(value), slices, fill_with)
    return parts


def _build_environment() -> _Environment:
    environment = _Environment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationBlock, "jinja2.ext.loopcontrols"]
    )
    for name in ("random", "urlize"):
        del environment.filters[name]
    del environment.globals["lipsum"]
    environment.filters.update(
        tojson=_tojson,
        center=_center,
        indent=_indent,
        format=_format,
        replace=_replace,
        join=_join,
        wordwrap=_wordwrap,
        batch=_batch,
        slice=_slice,
    )
    environment.globals.update(raise_exception=_raise_exception, __tick=_tick, __concat=_concat_operands)
    return environment


_ENVIRONMENT = _build_environment()
GLOBAL_NAMES = frozenset(_ENVIRONMENT.globals) | {"strftime_now"}
"""The functions that every template can call; no caller's variable may take such a name."""


def _instrument(tree: nodes.Template) -> None:
    """Puts a look at the clock into every loop, and the budget into every `~`. Calls are watched by the sandbox."""
    for loop in list(tree.find_all(nodes.For)):
        tick = nodes.Call(nodes.Name("__tick", "load"), [], [], None, None)
        loop.body.insert(0, nodes.ExprStmt(tick, lineno=loop.lineno))
    _replace_concat(tree)
    tree.set_environment(_ENVIRONMENT)


def _replace_concat(node: nodes.Node) -> None:
    for name, value in node.iter_fields():
        if isinstance(value, list):
            setattr(node, name, [_bounded_concat(item) for item in value])
        else:
            setattr(node, name, _bounded_concat(value))


def _bounded_concat(value: object) -> object:
    if isinstance(value, nodes.Node):
        _replace_concat(value)
    if isinstance(value, nodes.Concat):
        return nodes.Call(nodes.Name("__concat", "load"), value.nodes, [], None, None, lineno=value.lineno)
    return value


class CompiledTemplate:
    """A template that has been parsed and compiled, and can be rendered by many threads at once."""

    def __init__(self, source: str, limits: RenderLimits) -> None:
        """Raises BrokenTemplate. `limits` bound the compilation, which may fold constants, as they bound renderings."""
        check_sandbox(jinja2.__version__)
        token = CURRENT_BUDGET.set(RenderBudget(limits))
        try:
            tree = _ENVIRONMENT.parse(source)
            for kind in (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends):
                if (loader := tree.find(kind)) is not None:
                    raise BrokenTemplate(f"line {loader.lineno}: templates cannot load other templates")
            self.variables = frozenset(find_undeclared_variables(tree)) - _ENVIRONMENT.globals.keys()
            """Names that the source reads and that may come from outside."""
            self.constants = frozenset(node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str))
            _instrument(tree)
            code = _ENVIRONMENT.compile(tree)
            self._template = _ENVIRONMENT.template_class.from_code(_ENVIRONMENT, code, _ENVIRONMENT.make_globals(None))
        except TemplateSyntaxError as error:
            raise BrokenTemplate(f"line {error.lineno}: {error.message}") from error
        except (InvalidTemplateInput, TemplateError, RecursionError, OverflowError, SyntaxError, ValueError) as error:
            raise BrokenTemplate(f"{type(error).__name__}: {error}") from error
        finally:
            CURRENT_BUDGET.reset(token)

    def render(self, variables: Mapping[str, object], *, date: datetime, budget: RenderBudget) -> str:
        """Renders with `variables`, which the template may change: they are the caller's to give away.

        Raises InvalidTemplateInput: with the template's own message where it refused, with the limit where the budget
        ran out, else with what went wrong.
        """
        pieces: list[str] = []
        num_characters = 0
        token = CURRENT_BUDGET.set(budget)
        try:
            for piece in self._template.generate(strftime_now=_strftime_of(date), **variables):
                pieces.append(piece)
                num_characters += len(piece)
                budget.check_output(num_characters)
                budget.tick()
        except InvalidTemplateInput:
            raise
        except Exception as error:
            raise InvalidTemplateInput(_explain(error), param="messages") from error
        finally:
            CURRENT_BUDGET.reset(token)
        return "".join(pieces)


def _strftime_of(date: datetime) -> Callable[[str], str]:
    def strftime_now(pattern: str) -> str:
        if len(pattern) > 128:
            raise OverflowError("date format too long")
        check_format(pattern)
        return date.strftime(pattern)

    return strftime_now


def _explain(error: Exception) -> str:
    """Returns words for a caller. Python's own messages may name objects and stay inside."""
    if isinstance(error, TemplateRefusal):
        return f"the chat template refused these messages: {str(error.message)[:_MAX_ERROR_CHARACTERS]}"
    if isinstance(error, SecurityError):
        return "the chat template tried something that is not allowed"
    detail = f": {str(error.message)[:_MAX_ERROR_CHARACTERS]}" if isinstance(error, UndefinedError) else ""
    return f"the chat template cannot be applied to these messages ({type(error).__name__}{detail})"
