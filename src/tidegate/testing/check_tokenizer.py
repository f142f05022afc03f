"""What every `Tokenizer` must do with texts that it can represent."""

from collections.abc import Iterable

from tidegate.text.detokenizer import Detokenizer
from tidegate.text.rendered_prompt import RenderedPrompt
from tidegate.text.vocabulary import Tokenizer


def check_tokenizer(tokenizer: Tokenizer, texts: Iterable[str]) -> None:
    """Raises AssertionError unless, for every text:

    encoding and decoding give the text back; fed one by one, the tokens give it as well, but for one blank that the
    tokenizer may put in front; as a caller's text it holds no control token, in a chat prompt neither; and a chat
    prompt begins with a BOS exactly where plain text does by default.
    """
    _check_vocabulary(tokenizer)
    adds_bos = _starts_with_bos(tokenizer, tokenizer.encode("a", add_special=True, parse_special=False))
    for text in texts:
        token_ids = tokenizer.encode(text, add_special=False, parse_special=False)
        _expect(not any(map(tokenizer.vocabulary.is_special, token_ids)), f"a control token out of plain {text!r}")
        _expect(all(0 <= token_id < tokenizer.vocabulary.size for token_id in token_ids), f"foreign ids for {text!r}")
        _expect(tokenizer.decode(token_ids) == text, f"{text!r} comes back as {tokenizer.decode(token_ids)!r}")
        streamed = _stream(tokenizer, token_ids)
        _expect(streamed in (text, f" {text}"), f"{text!r} streams as {streamed!r}")
        seams = tuple(range(1, len(text)))
        prompt_ids = tokenizer.encode_chat(RenderedPrompt(text, seams))
        num_special = sum(map(tokenizer.vocabulary.is_special, prompt_ids))
        _expect(num_special == int(adds_bos), f"{num_special} control tokens in the guarded prompt {text!r}")
        _expect(_starts_with_bos(tokenizer, prompt_ids) == adds_bos, f"BOS of the chat prompt {text!r}")


def _check_vocabulary(tokenizer: Tokenizer) -> None:
    vocabulary = tokenizer.vocabulary
    for stranger in (-1, vocabulary.size, 1 << 40):
        _expect(vocabulary.token_bytes(stranger) == b"", f"bytes for the unknown id {stranger}")
        _expect(not vocabulary.is_special(stranger), f"the unknown id {stranger} is special")
    for token_id in vocabulary.eos_token_ids:
        _expect(0 <= token_id < vocabulary.size, f"end token {token_id} is not in the vocabulary")
    for spelling in tokenizer.control_spellings:
        read = tokenizer.encode_chat(RenderedPrompt(spelling))
        _expect(vocabulary.token_bytes(read[-1]) == spelling.encode(), f"the template's {spelling!r} is not one token")


def _stream(tokenizer: Tokenizer, token_ids: list[int]) -> str:
    detokenizer = Detokenizer(tokenizer.vocabulary, skip_special=True)
    return "".join(map(detokenizer.feed, token_ids)) + detokenizer.finish()


def _starts_with_bos(tokenizer: Tokenizer, token_ids: list[int]) -> bool:
    return bool(token_ids) and token_ids[0] == tokenizer.vocabulary.bos_token_id


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)
