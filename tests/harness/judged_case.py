"""Cases of the suite against right servers, and against mutants of them."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from harness.broken_server import BrokenServer
from harness.embeddings_server import MODEL as EMBEDDER
from harness.embeddings_server import EmbeddingsServer
from harness.hurried_case import MUTANT_PATIENCE_S, hurried
from harness.keys import add_key
from harness.mutant import Base, Mutant
from harness.server_process import ServerProcess
from harness.state_folder import lend_state_folder
from tidegate.conformance.case import Case, Turn
from tidegate.conformance.catalog import CASES
from tidegate.conformance.probing.capability import Capability
from tidegate.conformance.probing.probed import Probed
from tidegate.conformance.running.runner import Result, Runner
from tidegate.conformance.verdict import Outcome
from tidegate.conformance.wire.target import Target

Mutants = Mapping[str, Sequence[Mutant]]
"""Id of a case to the mutants that it must catch."""

SCRIPTED_ONLY = frozenset({Capability.SCRIPT})


HEARTBEAT_S = 0.4
ADMIN_TOKEN = "0123456789abcdef0123456789abcdef"


def _write_admin_token(folder: str) -> str:
    path = Path(folder) / "admin-token"
    path.write_text(ADMIN_TOKEN)
    path.chmod(0o600)
    return str(path)


@dataclass(frozen=True, slots=True)
class RightServer:
    """A server of ours and how it is asked."""

    target: Target
    probed: Probed
    port: int
    admin_port: int


class RightServers:
    """Right servers of one test module, each started when it is first needed. Used as a context manager."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._running: dict[Base, RightServer] = {}

    def __enter__(self) -> "RightServers":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def of(self, base: Base) -> RightServer:
        """Returns the server, running."""
        if base not in self._running:
            self._running[base] = self._start(base)
        return self._running[base]

    def fit_for(self, case: Case, base: Base) -> RightServer:
        """Returns a server for the case: one of its own where it does not serve afterwards."""
        return self._start(base) if case.turn is Turn.LAST else self.of(base)

    def _start(self, base: Base) -> RightServer:
        if base == "embeddings":
            return self._start_embeddings()
        engine = "simulated" if base == "simulated" else "scripted"
        state_dir = lend_state_folder(self)
        key = add_key(state_dir, "judge") if base == "keyed" else None
        settings: dict[str, object] = {"auth__admin_token_file": _write_admin_token(state_dir)} if key else {}
        settings |= {"model__min_dimensions": 1} if base == "simulated" else {}
        settings |= {"server__heartbeat_s": HEARTBEAT_S} if base == "restless" else {}
        server = self._stack.enter_context(ServerProcess(engine, server__state_dir=state_dir, **settings))
        absent = frozenset() if engine == "scripted" else SCRIPTED_ONLY
        absent |= frozenset() if key else frozenset({Capability.AUTH})
        probed = Probed(engine, frozenset(Capability) - absent, {}, engine == "scripted", True)
        target = Target(
            base_url=f"http://127.0.0.1:{server.port}/v1",
            api_key=key,
            model=engine,
            admin_url=f"http://127.0.0.1:{server.admin_port}",
            admin_token=ADMIN_TOKEN if key else None,
            may_drain=True,
            timeout_s=20.0,
        )
        return RightServer(target, probed, server.port, server.admin_port)

    def _start_embeddings(self) -> RightServer:
        port = self._stack.enter_context(EmbeddingsServer()).port
        probed = Probed(EMBEDDER, frozenset({Capability.EMBEDDINGS}), {}, False, False)
        return RightServer(Target(base_url=f"http://127.0.0.1:{port}/v1", model=EMBEDDER), probed, port, port)


