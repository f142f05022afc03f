"""A store that did not answer is left alone for a while."""

from tidegate.lifecycle.store_patience import StorePatience


def test_a_store_that_answers_is_always_asked() -> None:
    patience = StorePatience(1.0)
    assert patience.may_ask(0.0)
    assert not patience.note_answer()
    assert not patience.is_away


def test_a_failure_is_news_once_and_the_store_is_asked_again_later() -> None:
    patience = StorePatience(1.0)
    assert patience.note_failure(10.0)
    assert patience.is_away
    assert not patience.may_ask(10.9)
    assert patience.may_ask(11.0)
    assert not patience.note_failure(11.0)
    assert not patience.may_ask(11.9)
    assert patience.note_answer()
    assert patience.may_ask(11.1)
