"""IdempotentService over a ledger in memory: who runs, who is told what, and what is recorded when."""

import asyncio
import json

import pytest

from harness.idempotent_site import BODY, DONE, KEPT, RULES, Site, drink, is_replay, run_site
from tidegate.errors import (
    EngineLost,
    IdempotencyKeyInUse,
    IdempotencyKeyReuse,
    InvalidJson,
    InvalidValue,
    NoCapacity,
    ServeError,
    UnsupportedParameter,
)
from tidegate.lifecycle.ledger import EntryState
from tidegate.lifecycle.ledger_rules import LedgerRules
from tidegate.serving.call import Call
from tidegate.serving.idempotent_service import IdempotentService
from tidegate.serving.reply import Reply, WholeReply


def test_without_the_header_nothing_changes() -> None:  # IDEM-1
    async def test(site: Site) -> None:
        assert [(await site.whole(None)).body for _ in range(2)] == [b'{"run":1}', b'{"run":2}']
        assert site.facts.answered == []
        assert site.store.entries == {}

    run_site(test)


def test_a_finished_request_is_replayed_without_a_run() -> None:  # IDEM-2
    async def test(site: Site) -> None:
        first = await site.whole()
        assert [entry.state for entry in site.store.entries.values()] == [EntryState.SETTLED], "before it goes out"
        again = [await site.whole(body=b' {"prompt":"a" , "model":"m"}') for _ in range(2)]
        assert site.worker.num_runs == 1
        assert not is_replay(first)
        for reply in again:
            assert (reply.status, reply.body) == (first.status, first.body)
            assert reply.headers == [*KEPT, ("Idempotent-Replayed", "true")]
        assert site.facts.answered == ["fresh", "replayed", "replayed"]
        assert [facts.outcome for facts in site.facts.ended] == ["replayed", "replayed"]
        assert sum(facts.num_completion_tokens + facts.num_prompt_tokens for facts in site.facts.ended) == 0

    run_site(test)


def test_another_body_or_route_is_refused_without_a_run() -> None:  # IDEM-3
    async def test(site: Site) -> None:
        await site.whole()
        for given in ({"body": b'{"model":"m","prompt":"b"}'}, {"route": "completion"}):
            with pytest.raises(IdempotencyKeyReuse) as caught:
                await site.ask(**given)
            assert caught.value.param == "idempotency-key"
        assert site.worker.num_runs == 1
        assert site.facts.refused == ["idempotency_key_reuse"] * 2

    run_site(test)


def test_of_fifty_simultaneous_requests_one_runs() -> None:  # IDEM-4
    async def test(site: Site) -> None:
        may_end = asyncio.Event()

        async def answer() -> Reply:
            await may_end.wait()
            return WholeReply(b"once")

        site.worker.answer = answer
        tasks = [asyncio.create_task(site.ask()) for _ in range(50)]
        while sum(task.done() for task in tasks) < 49:
            await asyncio.sleep(0)
        may_end.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        refusals = [result for result in results if isinstance(result, IdempotencyKeyInUse)]
        assert (len(refusals), site.worker.num_runs) == (49, 1)
        assert {refusal.retry_after_s for refusal in refusals} == {1}
        assert (await site.whole()).body == b"once"
        assert site.worker.num_runs == 1

    run_site(test)


@pytest.mark.parametrize("error", [InvalidValue("no"), NoCapacity("no"), EngineLost("no"), RuntimeError("no")])
def test_no_failure_is_stored(error: Exception) -> None:  # IDEM-5 IDEM-6
    async def test(site: Site) -> None:
        site.worker.fail(error)
        for _ in range(2):
            with pytest.raises(type(error)):
                await site.ask()
            if not isinstance(error, ServeError):
                await site.rest()
            assert site.store.entries == {}, "free before the caller hears of it"
        site.worker.answer = site.worker._say
        assert (await site.whole(body=b'{"another":"body"}')).body == b'{"run":3}'
        assert site.facts.claim_ends == ["released", "released", "recorded"]

    run_site(test)


def test_keys_of_two_callers_never_meet() -> None:  # IDEM-7
    async def test(site: Site) -> None:
        one = await site.whole(caller="one")
        other = await site.whole(caller="other", body=b'{"model":"m","prompt":"other"}')
        assert (one.body, other.body, site.worker.num_runs) == (b'{"run":1}', b'{"run":2}', 2)
        assert (await site.whole(caller="one")).body == one.body

    run_site(test)


