"""`tidegate bench`: puts load on a server, or on two in turns, and reports times, rates and errors."""

import json
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidegate.cli.bench_run import Job, run_bench
from tidegate.loadtest.answer_schemas import SCHEMAS
from tidegate.loadtest.arrivals import Arrival
from tidegate.loadtest.length import Length, read_length
from tidegate.loadtest.orders import Bounds, Load, Orders
from tidegate.loadtest.reports.renderers import RENDERERS
from tidegate.loadtest.requirement import Requirement, read_requirement
from tidegate.loadtest.session_file import MAX_FILE_BYTES, SessionFileError, read_sessions
from tidegate.loadtest.slo import Slo
from tidegate.loadtest.target import Target, TargetError, check_key, read_base_url
from tidegate.loadtest.workloads import Kind, Workload
from tidegate.reporting.report_file import ReportError, check_report_path

MAX_SESSIONS = 100_000
MAX_CLIENTS = 4096
DEFAULT_KINDS = [kind.value for kind in Kind if kind is not Kind.FILE]
Value = TypeVar("Value")


if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType


class _Read(_ParamType):
    """An option whose text `read` turns into a value; its ValueError is what the user is told."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except (ValueError, TargetError) as error:
            self.fail(str(error), param, ctx)


def _read_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


HEADINGS = {
    "Servers": ("base_url", "api_key", "model", "against", "against_api_key", "against_model", "api"),
    "Load": ("clients", "rate", "arrival", "max_in_flight", "requests", "runs", "warmup", "duration"),
    "Bounds": ("timeout", "max_time", "max_tokens"),
    "Workload": (
        "workload", "input_tokens", "output_tokens", "prefix_tokens", "num_prefixes", "turns", "long_input_tokens",
        "long_every", "schema_file", "ignore_eos", "temperature", "extra_body", "seed",
    ),
    "What is good enough": ("slo_ttft", "slo_itl", "slo_tpot", "slo_e2e", "requirements", "allow_errors"),
    "Reports": ("reports", "plots"),
}  # fmt: skip


class _BenchCommand(click.Command):
    """Shows its flags under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        parameters = {parameter.name: parameter for parameter in self.params}
        for heading, names in HEADINGS.items():
            records = [parameters[name].get_help_record(ctx) for name in names]
            if heading == "Reports" and (help_option := self.get_help_option(ctx)) is not None:
                records.append(help_option.get_help_record(ctx))
            with formatter.section(heading):
                formatter.write_dl([record for record in records if record is not None], col_max=28)


