"""From `x_script` to what the scripted engine plays."""

import json
from typing import Any

import pytest

from tidegate.contract.bounds import Limits
from tidegate.contract.codec import decode_chat
from tidegate.errors import InvalidRequest, InvalidValue, UnsupportedParameter
from tidegate.inference.finish import EngineFinish
from tidegate.inference.script import ScriptChoice
from tidegate.serving.script_rules import PlannedScript, plan_script
from tidegate.text.byte_tokenizer import ByteVocabulary

INFINITY = float("inf")


def plan(script: Any, *, is_scripted: bool = True) -> PlannedScript | None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "x_script": script}
    request = decode_chat(json.dumps(body).encode(), Limits())
    return plan_script(request.x_script, is_scripted=is_scripted, base=ByteVocabulary())


def planned(**script: Any) -> PlannedScript:
    found = plan(script)
    assert found is not None
    return found


def only_choice(**script: Any) -> ScriptChoice:
    (choice,) = planned(**script).script.choices
    return choice


def test_no_script_is_no_plan() -> None:
    assert plan(None) is None
    assert plan(None, is_scripted=False) is None


def test_other_engines_refuse_a_script() -> None:
    with pytest.raises(InvalidValue) as raised:
        plan({"pieces": []}, is_scripted=False)
    assert raised.value.param == "x_script"


def test_a_single_byte_keeps_its_id_and_longer_pieces_get_their_own() -> None:
    found = planned(enc="hex", pieces=["61", "e697a5", "62", "e697a5", "f09f", "", "00"])
    (choice,) = found.script.choices
    assert choice.token_ids == (97, 512, 98, 512, 513, 514, 0)
    texts = [found.vocabulary.token_bytes(token_id) for token_id in choice.token_ids]
    assert texts == [b"a", "日".encode(), b"b", "日".encode(), b"\xf0\x9f", b"", b"\x00"]


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        (None, EngineFinish.EOS),
        ("eos", EngineFinish.EOS),
        ("length", EngineFinish.LENGTH),
        ("error", EngineFinish.FAILED),
        ("abort", EngineFinish.ABORTED),
    ],
)
def test_finishes(finish: str | None, expected: EngineFinish) -> None:
    assert only_choice(pieces=[], finish=finish).finish is expected


def test_numbers_are_carried_over() -> None:
    choice = only_choice(
        pieces=["61", "62"],
        logprobs=[-1, "-inf"],
        top=[[["a", -1], ["日本", "-inf"]], []],
        error_after=1,
        repeat=3,
        delays_s=[0, 0.5],
        step_tokens=[2, 1],
    )
    assert choice.logprobs == (-1.0, -INFINITY)
    assert choice.top == (((97, -1.0), (512, -INFINITY)), ())
    assert (choice.error_after, choice.repeat, choice.delays_s, choice.step_tokens) == (1, 3, (0.0, 0.5), (2, 1))


def test_the_request_part_is_carried_over() -> None:
    found = planned(
        pieces=["61"],
        prefill_delay_s=1,
        queue_delay_s=2.5,
        prompt_tokens=7,
        cached_tokens=4,
        prompt_pieces=["c3a9", "2078"],
        prompt_logprobs=[None, -3],
        prompt_tail=["c3", "a9"],
    )
    script = found.script
    assert (script.prefill_delay_s, script.queue_delay_s) == (1.0, 2.5)
    assert (script.num_prompt_tokens, script.num_cached_tokens) == (7, 4)
    assert script.prompt_logprobs == (None, -3.0)
    assert found.prompt_token_ids is not None
    assert [found.vocabulary.token_bytes(t) for t in found.prompt_token_ids] == [b"\xc3\xa9", b" x"]
    assert found.prompt_tail == (0xC3, 0xA9)


def test_choices_replace_pieces_and_share_what_they_do_not_say() -> None:
    found = planned(
        pieces=["7a"],
        finish="length",
        delays_s=[1],
        choices=[{"pieces": ["61", "62"], "finish": "eos"}, {"pieces": ["63"], "delays_s": []}, {}],
    )
    first, second, third = found.script.choices
    assert (first.token_ids, first.finish, first.delays_s) == ((97, 98), EngineFinish.EOS, (1.0,))
    assert (second.token_ids, second.finish, second.delays_s) == ((99,), EngineFinish.LENGTH, ())
    assert third.token_ids == (122,)