@contextmanager
def mutated(right: RightServer, mutant: Mutant) -> Iterator[RightServer]:
    """The same server, one of its listeners behind a mutant."""
    port = right.admin_port if mutant.is_admin else right.port
    with BrokenServer(port, mutant) as broken:
        if mutant.is_admin:
            yield replace(right, target=replace(right.target, admin_url=f"http://127.0.0.1:{broken.port}"))
            return
        target = replace(right.target, base_url=f"http://127.0.0.1:{broken.port}/v1")
        yield replace(right, target=target, port=broken.port)


def run_case(case: Case, server: RightServer) -> Result:
    """Returns what comes of one case."""
    report = asyncio.run(Runner(server.target).run([case], server.probed))
    return report.results[0]


def cases_of(*areas: str) -> list[Case]:
    """Returns the cases of the named areas."""
    return [case for case in CASES if case.area in areas]


def judged(
    areas: Sequence[str],
    *mutants: Mutants,
    bases: Mapping[str, Base] | None = None,
    hurry: float = 1.0,
    hurries_scripts: bool = False,
) -> Any:
    """Returns what a test module of these areas consists of: the fixture `servers`, and three tests. `bases`: right
    servers, by id of the case, that are not the scripted one. `hurry`: factor of all times, see `hurried_case.py`;
    `hurries_scripts`: of those within scripts too.
    """
    by_case = {case_id: rows for part in mutants for case_id, rows in part.items()}

    @pytest.fixture(scope="module")
    def servers() -> Iterator[RightServers]:
        with RightServers() as running:
            yield running

    @pytest.mark.process
    @pytest.mark.parametrize(("case", "base"), _right_rows(areas, bases or {}))
    def test_the_case_holds_on_a_right_server(servers: RightServers, case: Case, base: Base) -> None:
        _assert_holds(hurried(case, hurry, with_scripts=hurries_scripts), base, servers)

    @pytest.mark.process
    @pytest.mark.parametrize(("case", "mutant"), _mutant_rows(areas, by_case))
    def test_the_case_catches_its_mutant(servers: RightServers, case: Case, mutant: Mutant) -> None:
        patience_s = MUTANT_PATIENCE_S if hurry < 1 else None
        short = hurried(case, hurry, patience_s=patience_s, with_scripts=hurries_scripts)
        _assert_caught(short, mutant, servers)

    def test_each_case_has_a_mutant() -> None:
        _assert_each_has_a_mutant(areas, by_case)

    return (
        servers,
        test_the_case_holds_on_a_right_server,
        test_the_case_catches_its_mutant,
        test_each_case_has_a_mutant,
    )


def _right_rows(areas: Sequence[str], bases: Mapping[str, Base]) -> list[object]:
    """Returns a parameter for each case: the case and the right server it is run on."""
    return [pytest.param(case, bases.get(case.id, "scripted"), id=case.id) for case in cases_of(*areas)]


def _mutant_rows(areas: Sequence[str], mutants: Mutants) -> list[object]:
    """Returns a parameter for each mutant of each case."""
    return [
        pytest.param(case, mutant, id=f"{case.id}: {mutant.says}")
        for case in cases_of(*areas)
        for mutant in mutants.get(case.id, ())
    ]


def _assert_holds(case: Case, base: Base, servers: RightServers) -> None:
    """The case passes on a right server."""
    result = run_case(case, servers.fit_for(case, base))
    assert result.verdict.outcome is Outcome.PASS, result.verdict


def _assert_caught(case: Case, mutant: Mutant, servers: RightServers) -> None:
    """The case fails on the mutant, by its own checks and not because nothing came."""
    with mutated(servers.fit_for(case, mutant.base), mutant) as broken:
        result = run_case(case, broken)
    assert result.verdict.outcome is Outcome.FAIL, (mutant.says, result.verdict)


def _assert_each_has_a_mutant(areas: Sequence[str], mutants: Mutants) -> None:
    """No case is without a mutant, and no mutant without a case."""
    ids = {case.id for case in cases_of(*areas)}
    assert ids - mutants.keys() == set(), "cases without a mutant"
    assert mutants.keys() - ids == set(), "mutants without a case"
