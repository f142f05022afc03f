"""What engines owe: counted down by outputs, and nothing left whatever happens."""

from hypothesis import given
from hypothesis import strategies as st

from tidegate.engines.pool.outstanding import EngineAccount, WorkShare
from tidegate.testing.requests import seeded_request


def counts(account: EngineAccount) -> tuple[int, int, int]:
    return account.num_tokens, account.num_requests, account.num_sequences


def test_a_request_weighs_its_prompt_until_its_first_token_and_then_what_it_may_write() -> None:
    account = EngineAccount()
    share = WorkShare(account, seeded_request("a", num_prompt=100, max_tokens=10, num_choices=2), 64)
    assert counts(account) == (36 + 20, 1, 2)
    share.take(0, 0, is_last=False)
    assert account.num_tokens == 56, "an output without tokens says nothing about the prompt"
    share.take(0, 3, is_last=False)
    assert account.num_tokens == 17
    share.take(1, 2, is_last=True)
    assert counts(account) == (7, 1, 1)
    share.take(1, 5, is_last=True)
    assert counts(account) == (7, 1, 1), "a choice ends once"
    share.take(0, 99, is_last=False)
    assert counts(account) == (0, 1, 1), "more than was announced counts as what was announced"
    share.take(0, 0, is_last=True)
    assert counts(account) == (0, 0, 0)
    assert share.is_empty


def test_a_prompt_that_is_cached_whole_still_has_its_last_token_computed() -> None:
    account = EngineAccount()
    WorkShare(account, seeded_request("a", num_prompt=64, max_tokens=0), 64)
    assert account.num_tokens == 1


ACTS = ["open", "take", "last", "close"]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["open", "take", "last", "close"]), st.integers(0, 4), st.integers(0, 3), st.integers(0, 9)
    ),
    max_size=60,
)


@given(STEPS)
def test_an_account_is_the_sum_of_its_shares_and_returns_to_nothing(steps: list[tuple[str, int, int, int]]) -> None:
    account = EngineAccount()
    shares: dict[int, WorkShare] = {}
    for act, which, choice, number in steps:
        share = shares.get(which)
        if act == "open" and share is None:
            request = seeded_request("a", num_choices=choice + 1, max_tokens=number, num_prompt=number + 1)
            shares[which] = WorkShare(account, request, number * 2)
        elif share is not None and act == "close":
            share.close()
            del shares[which]
        elif share is not None:
            share.take(choice, number, is_last=act == "last")
            if share.is_empty:
                del shares[which]
        assert account.num_requests == len(shares)
        assert min(counts(account)) >= 0
    for share in shares.values():
        share.close()
        share.close()
    assert counts(account) == (0, 0, 0)