def test_control_tokens_come_after_the_pieces_that_they_follow() -> None:
    found = planned(
        pieces=["61", "62"],
        pieces_special={"0": "<|a|>", "2": ["<|b|>", "<|a|>"]},
        logprobs=[-1, -2],
        top=[[["a", -1]], [["b", -2]]],
    )
    (choice,) = found.script.choices
    assert choice.token_ids == (258, 97, 98, 259, 258)
    assert choice.logprobs == (0.0, -1.0, -2.0, 0.0, 0.0)
    assert choice.top == ((), ((97, -1.0),), ((98, -2.0),), (), ())
    specials = [found.vocabulary.is_special(token_id) for token_id in choice.token_ids]
    assert specials == [True, False, False, True, True]
    assert found.vocabulary.token_bytes(259) == b"<|b|>"
    assert found.vocabulary.is_special(257)
    assert not found.vocabulary.is_special(260)
    assert found.vocabulary.eos_token_ids == (257,)
    assert found.vocabulary.bos_token_id == 256


def test_what_says_how_another_engine_hands_over_has_no_effect() -> None:
    plain = planned(pieces=["61"]).script
    described = planned(
        pieces=["61"],
        burst=True,
        order="alternate",
        raw_finish="abort",
        finish_with_last=True,
        mode="cumulative",
        thinking=True,
        parsers={"tool": "none", "reasoning": None},
    ).script
    assert described == plain


REFUSED = [
    ({}, "x_script.pieces"),
    ({"choices": []}, "x_script.choices"),
    ({"choices": [{"finish": "eos"}]}, "x_script.choices[0].pieces"),
    ({"choices": [{"pieces": []}] * 129}, "x_script.choices"),
    ({"pieces": ["6"]}, "x_script.pieces[0]"),
    ({"pieces": ["61", "zz"]}, "x_script.pieces[1]"),
    ({"choices": [{"pieces": ["61"]}, {"pieces": ["é"]}]}, "x_script.choices[1].pieces[0]"),
    ({"pieces": [], "finish": "stop"}, "x_script.finish"),
    ({"pieces": [], "enc": "base64"}, "x_script.enc"),
    ({"pieces": [], "repeat": 0}, "x_script.repeat"),
    ({"pieces": ["61"], "repeat": 1_000_001}, "x_script.repeat"),
    ({"pieces": ["61"] * 3, "repeat": 500_000}, "x_script.repeat"),
    ({"pieces": ["61"], "logprobs": []}, "x_script.logprobs"),
    ({"pieces": ["61"], "top": [[], []]}, "x_script.top"),
    ({"pieces": [], "delays_s": [-1]}, "x_script.delays_s[0]"),
    ({"pieces": [], "delays_s": [3601]}, "x_script.delays_s[0]"),
    ({"pieces": [], "prefill_delay_s": 1e9}, "x_script.prefill_delay_s"),
    ({"pieces": [], "step_tokens": [0]}, "x_script.step_tokens[0]"),
    ({"pieces": [], "error_after": -1}, "x_script.error_after"),
    ({"pieces": ["61"], "pieces_special": {"2": "x"}}, "x_script.pieces_special"),
    ({"pieces": ["61"], "pieces_special": {"-1": "x"}}, "x_script.pieces_special"),
    ({"pieces": ["61"], "pieces_special": {"0": [str(i) for i in range(255)]}}, "x_script.pieces_special"),
    ({"pieces": [], "prompt_pieces": ["61"], "prompt_logprobs": []}, "x_script.prompt_logprobs"),
    ({"pieces": [], "prompt_pieces": ["x"]}, "x_script.prompt_pieces[0]"),
    ({"pieces": [], "peices": []}, "x_script.peices"),
    ({"choices": [{"pieces": [], "burst": True}]}, "x_script.choices[0].burst"),
]


@pytest.mark.parametrize(("script", "param"), REFUSED)
def test_a_script_that_cannot_be_played_is_refused_by_path(script: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        plan(script)
    assert raised.value.param == param


@pytest.mark.parametrize("kind", ["tool", "reasoning"])
def test_parsers_that_are_not_here_are_422(kind: str) -> None:
    with pytest.raises(UnsupportedParameter) as raised:
        plan({"pieces": [], "parsers": {kind: "nobody"}})
    assert raised.value.param == f"x_script.parsers.{kind}"


def test_the_longest_script_is_still_taken() -> None:
    assert only_choice(pieces=["61"], repeat=1_000_000).repeat == 1_000_000