@pytest.mark.parametrize("key", ["", "k" * 256, "schl\xfcssel", "a, b", '"a", "a"'])
def test_a_malformed_key_is_refused_before_anything_else(key: str) -> None:  # IDEM-8
    async def test(site: Site) -> None:
        with pytest.raises(InvalidValue) as caught:
            await site.ask(key)
        assert caught.value.param == "idempotency-key"
        assert (site.worker.num_runs, site.facts.refused, len(site.facts.received)) == (0, ["invalid_value"], 1)

    run_site(test)


def test_quoted_and_bare_are_one_key() -> None:  # IDEM-8
    async def test(site: Site) -> None:
        await site.whole('"abc"')
        assert is_replay(await site.whole("abc"))

    run_site(test)


def test_a_body_that_is_not_json_is_not_claimed() -> None:
    async def test(site: Site) -> None:
        site.worker.fail(InvalidJson("no"))
        with pytest.raises(InvalidJson):
            await site.ask(body=b"{")
        assert site.facts.answered == []

    run_site(test)


def test_without_a_ledger_the_header_is_refused_and_the_rest_is_served() -> None:
    async def test(site: Site) -> None:
        service = IdempotentService(site.worker, None, LedgerRules("off", 1, 1, 1, 1), site.facts, site.clock)
        with pytest.raises(UnsupportedParameter):
            await service.chat(Call("/v1/chat", "wire", 0.0, BODY, {"idempotency-key": "k"}))
        await service.chat(Call("/v1/chat", "wire", 0.0, BODY))
        assert site.worker.num_runs == 1
        assert service.describe().store == "off"

    run_site(test)


def test_when_every_entry_runs_the_next_is_refused() -> None:  # IDEM-9
    async def test(site: Site) -> None:
        for key in "abc":
            site.worker.stream(b"data: {}\n\n", DONE)
            await site.ask(key)
        with pytest.raises(NoCapacity) as caught:
            await site.ask("d")
        assert caught.value.limit is not None
        assert (caught.value.limit.name, caught.value.limit.value) == ("idempotency_entries", 3)
        assert site.facts.answered == ["fresh"] * 3 + ["full"]

    run_site(test)


def test_a_store_that_is_down_refuses_keys_and_nothing_else() -> None:
    async def test(site: Site) -> None:
        site.store.is_down = True
        with pytest.raises(NoCapacity):
            await site.ask()
        assert (await site.whole(None)).body == b'{"run":1}'
        site.store.is_down = False
        assert (await site.whole()).body == b'{"run":2}'

    run_site(test)


def test_an_answer_that_cannot_be_recorded_goes_out_all_the_same() -> None:
    async def test(site: Site) -> None:
        async def answer() -> Reply:
            site.store.is_down = True
            return WholeReply(b"done")

        site.worker.answer = answer
        assert (await site.whole()).body == b"done"
        assert site.facts.claim_ends == ["not_recorded"]

    run_site(test)


def test_an_answer_of_an_overtaken_request_never_goes_out() -> None:
    async def test(site: Site) -> None:
        async def answer() -> Reply:
            site.store.entries.clear()
            return WholeReply(b"late")

        site.worker.answer = answer
        with pytest.raises(IdempotencyKeyInUse):
            await site.ask()
        stream = site.worker.stream(b"data: {}\n\n", DONE)
        reply = await site.ask()
        site.store.entries.clear()
        with pytest.raises(ServeError):
            await drink(reply)
        assert site.facts.claim_ends == ["superseded", "superseded"]
        assert stream.causes == []

    run_site(test)


def test_a_too_large_answer_goes_out_and_a_retry_runs() -> None:  # IDEM-9
    async def test(site: Site) -> None:
        async def answer() -> Reply:
            return WholeReply(b"x" * (RULES.max_answer_bytes + 1))

        site.worker.answer = answer
        assert len((await site.whole()).body) == RULES.max_answer_bytes + 1
        await site.whole()
        site.worker.stream(*[b"data: {}\n\n" * 100] * 6, DONE)
        assert len(await drink(await site.ask())) == 6014
        assert (site.worker.num_runs, site.facts.claim_ends) == (3, ["too_large"] * 3)
        assert site.recorder.num_recording_bytes == 0

    run_site(test)


def test_json_is_compared_off_the_event_loop_when_it_is_large() -> None:
    async def test(site: Site) -> None:
        large = json.dumps({"prompt": "x" * 100_000}).encode()
        await site.whole(body=large)
        assert is_replay(await site.whole(body=b" " + large))

    run_site(test)
