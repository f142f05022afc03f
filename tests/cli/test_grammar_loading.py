"""Which grammar backend is served, and what happens where the chosen one cannot be: a warning, or no start."""

from importlib.metadata import EntryPoint
from typing import Any

import msgspec
import pytest

from harness.slow_compiler import SlowCompiler
from tidegate.cli.check_model import check_grammar
from tidegate.cli.finding import Level
from tidegate.cli.grammar_loading import GrammarUnusable, load_grammar, token_table
from tidegate.cli.load_error import LoadError
from tidegate.cli.model_loading import LoadedModel, engine_fault, load_model
from tidegate.cli.ready_text import grammar_text
from tidegate.cli.serve_command import run_serve
from tidegate.cli.settings import GrammarSettings, Settings
from tidegate.cli.settings_sources import resolve
from tidegate.cli.wiring import engine_options
from tidegate.grammar.matcher import TokenTable
from tidegate.grammar.registry import ENTRY_POINT_GROUP
from tidegate.inference.model_info import ModelInfo
from tidegate.text.byte_tokenizer import ByteTokenizer
from tidegate.text.vocabulary import Vocabulary

VOCABULARY = ByteTokenizer().vocabulary


def make_slow(table: TokenTable) -> SlowCompiler:
    assert len(table.tokens) == VOCABULARY.size
    return SlowCompiler()


def make_nothing(_table: TokenTable) -> SlowCompiler:
    raise ValueError("this vocabulary has\nno end token")


def make_bug(_table: TokenTable) -> SlowCompiler:
    raise KeyError("bug")


INSTALLED = [
    EntryPoint(name, f"{__name__}:{target}" if ":" not in target else target, ENTRY_POINT_GROUP)
    for name, target in {
        "slow": "make_slow",
        "picky": "make_nothing",
        "buggy": "make_bug",
        "absent": "no_such_module_anywhere:make",
        "nameless": "no_such_name",
    }.items()
]


def load(backend: str, vocabulary: Vocabulary = VOCABULARY, **more: Any) -> Any:
    return load_grammar(GrammarSettings(backend=backend, **more), vocabulary, lambda: INSTALLED)


@pytest.mark.parametrize(("backend", "identity"), [("llguidance", "llguidance "), ("slow", "slow 1")])
@pytest.mark.parametrize("required", [False, True])
def test_a_backend_that_can_serve_is_served(backend: str, identity: str, required: bool) -> None:
    loaded = load(backend, required=required)
    assert loaded.compiler is not None
    assert loaded.served.identity.startswith(identity)
    assert loaded.served.is_required is required
    assert loaded.warning is None
    assert check_grammar(Settings(), loaded).level is Level.OK


UNUSABLE = {
    "nope": "there are absent, buggy, llguidance, nameless, none, picky, slow",
    "picky": "this vocabulary has no end token",
    "buggy": "bug",
    "absent": "cannot be imported",
    "nameless": "cannot be imported",
}


@pytest.mark.parametrize("backend", UNUSABLE)
def test_one_that_cannot_is_told_and_constraints_are_422(backend: str) -> None:
    loaded = load(backend)
    assert loaded.compiler is None
    assert loaded.served.identity is None
    assert loaded.warning is not None
    assert UNUSABLE[backend] in loaded.warning
    assert "\n" not in loaded.warning
    assert backend in loaded.served.reason
    assert loaded.served.unserved_reason(None, is_scripted=True) == loaded.served.reason
    finding = check_grammar(Settings(), loaded)
    assert (finding.level, finding.advice is not None) == (Level.WARNING, True)
    required = Settings(grammar=GrammarSettings(backend=backend, required=True))
    assert check_grammar(required, loaded).level is Level.PROBLEM


@pytest.mark.parametrize("backend", [*UNUSABLE, "none"])
def test_one_that_cannot_and_is_required_stops_the_start_and_says_what_to_do(backend: str) -> None:
    with pytest.raises(GrammarUnusable) as raised:
        load(backend, required=True)
    message = str(raised.value)
    assert UNUSABLE.get(backend, "choose llguidance") in message
    assert "grammar.backend" in message
    assert "grammar.required" in message


def test_none_is_a_choice_and_no_fault() -> None:
    loaded = load("none")
    assert (loaded.compiler, loaded.warning) == (None, None)
    assert loaded.served.reason == "constrained output is off: grammar.backend is none"
    assert check_grammar(Settings(), loaded).level is Level.OK
    required = Settings(grammar=GrammarSettings(backend="none", required=True))
    assert check_grammar(required, loaded).level is Level.PROBLEM


def test_a_vocabulary_as_grammars_see_it() -> None:
    table = token_table(VOCABULARY)
    assert table.tokens[:3] == [b"\x00", b"\x01", b"\x02"]
    assert table.eos_ids == VOCABULARY.eos_token_ids
    assert set(table.eos_ids) <= table.special_ids
    assert table.special_ids.isdisjoint(range(256))


def settings(**given: Any) -> Settings:
    flags = {name.replace("__", "."): value for name, value in given.items()}
    return resolve(None, {}, {"engine.kind": "simulated", **flags}, is_file_required=False).settings


def test_a_model_is_not_loaded_without_what_is_required() -> None:
    with pytest.raises(LoadError, match=r"grammar backend nope cannot be used .* grammar\.required to false"):
        load_model(settings(grammar__backend="nope", grammar__required=True))


def test_serve_ends_with_a_status_and_a_line_that_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    status = run_serve(settings(grammar__backend="none", grammar__required=True))
    assert status == 2
    line = capsys.readouterr().err
    assert line.startswith("tidegate: The grammar backend none cannot be used for this model")
    assert "Set grammar.backend to one that can, or grammar.required to false" in line


INFO = ModelInfo(257, 4096, (256,), 8, 100, 16, "feed", "simulated")


def loaded_model(**given: Any) -> tuple[LoadedModel, Settings]:
    found = settings(**given)
    return load_model(found), found


def test_the_engine_is_told_of_a_backend_only_where_the_server_has_it() -> None:
    for backend, told in (("llguidance", "llguidance"), ("none", "none"), ("nope", "none")):
        loaded, found = loaded_model(grammar__backend=backend)
        assert engine_options(found, loaded).grammar_backend == told
        words = grammar_text(loaded)
        assert words.startswith("tidegate: structured output by llguidance ") is (told != "none")


@pytest.mark.parametrize("in_engine", [None, "llguidance 1.9.1"])
@pytest.mark.parametrize("required", [False, True])
def test_an_engine_that_enforces_nothing_is_a_fault_where_grammars_are_required(
    in_engine: str | None, required: bool
) -> None:
    loaded, _ = loaded_model(grammar__required=required)
    info = msgspec.structs.replace(INFO, grammar_backend=in_engine)
    fault = engine_fault(loaded, info)
    assert (fault is not None) is (required and in_engine is None)
    assert fault is None or "grammar.required" in fault
    served = loaded.served
    assert (served.grammar_backend(info) is None) is (in_engine is None)
    assert (served.revision(info) == served.revision(INFO)) is (in_engine is None)


def test_the_scripted_engine_serves_constraints_that_it_does_not_enforce() -> None:
    loaded, _ = loaded_model(engine__kind="scripted")
    assert loaded.served.grammar_reason(INFO) is None
    assert engine_fault(loaded, INFO) is None
