"""An event loop whose time is a `ManualClock`: where it would sleep, it moves the clock, and nothing takes time.

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
        runner.run(main())

For code that waits for timers and for itself only: no threads, no sockets. A wait for what can never come raises.
"""

import asyncio
import selectors

from tidegate.testing.manual_clock import ManualClock


class _JumpingSelector(selectors.SelectSelector):
    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("everything waits, and nothing will ever happen")
            self._clock.advance_to(round(self._clock.now() + timeout, 9))
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """See the module. `clock` may be shared with what the code under test asks for the time."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        super().__init__(_JumpingSelector(clock))

    def time(self) -> float:
        return self.clock.now()
