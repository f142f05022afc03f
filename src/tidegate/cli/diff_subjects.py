"""What `tidegate diff` compares: servers that are asked, and recordings."""

from collections.abc import Sequence

from tidegate.cli.conform_progress import ProgressView
from tidegate.conformance.case import Case
from tidegate.conformance.probing.probed import Probed
from tidegate.conformance.recording.format import Recording
from tidegate.conformance.recording.replay import replay
from tidegate.conformance.running.run_report import RunReport
from tidegate.conformance.running.runner import Runner
from tidegate.conformance.wire.target import Target


class LiveSubject:
    """A server that is asked. What it can do is found out anew for each asking but the first."""

    can_ask = True
    holds = None

    def __init__(self, target: Target, jobs: int) -> None:
        self._target = target
        self._jobs = jobs
        self._probed: Probed | None = None

    @property
    def name(self) -> str:
        """Its address."""
        return self._target.base_url

    async def has_contract(self) -> bool:
        """Whether it shows Tidegate's contract. Raises NoServerError."""
        self._probed = await Runner(self._target, jobs=self._jobs).probe()
        return self._probed.has_contract

    async def ask(self, cases: Sequence[Case]) -> RunReport:
        """Runs the cases and shows how far it is. Raises NoServerError."""
        with ProgressView(len(cases)) as view:
            runner = Runner(self._target, jobs=self._jobs, tell=view.count)
            probed = self._probed or await runner.probe()
            self._probed = None
            return await runner.run(cases, probed)


class RecordedSubject:
    """A recording: it says the same each time."""

    can_ask = False

    def __init__(self, name: str, recording: Recording) -> None:
        self._name = name
        self._recording = recording

    @property
    def name(self) -> str:
        """Its folder."""
        return self._name

    @property
    def holds(self) -> frozenset[str]:
        """Ids of the cases that were recorded."""
        return frozenset(self._recording.manifest.cases)

    async def has_contract(self) -> bool:
        """Whether the recorded server showed Tidegate's contract."""
        return self._recording.manifest.probed.has_contract

    async def ask(self, cases: Sequence[Case]) -> RunReport:
        """Returns the recorded answers, judged by the cases of today."""
        return replay(self._recording, cases)
