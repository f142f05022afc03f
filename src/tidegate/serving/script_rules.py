"""From the body field `x_script` to what the scripted engine plays, and the vocabulary that knows its tokens.

Pieces are bytes; the engine knows numbers only. Every text of a script (pieces, alternatives, prompt) becomes one token
of one vocabulary. Members that only say how another engine would hand over the same output have no effect (see
`contract/script_body.py`). `thinking` says whether the prompt ended inside reasoning or behind it, as a template would
that switches it on or off; where it says nothing, and a reasoning parser is named, that is as usual for its family.
"""

from dataclasses import dataclass

from tidegate.contract.bounds import over_limit
from tidegate.contract.quote import quote
from tidegate.contract.script_body import ScriptBody, ScriptLogprob, ScriptPart
from tidegate.errors import InvalidValue, MissingField, UnsupportedParameter
from tidegate.inference.finish import EngineFinish
from tidegate.inference.script import Script, ScriptChoice
from tidegate.parsers.families import FAMILIES
from tidegate.parsers.reasoning_families import REASONING
from tidegate.parsers.tool_format import ReasoningMarkers, ToolFormat
from tidegate.serving.prompt_state import PromptState
from tidegate.text.byte_tokenizer import EOS_TOKEN_ID, FIRST_PIECE_ID, ExtendedVocabulary, tokenize_pieces
from tidegate.text.vocabulary import Vocabulary

MAX_SCRIPT_TOKENS = 1_000_000
"""For one choice, repetitions included."""
FIRST_CONTROL_ID = EOS_TOKEN_ID + 1
MAX_CONTROLS = FIRST_PIECE_ID - FIRST_CONTROL_ID
"""Control tokens that a script brings along have the ids between the byte vocabulary's own and the pieces."""
_REASONING = {name: markers for name, markers in REASONING.items() if markers is not None}
_NO_PARSER = frozenset({None, "", "none"})
_FINISHES = {
    "eos": EngineFinish.EOS,
    "length": EngineFinish.LENGTH,
    "error": EngineFinish.FAILED,
    "abort": EngineFinish.ABORTED,
}


@dataclass(frozen=True, slots=True)
class PlannedScript:
    """`prompt_token_ids`, where given, replace the prompt; `prompt_tail` are its last tokens as a decoder sees them."""

    script: Script
    vocabulary: ExtendedVocabulary
    prompt_token_ids: tuple[int, ...] | None
    prompt_tail: tuple[int, ...]
    controls: dict[str, int]
    """The script's own control tokens, by their spelling."""
    reasoning: ReasoningMarkers | None
    names_reasoning: bool
    """Whether the script says how it marks reasoning: `reasoning`, None for not at all."""
    state: PromptState | None
    """Where the script says that its prompt stops; None: where the rendered prompt does."""
    tool: ToolFormat | None
    """The family whose calls the script writes, where it names one."""
    reads_calls: bool
    """Whether calls are looked for at all."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One choice's part, its texts already read. `specials`: control tokens by the number of pieces before them."""

    path: str
    pieces: list[bytes]
    specials: dict[int, list[str]]
    source: ScriptPart


@dataclass(frozen=True, slots=True)
class _TokenIds:
    """The id of every text in a script."""

    pieces: dict[bytes, int]
    controls: dict[str, int]


def plan_script(body: ScriptBody | None, *, is_scripted: bool, base: Vocabulary) -> PlannedScript | None:
    """Returns what to play, or None when the request has no script.

    `base` has the bytes as ids 0..255. Raises InvalidValue (also for any script sent to an engine that is not
    scripted), MissingField, and UnsupportedParameter for parsers that are not here.
    """
    if body is None:
        return None
    if not is_scripted:
        raise InvalidValue("x_script: only the scripted engine takes a script", param="x_script")
    _check_parsers(body)
    parts = _parts(body)
    prompt = _hex_list("x_script.prompt_pieces", body.prompt_pieces) if body.prompt_pieces is not None else None
    tail = _hex_list("x_script.prompt_tail", body.prompt_tail or [])
    token_ids, vocabulary = _tokenize(parts, [*(prompt or []), *tail], base)
    script = Script(
        choices=tuple(_plan_choice(part, token_ids) for part in parts),
        prefill_delay_s=body.prefill_delay_s or 0.0,
        queue_delay_s=body.queue_delay_s or 0.0,
        num_prompt_tokens=body.prompt_tokens,
        num_cached_tokens=body.cached_tokens or 0,
        prompt_logprobs=_prompt_logprobs(body),
    )
    name = None if body.parsers is None else body.parsers.reasoning
    return PlannedScript(
        script=script,
        vocabulary=vocabulary,
        prompt_token_ids=tuple(token_ids.pieces[piece] for piece in prompt) if prompt is not None else None,
        prompt_tail=tuple(token_ids.pieces[piece] for piece in tail),
        controls=token_ids.controls,
        reasoning=_REASONING.get(name) if name is not None else None,
        names_reasoning=name is not None,
        state=_state(body, name),
        tool=_tool_format(body),
        reads_calls=body.parsers is None or body.parsers.tool not in ("", "none"),
    )


def _check_parsers(body: ScriptBody) -> None:
    if body.parsers is None:
        return
    for kind, known in (("tool", FAMILIES), ("reasoning", _REASONING)):
        name = getattr(body.parsers, kind)
        if name not in _NO_PARSER and name not in known:
            param = f"x_script.parsers.{kind}"
            raise UnsupportedParameter(f"{param}: {quote(name)} is not a parser of this server", param=param)


def _tool_format(body: ScriptBody) -> ToolFormat | None:
    return None if body.parsers is None or body.parsers.tool is None else FAMILIES.get(body.parsers.tool)


