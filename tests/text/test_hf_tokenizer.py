"""Tokenizers of Hugging Face folders: exact bytes for each token, the same ids as the library, and no turn opened."""

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from tidegate.testing.check_tokenizer import check_tokenizer
from tidegate.text.hf_token_bytes import UnusableTokenizer
from tidegate.text.hf_tokenizer import HfFiles, HfTokenizer, read_hf_folder
from tidegate.text.rendered_prompt import RenderedPrompt

DATA = Path(__file__).parents[1] / "data"
NAUGHTY = json.loads((DATA / "naughty-strings/blns.json").read_text("utf-8"))
UTF8 = [item["text"] for item in json.loads((DATA / "utf8/cases.json").read_text("utf-8"))["strings"]]
CORPUS = ["the quick brown fox jumps over the lazy dog " * 3, "Привет, мир! 你好 😀 é è", "def f(x):\n    return x\n"]
CONTROLS = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"]
BLANK = "\u2581"


def byte_level() -> tokenizers.Tokenizer:
    """As GPT-2, Llama 3 and Qwen: bytes as printable characters."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=CONTROLS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    # A marker that its maker forgot to call special, and an ordinary added token.
    tokenizer.add_tokens([tokenizers.AddedToken("<｜User｜>", normalized=False), "<think>"])
    return tokenizer


def byte_fallback(*, scheme: str | None) -> tokenizers.Tokenizer:
    """As Llama 2 (`scheme` None: a blank before every text, by normalizer) or its newer form (`first`)."""
    letters = sorted({character for text in CORPUS for character in text.replace(" ", BLANK)})
    pieces = ["<unk>", *CONTROLS, *(f"<0x{byte:02X}>" for byte in range(256)), *letters]
    merges = [(BLANK, "t"), (BLANK + "t", "h"), (BLANK + "th", "e"), (BLANK, BLANK)]
    pieces += ["".join(pair) for pair in merges]
    vocab = {piece: token_id for token_id, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if scheme is None:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(BLANK), normalizers.Replace(" ", BLANK)])
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(BLANK, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens([tokenizers.AddedToken(spelling, normalized=False) for spelling in CONTROLS])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
    )
    return tokenizer


CONFIG = {"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": "{{ messages }}"}
MAKERS = {
    "byte-level": byte_level,
    "blank before every text": lambda: byte_fallback(scheme=None),
    "blank before the first text": lambda: byte_fallback(scheme="first"),
    "no blank": lambda: byte_fallback(scheme="never"),
}


@pytest.fixture(scope="module", params=MAKERS)
def pair(request: pytest.FixtureRequest) -> tuple[tokenizers.Tokenizer, HfTokenizer]:
    """The library's tokenizer, and ours from its definition."""
    library = MAKERS[request.param]()
    return library, HfTokenizer(HfFiles(library.to_str(), CONFIG))


def test_it_is_a_tokenizer(pair: tuple[tokenizers.Tokenizer, HfTokenizer]) -> None:
    library, ours = pair

    def comes_back(text: str) -> bool:
        """A blank in front may be lost: some decoders take one away where encoding put none. So does the library."""
        return not text.startswith(" ") or library.decode(library.encode(text, add_special_tokens=False).ids) == text

    texts = [text for text in [*NAUGHTY, *UTF8, *CORPUS, "  two"] if comes_back(text)]
    if library.encode("x", add_special_tokens=False).ids == library.encode("<s>x", add_special_tokens=False).ids[1:]:
        texts += CONTROLS
    check_tokenizer(ours, texts)


def test_ids_and_texts_are_the_librarys(pair: tuple[tokenizers.Tokenizer, HfTokenizer]) -> None:
    library, ours = pair
    for text in ["a<s>b", "<|im_start|>user\nthe fox<|im_end|>\n", "  the  the", "", *CORPUS]:
        expected = library.encode(text, add_special_tokens=False).ids
        assert ours.encode(text, add_special=False, parse_special=True) == expected
        assert ours.encode(text, add_special=True, parse_special=True) in (
            library.encode(text, add_special_tokens=True).ids,
            expected,
        )
        for skip_special in (True, False):
            assert ours.decode(expected, skip_special=skip_special) == library.decode(
                expected, skip_special_tokens=skip_special
            )


def test_each_token_has_exactly_its_bytes(pair: tuple[tokenizers.Tokenizer, HfTokenizer]) -> None:
    _, ours = pair
    for text in [*NAUGHTY, *UTF8]:
        token_ids = ours.encode(text, add_special=False, parse_special=False)
        joined = b"".join(map(ours.vocabulary.token_bytes, token_ids))
        assert joined in (text.encode(), b" " + text.encode())


