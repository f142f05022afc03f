"""LoopLagProbe: a loop that is kept busy is noticed, one that is not says little, and nothing is left behind."""

import asyncio
import time

from tidegate.cli.loop_lag import PERIOD_S, LoopLagProbe

BUSY_S = 3 * PERIOD_S


def test_a_loop_that_is_kept_busy_is_seen_to_lag() -> None:  # LIFE-4
    async def scene() -> list[float]:
        lags: list[float] = []
        noted = asyncio.Event()

        def note(lag_s: float) -> None:
            lags.append(lag_s)
            noted.set()

        probe = LoopLagProbe(note)
        probe.start()
        time.sleep(BUSY_S)  # noqa: ASYNC251 this is the fault
        await noted.wait()
        probe.stop()
        probe.stop()
        assert len(asyncio.all_tasks()) == 1
        return lags

    lags = asyncio.run(scene())
    assert lags[0] >= BUSY_S - PERIOD_S


def test_it_measures_again_and_again_until_it_is_stopped() -> None:
    async def scene() -> list[float]:
        lags: list[float] = []
        enough = asyncio.Event()

        def note(lag_s: float) -> None:
            lags.append(lag_s)
            if len(lags) == 3:
                probe.stop()
                enough.set()

        probe = LoopLagProbe(note)
        probe.start()
        await enough.wait()
        return lags

    lags = asyncio.run(scene())
    assert len(lags) == 3
    assert all(lag >= 0 for lag in lags)
