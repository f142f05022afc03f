"""Workloads: the same under the same seed, of the lengths that were ordered, shared where they shall share."""

from dataclasses import replace

import jsonschema_rs
import pytest

from tidegate.loadtest.answer_schemas import SCHEMAS
from tidegate.loadtest.length import Length, read_length
from tidegate.loadtest.orders import Bounds, Budget, Load, Orders, cost_of
from tidegate.loadtest.sample import Sample
from tidegate.loadtest.session import Session, Turn, next_messages
from tidegate.loadtest.word_text import WordRate, rate_of
from tidegate.loadtest.workloads import Kind, Workload, make_session

WORKLOAD = Workload(
    kind=Kind.FIXED, seed=1, input=Length(20, 20), output=Length(8, 8), prefix_tokens=50, long_input=Length(200, 200)
)
KINDS = [kind for kind in Kind if kind is not Kind.FILE]


def of_kind(kind: Kind, **changes: object) -> Workload:
    return replace(WORKLOAD, kind=kind, **changes)  # type: ignore[arg-type]


def text_of(session: Session) -> str:
    return "\n".join(message["content"] for turn in session.turns for message in turn.messages)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.value)
def test_the_same_seed_and_number_give_the_same_session_and_others_another(kind: Kind) -> None:
    first = [make_session(of_kind(kind), index) for index in range(-3, 20)]
    assert first == [make_session(of_kind(kind), index) for index in range(-3, 20)]
    assert len({text_of(session) for session in first}) == len(first)
    other = [make_session(of_kind(kind, seed=2), index) for index in range(-3, 20)]
    assert not {text_of(session) for session in first} & {text_of(session) for session in other}


def test_a_prompt_has_the_words_that_its_tokens_need() -> None:
    plain = make_session(WORKLOAD, 0).turns[0]
    assert len(plain.messages[0]["content"].split()) == 2 + 20
    half = replace(WORKLOAD, words=WordRate(per_word=2.0, fixed=10.0, is_measured=True))
    assert len(make_session(half, 0).turns[0].messages[0]["content"].split()) == 2 + 5
    ranged = replace(WORKLOAD, input=Length(5, 9))
    assert {make_session(ranged, index).turns[0].num_prompt_tokens for index in range(60)} == {5, 6, 7, 8, 9}


@pytest.mark.parametrize(
    ("short", "long", "rate"),
    [
        ((16, 46), (96, 126), WordRate(1.0, 30.0, True)),
        ((16, 90), (96, 490), WordRate(5.0, 10.0, True)),
        ((16, 1), (96, 1), WordRate()),
        ((16, 0), (96, 10_000), WordRate()),
    ],
    ids=["a word a token", "bytes", "counts nothing", "counts nonsense"],
)
def test_how_words_become_tokens_is_read_from_two_counts(
    short: tuple[int, int], long: tuple[int, int], rate: WordRate
) -> None:
    assert rate_of(short, long) == rate


def test_prefixes_are_shared_and_prompts_are_not() -> None:
    workload = of_kind(Kind.SHARED_PREFIX, num_prefixes=2)
    sessions = [make_session(workload, index) for index in range(6)]
    prefixes = [session.turns[0].messages[0]["content"] for session in sessions]
    assert prefixes[0] == prefixes[2] == prefixes[4]
    assert prefixes[1] == prefixes[3] != prefixes[0]
    assert make_session(workload, -2).turns[0].messages[0]["content"] == prefixes[0], "the warm-up warms it"
    assert sessions[0].planned_tokens == 50 + 20 + 8


def test_an_agents_conversation_grows_by_answers_and_results() -> None:
    session = make_session(of_kind(Kind.AGENT, num_turns=3), 0)
    assert [turn.num_prompt_tokens for turn in session.turns] == [70, 98, 126]
    assert [message["role"] for message in session.turns[0].messages] == ["system", "user"]
    history = next_messages([], session.turns[0], None)
    history = next_messages(history, session.turns[1], "I did.")
    assert [message["role"] for message in history] == ["system", "user", "assistant", "user"]
    assert history[2]["content"] == "I did."
    assert "Result of step 1" in history[3]["content"]


def test_one_in_so_many_of_a_mixed_load_is_long_and_none_of_the_warm_up() -> None:
    workload = of_kind(Kind.MIXED, long_every=3)
    assert [make_session(workload, index).group for index in range(6)] == ["short", "short", "long"] * 2
    assert {make_session(workload, -index).group for index in range(1, 8)} == {"short"}
    assert make_session(workload, 2).turns[0].num_prompt_tokens == 200


def test_constrained_answers_carry_schemas_that_are_valid_ones() -> None:
    turns = [make_session(of_kind(Kind.CONSTRAINED), index).turns[0] for index in range(len(SCHEMAS))]
    assert [turn.schema for turn in turns] == list(SCHEMAS)
    for turn in turns:
        assert turn.extra["response_format"]["json_schema"]["schema"] == turn.schema
        jsonschema_rs.meta.validate(turn.schema)


@pytest.mark.parametrize(("text", "length"), [("7", Length(7, 7)), ("3-9", Length(3, 9))])
def test_a_length_is_a_number_or_a_range(text: str, length: Length) -> None:
    assert read_length(text) == length
    assert str(length) == text


@pytest.mark.parametrize("text", ["", "0", "-3", "9-3", "a", "1-", "1.5", "0-4"])
def test_other_lengths_are_refused_with_what_would_do(text: str) -> None:
    with pytest.raises(ValueError, match="is no length in tokens"):
        read_length(text)


def test_the_cost_counts_every_server_run_turn_and_the_warm_up() -> None:
    bounds = Bounds(num_sessions=10, num_runs=3, num_warm=2)
    orders = Orders(workload=WORKLOAD, load=Load(), bounds=bounds)
    cost = cost_of(orders, 2)
    assert cost.num_requests == 2 * (30 + 2)
    assert cost.num_tokens == cost.num_requests * 28
    assert "32 requests to each of 2 servers, 1,792 tokens" in cost.describe(bounds, 2)
    many = replace(orders, bounds=Bounds(num_sessions=5000, num_runs=1))
    assert cost_of(many, 1).num_tokens == 5000 * 28, "what is not made is taken to be like what is"


def test_runs_share_no_session() -> None:
    orders = Orders(workload=WORKLOAD, load=Load(), bounds=Bounds(num_sessions=4, num_runs=3, num_warm=4))
    texts = [text_of(session) for number in range(3) for session in orders.sessions_of(number)]
    texts += [text_of(session) for session in orders.warm_sessions()]
    assert len(set(texts)) == 16


def test_a_budget_is_charged_what_the_server_counted_else_what_was_planned() -> None:
    budget = Budget(100)
    budget.charge(Sample(group="all", due_at=0, sent_at=0, ending="http_500"), 50)
    assert budget.left == 100, "a refusal costs nothing"
    budget.charge(Sample(group="all", due_at=0, sent_at=0, ending="done", num_tokens=10, num_prompt_tokens=30), 50)
    assert budget.left == 60
    budget.charge(Sample(group="all", due_at=0, sent_at=0, num_tokens=10), 50)
    assert budget.is_spent


def test_a_turn_without_messages_stands_alone() -> None:
    turn = Turn(max_tokens=1, prompt="x", num_prompt_tokens=1)
    assert next_messages([], turn, None) == []