_LENGTH = _Read("tokens", read_length)
_URL = _Read("url", read_base_url)
_KEY = _Read("key", lambda text: check_key(text) or "")
_OBJECT = _Read("json", _read_object)
_REQUIREMENT = _Read("requirement", read_requirement)
_POSITIVE = click.FloatRange(min=0, min_open=True)
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(cls=_BenchCommand)
@click.option(
    "--base-url", required=True, type=_URL, metavar="URL", help="address of the API: http://127.0.0.1:8000/v1"
)
@click.option("--api-key", type=_KEY, metavar="KEY", envvar="TIDEGATE_API_KEY", help="bearer token [TIDEGATE_API_KEY]")
@click.option("--model", default="", metavar="NAME", help="default: the first that GET /v1/models names")
@click.option("--against", type=_URL, metavar="URL", help="a second server, measured in turns with the first")
@click.option("--against-api-key", type=_KEY, metavar="KEY", help="its key; default: --api-key")
@click.option("--against-model", default="", metavar="NAME", help="its model; default: the first that it names")
@click.option("--api", type=click.Choice(["chat", "completions"]), default="chat", show_default=True)
@click.option(
    "--workload",
    default="fixed",
    show_default=True,
    metavar="KIND|FILE.jsonl",
    help=f"{', '.join(DEFAULT_KINDS)}, or a file with one request body a line",
)
@click.option(
    "--clients", type=click.IntRange(1, MAX_CLIENTS), help="closed loop: so many ask, and ask again (default 1)"
)
@click.option("--rate", type=_POSITIVE, help="open loop: so many sessions begin each second, answered or not")
@click.option("--arrival", type=click.Choice([each.value for each in Arrival]), default="poisson", show_default=True)
@click.option(
    "--max-in-flight", type=click.IntRange(1, MAX_CLIENTS), default=512, show_default=True, help="of an open loop"
)
@click.option(
    "--requests", type=click.IntRange(1, MAX_SESSIONS), default=100, show_default=True, help="(sessions) of a run"
)
@click.option("--runs", type=click.IntRange(1, 100), help="on each server; default: 3, or 5 with --against")
@click.option(
    "--warmup", type=click.IntRange(0, MAX_SESSIONS), help="requests that do not count; default: one a client"
)
@click.option("--duration", type=_POSITIVE, metavar="S", help="of a run: after it nothing new starts")
@click.option("--timeout", type=_POSITIVE, default=600.0, show_default=True, metavar="S", help="of a request")
@click.option("--max-time", type=_POSITIVE, default=1800.0, show_default=True, metavar="S", help="of everything")
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    default=1_000_000,
    show_default=True,
    help="of everything, prompts and answers; what may cost more does not start",
)
@click.option("--input-tokens", type=_LENGTH, default="128", show_default=True, help="of a prompt: 128 or 64-256")
@click.option("--output-tokens", type=_LENGTH, default="64", show_default=True, help="max_tokens of an answer")
@click.option("--prefix-tokens", type=click.IntRange(1), default=512, show_default=True, help="shared by many prompts")
@click.option("--num-prefixes", type=click.IntRange(1, 10_000), default=1, show_default=True, help="different ones")
@click.option("--turns", type=click.IntRange(1, 100), default=4, show_default=True, help="of an agent's conversation")
@click.option(
    "--long-input-tokens", type=_LENGTH, default="1024", show_default=True, help="of the long ones of `mixed`"
)
@click.option("--long-every", type=click.IntRange(2), default=5, show_default=True, help="one in so many is long")
@click.option(
    "--schema", "schema_file", type=_FILE, metavar="FILE", help="JSON Schema of `constrained`; default: four of ours"
)
@click.option("--ignore-eos", is_flag=True, help="answers are as long as allowed; not every server knows it")
@click.option("--temperature", type=click.FloatRange(0, 2), default=0.0, show_default=True)
@click.option("--extra-body", type=_OBJECT, default="{}", metavar="JSON", help="more members of each request")
@click.option("--slo-ttft", type=_POSITIVE, metavar="MS", help="a good request: its first token comes within this")
@click.option("--slo-itl", type=_POSITIVE, metavar="MS", help="... and no gap between pieces of text is longer")
@click.option("--slo-tpot", type=_POSITIVE, metavar="MS", help="... and the mean time a token is at most this")
@click.option("--slo-e2e", type=_POSITIVE, metavar="MS", help="... and it ends within this")
@click.option(
    "--require",
    "requirements",
    multiple=True,
    type=_REQUIREMENT,
    metavar="NUMBER<=BOUND",
    help="else the exit status is 1; of two servers, a bound on the ratio; may be given again",
)
@click.option("--allow-errors", type=click.FloatRange(0, 1), default=0.0, show_default=True, help="share of requests")
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), metavar="N", help="of prompts and arrivals; default: a new one"
)
@click.option(
    "--report",
    "reports",
    multiple=True,
    type=_FILE,
    metavar="FILE",
    help="write FILE.html, .json or .md; may be given again",
)
@click.option(
    "--plots", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER", help="write the plots as SVG"
)
def bench(**options: Any) -> None:
    """Put load on any OpenAI-compatible server, and say how it fares.

    All requests are streamed. Measured are the time to the first token (ttft), the gaps between pieces of text (itl),
    the mean time a token (tpot), the time to the end (e2e), requests and output tokens a second, errors by kind, and,
    with --slo-..., how many requests were good (goodput). Times of an open loop count from when a request was due.

    \b
    Closed loop (--clients N): N callers, each of whom asks again when answered. Shows throughput.
    Open loop (--rate R): callers come whether or not others are answered. Shows what users would feel.

    \b
    Workloads: fixed (prompts of their own), shared-prefix (a long system message, many prompts behind it), agent
    (conversations that grow), mixed (long prompts beside short streams: look at short.itl_p99 and short.itl_max),
    constrained (JSON Schema), or FILE.jsonl with request bodies of yours.

    \b
    With --against a second server is asked the same, run by run in turns; every number gets a ratio, first over
    second, with its spread over the runs. Names for --require: requests_per_s, output_tokens_per_s, goodput_per_s,
    good_share, error_share, and ttft, itl, tpot, e2e with _p50, _p90, _p95, _p99, and itl_max, in seconds, or with ms.

    \b
    Exit status: 0 measured, 1 a requirement is not met or requests failed, 2 nothing could be measured,
    130 interrupted (what was measured is reported).

    \b
    Examples
      tidegate bench --base-url http://127.0.0.1:8000/v1
      tidegate bench --base-url http://127.0.0.1:8000/v1 --clients 8 --requests 64 --report bench.html
      tidegate bench --base-url http://127.0.0.1:8000/v1 --rate 2 --slo-ttft 500 --slo-itl 100
      tidegate bench --base-url http://127.0.0.1:8000/v1 --against http://127.0.0.1:9000/v1 \\
          --clients 8 --runs 5 --require 'output_tokens_per_s>=1.0' --require 'ttft_p50<=1.0'
    """
    sys.exit(run_bench(_job(options)))


