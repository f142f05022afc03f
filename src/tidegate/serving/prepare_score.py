"""A score or rerank call to a `PreparedCall`: each pair becomes what its method reads (see `score_assembler.py`)."""

from collections.abc import Sequence
from functools import partial

from tidegate.contract.bounds import ReasoningEffort
from tidegate.contract.codec import decode_rerank, decode_score
from tidegate.contract.messages import UserMessage
from tidegate.contract.score import RerankRequest, ScoreRequest
from tidegate.contract.tokenize import TokenizeRequest
from tidegate.errors import InvalidRequest
from tidegate.inference.pooling import PoolingTask
from tidegate.serving.call import Call
from tidegate.serving.chat_prompt import render_chat
from tidegate.serving.model_tasks import Method, score_method, score_reason
from tidegate.serving.prepare import Preparation
from tidegate.serving.prepare_reading import Reading, ReadingPreparation
from tidegate.serving.prepared import PreparedCall
from tidegate.serving.reading_rules import documents_of, pairs_of
from tidegate.serving.score_assembler import RankingAssembler, RankingForm, ScoreAssembler, ScorePlan

QUESTION = (
    "Query: {query}\n\nDocument: {document}\n\nIs the document relevant to the query? Answer with Yes or No only."
)
"""What a model that writes is asked about a pair, as a user's message; then both answers are scored."""
ANSWERS = ("Yes", "No")

Own = ReadingPreparation[ScoreRequest] | ReadingPreparation[RerankRequest]
Places = tuple[str, str]
"""Where the two texts of a pair stand in the request."""


def prepare_score(call: Call, preparation: Preparation) -> PreparedCall:
    """Raises InvalidRequest, UnsupportedParameter, ModelNotFound or ModelNotAllowed; nothing has been started then."""
    own = ReadingPreparation(call, preparation, decode_score, ScoreRequest)
    request = own.request
    own.require(score_reason(preparation.info))
    pairs = pairs_of(request)
    is_one = isinstance(request.text_1, str) or len(request.text_1) == 1
    places = [
        (
            "text_1" if isinstance(request.text_1, str) else f"text_1[{0 if is_one else index}]",
            "text_2" if isinstance(request.text_2, str) else f"text_2[{index}]",
        )
        for index in range(len(pairs))
    ]
    readings, plan = _plan(own, pairs, places, use_activation=request.use_activation is not False)
    return own.finish("score-", readings, partial(ScoreAssembler, plan=plan))


def prepare_rerank(call: Call, preparation: Preparation) -> PreparedCall:
    """As `prepare_score`."""
    own = ReadingPreparation(call, preparation, decode_rerank, RerankRequest)
    request = own.request
    own.require(score_reason(preparation.info))
    documents = documents_of(request)
    pairs = [(request.query, document) for document in documents]
    places = [("query", f"documents[{index}]") for index in range(len(documents))]
    readings, plan = _plan(own, pairs, places, use_activation=request.use_activation is not False)
    form = RankingForm(request.top_n, documents if request.return_documents else None)
    return own.finish("rerank-", readings, partial(RankingAssembler, plan=plan, form=form))


def _plan(
    own: Own, pairs: Sequence[tuple[str, str]], places: Sequence[Places], *, use_activation: bool
) -> tuple[list[Reading], ScorePlan]:
    method = score_method(own.preparation.info)
    assert method is not None
    readings: list[Reading] = []
    match method:
        case Method.HEAD:
            readings = [_pair(own, *pair, place) for pair, place in zip(pairs, places, strict=True)]
            parts: list[tuple[int, ...]] = [(index,) for index in range(len(pairs))]
        case Method.LIKELIHOOD:
            for pair, place in zip(pairs, places, strict=True):
                readings += _question(own, *pair, place)
            parts = [(2 * index, 2 * index + 1) for index in range(len(pairs))]
        case Method.COSINE:
            readings, parts = _texts(own, pairs, places)
    return readings, ScorePlan(method, parts, use_activation)


def _pair(own: Own, first: str, second: str, place: Places) -> Reading:
    """Both texts in one prompt, as cross-encoders are trained: each with what the tokenizer adds, one beginning."""
    model, bound = own.preparation.model, own.pooled_bound
    head, tail = own.encode(first, place[0], bound), own.encode(second, place[1], bound)
    bos = model.tokenizer.vocabulary.bos_token_id
    if bos is not None and head[:1] == tail[:1] == [bos]:
        tail = tail[1:]
    token_ids = [*head, *model.pair_separator, *tail]
    own.check_length(len(token_ids), place[1], bound)
    return Reading(token_ids, PoolingTask.CLASSIFY)


def _question(own: Own, query: str, document: str, place: Places) -> list[Reading]:
    """The question with each of its answers."""
    preparation, bound = own.preparation, own.scored_bound
    template = preparation.model.templates.select(has_tools=False)
    effort: ReasoningEffort | None = "none" if template.capabilities.thinking_switch is not None else None
    text = QUESTION.format(query=query, document=document)
    asked = TokenizeRequest(messages=[UserMessage(content=text)], reasoning_effort=effort)
    try:
        token_ids = render_chat(asked, preparation).token_ids
    except InvalidRequest as error:
        error.param = place[1]
        raise
    readings = []
    for answer in ANSWERS:
        scored = preparation.encode_plain(answer)
        own.check_length(len(token_ids) + len(scored), place[1], bound)
        readings.append(Reading([*token_ids, *scored], num_scored=len(scored)))
    return readings


def _texts(
    own: Own, pairs: Sequence[tuple[str, str]], places: Sequence[Places]
) -> tuple[list[Reading], list[tuple[int, ...]]]:
    """Each text by itself, equal ones once."""
    prompts: dict[str, int] = {}
    readings: list[Reading] = []
    parts: list[tuple[int, ...]] = []
    for pair, place in zip(pairs, places, strict=True):
        for text, param in zip(pair, place, strict=True):
            if text not in prompts:
                prompts[text] = len(prompts)
                readings.append(Reading(own.encode(text, param, own.pooled_bound), PoolingTask.EMBED))
        parts.append((prompts[pair[0]], prompts[pair[1]]))
    return readings, parts
