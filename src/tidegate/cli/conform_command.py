"""`tidegate conform`: asks a server every case of the suite and says what came of it."""

import asyncio
import sys
from fnmatch import fnmatch

import click

from tidegate.conformance.catalog import CASES
from tidegate.conformance.probe import NoServerError
from tidegate.conformance.run_report import Result
from tidegate.conformance.runner import Runner
from tidegate.conformance.target import Target, TargetError, read_base_url
from tidegate.conformance.verdict import Outcome


@click.command()
@click.option("--base-url", required=True, metavar="URL", help="address of the API, like http://127.0.0.1:8000/v1")
@click.option("--api-key", metavar="KEY", help="sent as Authorization: Bearer KEY")
@click.option("--model", default="", metavar="NAME", help="default: the first that GET /v1/models names")
@click.option("--admin-url", metavar="URL", help="Tidegate's admin listener")
@click.option("--only", multiple=True, metavar="PATTERN", help="run only cases whose id matches, like 'stream.*'")
@click.option("--jobs", default=4, show_default=True, help="cases that run at once")
def conform(
    base_url: str, api_key: str | None, model: str, admin_url: str | None, only: tuple[str, ...], jobs: int
) -> None:
    """Judge any OpenAI-compatible server. Exit status: 0 all passed, 1 failures, 2 could not run."""

    def tell(result: Result) -> None:
        print(f"{result.verdict.outcome.value:13}{result.case.id}  {result.verdict.reason}")
        for fault in result.verdict.faults:
            print(f"    {fault.ask}[{fault.copy}]: {fault.says}")

    cases = [case for case in CASES if not only or any(fnmatch(case.id, pattern) for pattern in only)]
    try:
        target = Target(base_url=read_base_url(base_url), api_key=api_key, model=model, admin_url=admin_url)
        report = asyncio.run(Runner(target, jobs=jobs, tell=tell).run(cases))
    except (TargetError, NoServerError) as error:
        print(f"tidegate conform: {error}", file=sys.stderr)
        sys.exit(2)
    sys.exit(int(any(result.verdict.outcome is Outcome.FAIL for result in report.results)))
