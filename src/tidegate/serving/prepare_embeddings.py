"""An embeddings call to a `PreparedCall`: each input becomes one prompt that the engine pools."""

from functools import partial

from tidegate.contract.codec import decode_embeddings
from tidegate.contract.embeddings import EmbeddingRequest
from tidegate.errors import InvalidValue, UnsupportedParameter
from tidegate.inference.pooling import PoolingTask
from tidegate.serving.call import Call
from tidegate.serving.embedding_assembler import EmbeddingAssembler, EmbeddingForm
from tidegate.serving.model_tasks import embedding_reason
from tidegate.serving.prepare import Preparation
from tidegate.serving.prepare_reading import Reading, ReadingPreparation
from tidegate.serving.prepared import PreparedCall
from tidegate.serving.prompt_rules import read_prompts


def prepare_embeddings(call: Call, preparation: Preparation) -> PreparedCall:
    """Raises InvalidRequest, UnsupportedParameter, ModelNotFound or ModelNotAllowed; nothing has been started then."""
    own = ReadingPreparation(call, preparation, decode_embeddings, EmbeddingRequest)
    request = own.request
    inputs = read_prompts(request.input, "input", vocab_size=preparation.info.vocab_size)
    own.require(embedding_reason(preparation.info))
    form = EmbeddingForm(
        dimensions=_dimensions(request.dimensions, own.pooling.dimensions, preparation.model.min_dimensions),
        normalize=request.normalize is not False,
        is_base64=request.encoding_format == "base64",
    )
    readings = []
    for index, text in enumerate(inputs):
        param = "input" if len(inputs) == 1 else f"input[{index}]"
        readings.append(Reading(own.encode(text, param, own.pooled_bound), PoolingTask.EMBED))
    return own.finish("embd-", readings, partial(EmbeddingAssembler, num_inputs=len(inputs), form=form))


def _dimensions(wanted: int | None, native: int, fewest: int | None) -> int | None:
    """Returns how many components are kept; None for all. A vector is cut only where the operator says that the model
    was trained for it (`model.min_dimensions`): the beginning of any other vector means nothing by itself.
    """
    if wanted is None or wanted == native:
        return None
    if wanted > native:
        message = f"dimensions: the served model's vectors have {native} components, and cannot have more"
        raise InvalidValue(message, param="dimensions")
    if fewest is None:
        message = f"dimensions: the served model's vectors have {native} components, and mean nothing when cut"
        raise UnsupportedParameter(message, param="dimensions")
    if wanted < fewest:
        message = f"dimensions: the served model's vectors mean nothing with fewer than {fewest} components"
        raise UnsupportedParameter(message, param="dimensions")
    return wanted
