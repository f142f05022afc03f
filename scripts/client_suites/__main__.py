"""Runs suites and scenarios of clients that others wrote against servers of ours, each in its own environment.

    python scripts/client_suites                     all of them
    python scripts/client_suites instructor,llm      these

Prints a table, which also lies in `build/client-suites/table.md`, and ends with 1 unless every client could be tried
and nothing failed that is not listed in `clients.py`. docs/clients.md tells more.
"""

import sys
from pathlib import Path

from clients import Client, chosen
from environments import (
    BUILD,
    ROOT,
    EnvironmentTroubleError,
    alone,
    installed_version,
    make_environment,
    run_client,
    run_snippet,
)
from outcomes import Verdict, judge, read_outcomes, table
from servers import both_servers
from snippets import snippets_of

PAGE = ROOT / "docs" / "clients.md"


def say(text: str) -> None:
    sys.stderr.write(f"==> {text}\n")
    sys.stderr.flush()


def prepare(clients: tuple[Client, ...]) -> tuple[dict[str, Path], list[Verdict]]:
    """Makes all environments; returns their folders, and a verdict for each that cannot be made."""
    folders, troubles = {}, []
    for client in clients:
        say(f"environment of {client.name}")
        try:
            folders[client.name] = make_environment(client)
        except EnvironmentTroubleError as fault:
            troubles.append(Verdict(client.name, "-", trouble=str(fault)))
    return folders, troubles


def try_client(client: Client, folder: Path, addresses: dict[str, str]) -> Verdict:
    version = installed_version(client, folder)
    say(f"{client.name} {version}: {client.scenario}")
    snippets = snippets_of(PAGE.read_text("utf-8"), addresses["REAL_URL"], addresses["REAL_MODEL"])
    try:
        outcomes = read_outcomes(run_client(client, folder, addresses))
    except EnvironmentTroubleError as fault:
        return Verdict(client.name, version, trouble=str(fault))
    outcomes.append(run_snippet(snippets[client.name], folder))
    return judge(client.name, version, outcomes, client.exceptions)


def main() -> int:
    clients = chosen(",".join(sys.argv[1:]))
    with alone():
        verdicts = try_all(clients)
        result = table(verdicts)
        (BUILD / "table.md").write_text(result + "\n", "utf-8")
    sys.stdout.write(result + "\n")
    return 0 if all(verdict.is_good for verdict in verdicts) else 1


def try_all(clients: tuple[Client, ...]) -> list[Verdict]:
    folders, verdicts = prepare(clients)
    runnable = [client for client in clients if client.name in folders]
    if runnable:
        with both_servers() as addresses:
            verdicts += [try_client(client, folders[client.name], addresses) for client in runnable]
    return verdicts


if __name__ == "__main__":
    sys.exit(main())
