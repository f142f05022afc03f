"""Streams with an idempotency key: recorded before their last bytes, replayed byte for byte, released otherwise."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from harness.idempotent_site import DONE, KEPT, Site, drink, is_replay, run_site
from tidegate.errors import DeadlineExceeded, EngineLost, IdempotencyKeyInUse
from tidegate.lifecycle.ledger import EntryState
from tidegate.serving.answer_recorder import MAX_RECORDING_BYTES
from tidegate.serving.replay_stream import PIECE_BYTES
from tidegate.serving.reply import StreamReply, WholeReply

ONE, TWO = b'data: {"a":1}\n\n', b'data: {"a":2}\n\n'


async def open_stream(site: Site) -> StreamReply:
    reply = await site.ask()
    assert not isinstance(reply, WholeReply)
    return reply


def states(site: Site) -> list[EntryState]:
    return [entry.state for entry in site.store.entries.values()]


def test_a_finished_stream_replays_the_same_bytes() -> None:  # IDEM-2 IDEM-10
    async def test(site: Site) -> None:
        stream = site.worker.stream(ONE, b"", TWO, b"", TWO + DONE)
        first = await open_stream(site)
        assert await first.take() == ONE
        first.nudge()
        assert await first.take() == b""
        assert stream.num_nudges == 1
        assert await drink(first) == TWO + TWO + DONE
        assert stream.causes == ["done"]
        for _ in range(2):
            again = await open_stream(site)
            assert is_replay(again)
            assert again.headers == [*KEPT, ("Idempotent-Replayed", "true")]
            assert await drink(again) == ONE + TWO + TWO + DONE
        assert site.worker.num_runs == 1
        assert [facts.outcome for facts in site.facts.ended] == ["replayed", "replayed"]
        assert site.recorder.num_recording_bytes == 0

    run_site(test)


def test_it_is_recorded_before_the_last_bytes_go_out() -> None:  # IDEM-10
    async def test(site: Site) -> None:
        site.worker.stream(ONE, TWO + DONE)
        reply = await open_stream(site)
        await reply.take()
        assert states(site) == [EntryState.PENDING]
        await reply.take()
        assert states(site) == [EntryState.SETTLED]

    run_site(test)


def test_while_it_runs_others_are_told_so() -> None:  # IDEM-4 IDEM-10
    async def test(site: Site) -> None:
        gate = asyncio.Event()
        site.worker.stream(ONE, gate, DONE)
        reply = await open_stream(site)
        await reply.take()
        with pytest.raises(IdempotencyKeyInUse):
            await site.ask()
        gate.set()
        await drink(reply)
        assert is_replay(await open_stream(site))

    run_site(test)


@pytest.mark.parametrize("cause", ["client_gone", "slow_client", "shutdown"])
def test_a_cancelled_stream_runs_afresh(cause: str) -> None:  # IDEM-10
    async def test(site: Site) -> None:
        stream = site.worker.stream(ONE, TWO, DONE)
        reply = await open_stream(site)
        await reply.take()
        reply.close(cause)
        assert stream.causes == [cause]
        await site.rest()
        site.worker.stream(TWO, DONE)
        assert await drink(await open_stream(site)) == TWO + DONE
        assert site.worker.num_runs == 2
        assert site.facts.claim_ends == ["released", "recorded"]

    run_site(test)


@pytest.mark.parametrize("error", [EngineLost("no"), DeadlineExceeded("no"), RuntimeError("no")])
def test_a_failed_stream_is_released_before_its_reader_hears_of_it(error: Exception) -> None:  # IDEM-6
    async def test(site: Site) -> None:
        site.worker.stream(ONE, error)
        reply = await open_stream(site)
        await reply.take()
        with pytest.raises(type(error)):
            await reply.take()
        assert states(site) == []
        reply.close("done")
        site.worker.stream(TWO, DONE)
        assert not is_replay(await open_stream(site))

    run_site(test)


def test_all_streams_together_are_bounded() -> None:  # IDEM-9
    async def test(site: Site) -> None:
        site.recorder.num_recording_bytes = MAX_RECORDING_BYTES - len(ONE)  # what others hold
        site.worker.stream(ONE, TWO, DONE)
        assert await drink(await open_stream(site)) == ONE + TWO + DONE
        assert site.facts.claim_ends == ["too_large"]
        assert site.recorder.num_recording_bytes == MAX_RECORDING_BYTES - len(ONE)

    run_site(test)


def test_a_stream_that_ends_without_its_end_is_not_recorded() -> None:
    async def test(site: Site) -> None:
        site.worker.stream(ONE, b'data: {"text":"data: [DONE]"}\n\n')
        await drink(await open_stream(site))
        await site.rest()
        assert states(site) == []

    run_site(test)


def test_a_reader_who_leaves_while_it_is_recorded_gets_it_later() -> None:  # IDEM-10
    async def test(site: Site) -> None:
        site.worker.stream(ONE, DONE)
        reply = await open_stream(site)
        await reply.take()
        taking = asyncio.create_task(reply.take())
        await asyncio.sleep(0)
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking
        reply.close("client_gone")
        await site.rest()
        assert await drink(await open_stream(site)) == ONE + DONE
        assert site.worker.num_runs == 1

    run_site(test)


def test_cancelling_a_take_loses_nothing() -> None:
    async def test(site: Site) -> None:
        site.worker.stream(ONE, DONE)
        reply = await open_stream(site)
        await reply.take()
        taking = asyncio.create_task(reply.take())
        await asyncio.sleep(0)
        taking.cancel()
        await asyncio.gather(taking, return_exceptions=True)
        assert [await reply.take(), await reply.take()] == [DONE, None]

    run_site(test)


def test_a_client_who_leaves_before_the_answer_leaves_no_claim() -> None:
    async def test(site: Site) -> None:
        async def answer() -> WholeReply:
            await asyncio.Event().wait()
            raise AssertionError

        site.worker.answer = answer
        asking = asyncio.create_task(site.ask())
        while not site.worker.num_runs:
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await site.rest()
        assert states(site) == []

    run_site(test)


def test_a_client_who_leaves_while_the_key_is_looked_up_leaves_no_claim() -> None:
    async def test(site: Site) -> None:
        asking = asyncio.create_task(site.ask())
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await site.rest()
        assert (states(site), site.worker.num_runs) == ([], 0)
        assert [facts.outcome for facts in site.facts.ended] == ["client_gone"]

    run_site(test)


def test_a_long_stream_is_replayed_in_pieces_that_end_with_an_event() -> None:
    async def test(site: Site) -> None:
        site.recorder.max_answer_bytes = 1 << 20
        site.worker.stream(ONE * 20_000, DONE)
        await drink(await open_stream(site))
        reply = await open_stream(site)
        pieces = [piece async for piece in _pieces(reply)]
        assert b"".join(pieces) == ONE * 20_000 + DONE
        assert all(len(piece) <= PIECE_BYTES and piece.endswith(b"\n\n") for piece in pieces)
        reply.close("client_gone")
        reply.close("done")
        assert await reply.take() is None
        assert [facts.outcome for facts in site.facts.ended] == ["replayed"]

    run_site(test)


async def _pieces(reply: StreamReply) -> AsyncIterator[bytes]:
    while (piece := await reply.take()) is not None:
        yield piece
