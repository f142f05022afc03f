"""Every operation of the public listener: what it takes, what it answers, and which errors it may end with.

The one table behind the OpenAPI document and `/v1/contract`. A test holds it equal to the routes that are served.
"""

from dataclasses import dataclass

import msgspec

from tidegate.contract.chat import ChatChunk, ChatCompletion, ChatRequest
from tidegate.contract.classify import ClassificationList, ClassifyRequest
from tidegate.contract.completion import Completion, CompletionRequest
from tidegate.contract.embeddings import EmbeddingList, EmbeddingRequest
from tidegate.contract.health import Health
from tidegate.contract.model_list import Model, ModelList
from tidegate.contract.score import Ranking, RerankRequest, ScoreList, ScoreRequest
from tidegate.contract.self_description import SelfDescription
from tidegate.contract.tokenize import DetokenizeRequest, DetokenizeResponse, TokenizeRequest, TokenizeResponse

_ANY = frozenset({400, 405, 414, 431, 500})
_WITH_KEY = frozenset({401, 403})
_WITH_BODY = frozenset({404, 408, 413, 415, 422, 429, 503})
_WORKING = frozenset({409, 502, 504})


@dataclass(frozen=True, slots=True)
class Operation:
    """`chunk` is what one event of the stream holds, for operations that can stream. `reads`: the engine reads texts,
    and generates nothing.
    """

    method: str
    path: str
    name: str
    summary: str
    answer: type[msgspec.Struct]
    request: type[msgspec.Struct] | None = None
    chunk: type[msgspec.Struct] | None = None
    needs_key: bool = True
    more_errors: frozenset[int] = frozenset()
    reads: bool = False

    @property
    def asks_engine(self) -> bool:
        """Whether the engine is asked."""
        return self.chunk is not None or self.reads

    @property
    def errors(self) -> frozenset[int]:
        """Statuses of the errors that it may end with."""
        statuses = _ANY | self.more_errors | (_WITH_KEY if self.needs_key else frozenset())
        if self.request is not None:
            statuses |= _WITH_BODY
        return statuses | _WORKING if self.asks_engine else statuses


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST",
        "/v1/chat/completions",
        "createChatCompletion",
        "Continue a conversation, at once or as a stream",
        ChatCompletion,
        ChatRequest,
        ChatChunk,
    ),
    Operation(
        "POST",
        "/v1/completions",
        "createCompletion",
        "Continue one or several prompts, at once or as a stream",
        Completion,
        CompletionRequest,
        Completion,
    ),
    Operation(
        "POST",
        "/v1/embeddings",
        "createEmbeddings",
        "Texts to vectors",
        EmbeddingList,
        EmbeddingRequest,
        reads=True,
    ),
    Operation(
        "POST", "/v1/score", "createScores", "How well pairs of texts go together", ScoreList, ScoreRequest, reads=True
    ),
    Operation(
        "POST", "/v1/rerank", "createRanking", "Documents in the order of relevance", Ranking, RerankRequest, reads=True
    ),
    Operation(
        "POST",
        "/v1/classify",
        "createClassifications",
        "Which label fits a text",
        ClassificationList,
        ClassifyRequest,
        reads=True,
    ),
    Operation("POST", "/v1/tokenize", "tokenize", "Text or a chat to token ids", TokenizeResponse, TokenizeRequest),
    Operation("POST", "/v1/detokenize", "detokenize", "Token ids to text", DetokenizeResponse, DetokenizeRequest),
    Operation("GET", "/v1/models", "listModels", "The served models", ModelList),
    Operation("GET", "/v1/models/{id}", "showModel", "One served model", Model, more_errors=frozenset({404})),
    Operation("GET", "/v1/contract", "showContract", "What this server promises, for programs", SelfDescription),
    Operation("GET", "/healthz", "isAlive", "Whether the process is alive", Health, needs_key=False),
    Operation(
        "GET",
        "/health",
        "isReady",
        "Whether a request would be taken now",
        Health,
        needs_key=False,
        more_errors=frozenset({503}),
    ),
)