def _state(body: ScriptBody, name: str | None) -> PromptState | None:
    """Returns where the prompt stops; `name` is the reasoning parser's, None where the script names none."""
    if body.thinking is not None:
        return PromptState.INSIDE if body.thinking else PromptState.BEHIND
    markers = _REASONING.get(name) if name is not None else None
    return None if markers is None or not markers.is_open else PromptState.INSIDE


def _parts(body: ScriptBody) -> list[_Part]:
    if body.choices is None:
        return [_part("x_script", body)]
    return [_part(f"x_script.choices[{index}]", _inherit(part, body)) for index, part in enumerate(body.choices)]


def _inherit(part: ScriptPart, body: ScriptBody) -> ScriptPart:
    """Returns a choice's part with absent members taken from the script around it."""
    members = {}
    for name in ScriptPart.__struct_fields__:
        own = getattr(part, name)
        members[name] = own if own is not None else getattr(body, name)
    return ScriptPart(**members)


def _part(path: str, source: ScriptPart) -> _Part:
    if source.pieces is None:
        raise MissingField(f"{path}.pieces: this field is required", param=f"{path}.pieces")
    pieces = _hex_list(f"{path}.pieces", source.pieces)
    return _Part(path, pieces, _specials(path, source, len(pieces)), source)


def _hex_list(param: str, texts: list[str]) -> list[bytes]:
    return [_hex(f"{param}[{index}]", text) for index, text in enumerate(texts)]


def _hex(param: str, text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise InvalidValue(f"{param}: {quote(text)} is not hexadecimal", param=param) from None


def _specials(path: str, source: ScriptPart, num_pieces: int) -> dict[int, list[str]]:
    found = {}
    param = f"{path}.pieces_special"
    for key, value in (source.pieces_special or {}).items():
        if not (key.isascii() and key.isdigit() and len(key) <= 9 and int(key) <= num_pieces):
            raise InvalidValue(f"{param}: {quote(key)} is not a number of pieces of this choice", param=param)
        found[int(key)] = [value] if isinstance(value, str) else value
    return found


def _tokenize(parts: list[_Part], prompt_pieces: list[bytes], base: Vocabulary) -> tuple[_TokenIds, ExtendedVocabulary]:
    spellings = dict.fromkeys(text for part in parts for texts in part.specials.values() for text in texts)
    if len(spellings) > MAX_CONTROLS:
        raise over_limit("x_script.pieces_special", "script_controls", value=MAX_CONTROLS, actual=len(spellings))
    pieces = dict.fromkeys(piece for part in parts for piece in part.pieces)
    pieces |= dict.fromkeys(text.encode() for part in parts for row in part.source.top or [] for text, _ in row)
    pieces |= dict.fromkeys(prompt_pieces)
    ids, vocabulary = tokenize_pieces(
        ExtendedVocabulary(base, [text.encode() for text in spellings], FIRST_CONTROL_ID, are_special=True), pieces
    )
    controls = {text: FIRST_CONTROL_ID + index for index, text in enumerate(spellings)}
    return _TokenIds(dict(zip(pieces, ids, strict=True)), controls), vocabulary


def _plan_choice(part: _Part, token_ids: _TokenIds) -> ScriptChoice:
    source, path = part.source, part.path
    logprobs, top = source.logprobs, source.top
    for name, values in (("logprobs", logprobs), ("top", top)):
        if values is not None:
            _check_length(f"{path}.{name}", len(values), len(part.pieces))
    sequence: list[tuple[int, int | None]] = []
    """Each token's id, and its place among the pieces; None for a control token."""
    for index in range(len(part.pieces) + 1):
        sequence.extend((token_ids.controls[text], None) for text in part.specials.get(index, ()))
        if index < len(part.pieces):
            sequence.append((token_ids.pieces[part.pieces[index]], index))
    repeat = source.repeat or 1
    if len(sequence) * repeat > MAX_SCRIPT_TOKENS:
        raise over_limit(f"{path}.repeat", "script_tokens", value=MAX_SCRIPT_TOKENS, actual=len(sequence) * repeat)
    return ScriptChoice(
        token_ids=tuple(token_id for token_id, _ in sequence),
        finish=_FINISHES[source.finish or "eos"],
        logprobs=None
        if logprobs is None
        else tuple(0.0 if index is None else _number(logprobs[index]) for _, index in sequence),
        top=None
        if top is None
        else tuple(() if index is None else _top_row(top[index], token_ids) for _, index in sequence),
        error_after=source.error_after,
        repeat=repeat,
        delays_s=tuple(source.delays_s or ()),
        step_tokens=tuple(source.step_tokens or ()),
    )


def _check_length(param: str, actual: int, num_pieces: int) -> None:
    if actual != num_pieces:
        message = f"{param}: has {actual} entries for {num_pieces} pieces; there must be one for each"
        raise InvalidValue(message, param=param)


def _top_row(row: list[tuple[str, ScriptLogprob]], token_ids: _TokenIds) -> tuple[tuple[int, float], ...]:
    """The alternatives are texts; each is one token."""
    return tuple((token_ids.pieces[text.encode()], _number(value)) for text, value in row)


def _number(value: ScriptLogprob) -> float:
    return float("-inf") if isinstance(value, str) else value


def _prompt_logprobs(body: ScriptBody) -> tuple[float | None, ...] | None:
    if body.prompt_logprobs is None:
        return None
    if body.prompt_pieces is not None:
        _check_length("x_script.prompt_logprobs", len(body.prompt_logprobs), len(body.prompt_pieces))
    return tuple(None if value is None else _number(value) for value in body.prompt_logprobs)