def _job(options: dict[str, Any]) -> Job:
    if options["clients"] is not None and options["rate"] is not None:
        raise click.UsageError("--clients is a closed loop and --rate an open one: give one of them")
    for path in options["reports"]:
        try:
            check_report_path(path, RENDERERS)
        except ReportError as error:
            raise click.UsageError(f"--report {error}") from None
    requirements: tuple[Requirement, ...] = options["requirements"]
    if options["against"] is not None and any(each.is_time for each in requirements):
        raise click.UsageError("--require with ms: of two servers it is ratios that are judged, like ttft_p50<=1.0")
    num_clients = options["clients"] or 1
    warm = options["warmup"]
    return Job(
        targets=_targets(options),
        orders=Orders(
            workload=_workload(options),
            load=Load(
                num_clients=num_clients,
                rate=options["rate"],
                arrival=options["arrival"],
                max_in_flight=options["max_in_flight"],
            ),
            bounds=Bounds(
                num_sessions=options["requests"],
                num_runs=options["runs"] or (3 if options["against"] is None else 5),
                num_warm=num_clients if warm is None else warm,
                duration_s=options["duration"],
                timeout_s=options["timeout"],
                max_time_s=options["max_time"],
                max_tokens=options["max_tokens"],
            ),
        ),
        slo=Slo(**{f"{name}_s": _seconds(options[f"slo_{name}"]) for name in ("ttft", "itl", "tpot", "e2e")}),
        requirements=requirements,
        allowed_errors=options["allow_errors"],
        reports=options["reports"],
        plots=options["plots"],
    )


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _targets(options: dict[str, Any]) -> tuple[Target, ...]:
    extra = {**({"ignore_eos": True} if options["ignore_eos"] else {}), **options["extra_body"]}
    shared = {"api": options["api"], "temperature": options["temperature"], "extra": extra}
    key = options["api_key"] or None
    first = Target(label="first", base_url=options["base_url"], model=options["model"], api_key=key, **shared)
    if options["against"] is None:
        return (Target(label="server", base_url=first.base_url, model=first.model, api_key=key, **shared),)
    other_key = options["against_api_key"] or key
    model = options["against_model"]
    return first, Target(label="second", base_url=options["against"], model=model, api_key=other_key, **shared)


def _workload(options: dict[str, Any]) -> Workload:
    name: str = options["workload"]
    output: Length = options["output_tokens"]
    is_known = name in DEFAULT_KINDS
    seed = secrets.randbelow(2**32) if options["seed"] is None else options["seed"]
    schema = _read_file(options["schema_file"], "--schema", _read_object) if options["schema_file"] else None
    return Workload(
        kind=Kind(name) if is_known else Kind.FILE,
        seed=seed,
        input=options["input_tokens"],
        output=output,
        prefix_tokens=options["prefix_tokens"],
        num_prefixes=options["num_prefixes"],
        num_turns=options["turns"],
        long_input=options["long_input_tokens"],
        long_every=options["long_every"],
        file=() if is_known else _read_file(Path(name), "--workload", lambda text: read_sessions(text, output.high)),
        schemas=SCHEMAS if schema is None else (schema,),
    )


def _read_file(path: Path, flag: str, read: Callable[[str], Value]) -> Value:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise click.UsageError(f"{flag} {path}: more than {MAX_FILE_BYTES} bytes")
        return read(path.read_text("utf-8"))
    except OSError as error:
        hint = f" (and no workload is called so: {', '.join(DEFAULT_KINDS)})" if flag == "--workload" else ""
        raise click.UsageError(f"{flag} {path}: {error.strerror}{hint}") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"{flag} {path}: not UTF-8") from None
    except (SessionFileError, ValueError) as error:
        raise click.UsageError(f"{flag} {path}: {error}") from None