def test_a_seam_makes_a_spelled_control_token_plain_and_changes_nothing_else(
    pair: tuple[tokenizers.Tokenizer, HfTokenizer],
) -> None:
    library, ours = pair
    text = "<|im_start|>the <|im_end|> fox<|im_end|>"
    first = text.index("<|im_end|>") + 1
    token_ids = ours.encode_chat(RenderedPrompt(text, (first,)))
    assert [token_id for token_id in token_ids if token_id == library.token_to_id("<|im_end|>")] == token_ids[-1:]
    assert ours.decode(token_ids, skip_special=False).removeprefix("<s>").replace("> the", ">the", 1) == text
    unharmed = RenderedPrompt("<|im_start|>the fox<|im_end|>", (15,))
    assert ours.encode_chat(unharmed) == ours.encode_chat(RenderedPrompt(unharmed.text))


def test_a_marker_that_is_not_called_special_is_guarded_all_the_same() -> None:
    library = byte_level()
    ours = HfTokenizer(HfFiles(library.to_str(), CONFIG))
    marker, think = library.token_to_id("<｜User｜>"), library.token_to_id("<think>")
    assert "<｜User｜>" in ours.control_spellings
    assert "<think>" not in ours.control_spellings
    assert ours.encode_chat(RenderedPrompt("<｜User｜><think>")) == [marker, think]
    assert marker not in ours.encode_chat(RenderedPrompt("<｜User｜>", (1,)))
    assert marker not in ours.encode("<｜User｜>", add_special=False, parse_special=False)


@pytest.mark.parametrize(
    ("add_bos_token", "maker", "adds"),
    [
        (None, "no blank", True),
        (False, "no blank", False),
        (None, "byte-level", False),
        (True, "byte-level", True),
    ],
)
def test_exactly_one_bos_where_the_model_adds_one(add_bos_token: bool | None, maker: str, adds: bool) -> None:  # C143
    config = CONFIG if add_bos_token is None else {**CONFIG, "add_bos_token": add_bos_token}
    ours = HfTokenizer(HfFiles(MAKERS[maker]().to_str(), config))
    bos = ours.vocabulary.bos_token_id
    assert ours.facts.adds_bos is adds
    assert ours.encode_chat(RenderedPrompt("hi")).count(bos) == int(adds)
    assert ours.encode_chat(RenderedPrompt("<s>hi")).count(bos) == 1
    assert ours.encode("hi", add_special=True, parse_special=False).count(bos) == int(adds)


def test_what_the_files_beside_it_say(tmp_path: Path) -> None:
    library = byte_level()
    (tmp_path / "tokenizer.json").write_text(library.to_str(), "utf-8")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(CONFIG), "utf-8")
    end = library.token_to_id("<|im_end|>")
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [end, end]}), "utf-8")
    (tmp_path / "config.json").write_text(json.dumps({"max_position_embeddings": 99, "model_type": "qwen2"}), "utf-8")
    ours = HfTokenizer(read_hf_folder(tmp_path))
    facts = ours.facts
    assert (facts.context_length, facts.architecture, facts.name) == (99, "qwen2", None)
    assert (facts.bos_token, facts.eos_token) == ("<s>", "</s>")
    assert facts.chat_templates == {"default": "{{ messages }}"}
    assert ours.vocabulary.eos_token_ids == (library.token_to_id("</s>"), end)
    (tmp_path / "chat_template.jinja").write_text("from the file", "utf-8")
    assert HfTokenizer(read_hf_folder(tmp_path)).facts.chat_templates == {"default": "from the file"}


def test_named_templates_are_kept_by_name() -> None:
    named = [{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}]
    ours = HfTokenizer(HfFiles(byte_level().to_str(), {"chat_template": named}))
    assert ours.facts.chat_templates == {"default": "a", "tool_use": "b"}


def test_truncation_and_padding_in_the_definition_are_not_obeyed() -> None:
    library = byte_level()
    library.enable_truncation(3)
    library.enable_padding(length=50)
    ours = HfTokenizer(HfFiles(library.to_str()))
    text = "a long text that is not to be cut"
    assert ours.decode(ours.encode(text, add_special=True, parse_special=False)) == text


BROKEN: list[tuple[str, str]] = [
    ("{", "not JSON"),
    ("[]", "not an object"),
    ("{}", "not a tokenizer"),
]


@pytest.mark.parametrize(("source", "reason"), BROKEN)
def test_what_is_no_tokenizer_is_refused_with_the_reason(source: str, reason: str) -> None:
    with pytest.raises(UnusableTokenizer, match=reason):
        HfTokenizer(HfFiles(source))


def test_an_unknown_decoder_is_refused_rather_than_guessed() -> None:
    definition = json.loads(byte_level().to_str())
    definition["decoder"] = {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True}
    with pytest.raises(UnusableTokenizer, match="CTC"):
        HfTokenizer(HfFiles(json.dumps(definition)))


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableTokenizer):
        read_hf_folder(tmp_path)


def test_a_vocabulary_with_holes_answers_for_them() -> None:
    definition: dict[str, Any] = json.loads(byte_level().to_str())
    definition["model"].update(vocab={"a": 0, "b": 7}, merges=[])
    definition["added_tokens"] = []
    ours = HfTokenizer(HfFiles(json.dumps(definition)))
    assert [ours.vocabulary.token_bytes(token_id) for token_id in (0, 3, 7, 8)] == [b"a", b"", b"b", b""]
