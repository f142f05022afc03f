"""A classify call to a `PreparedCall`: each input through the model's head, or once with each label."""

from functools import partial

from tidegate.contract.classify import ClassifyRequest
from tidegate.contract.codec import decode_classify
from tidegate.errors import InvalidValue, MissingField, UnsupportedParameter
from tidegate.inference.pooling import PoolingTask
from tidegate.serving.call import Call
from tidegate.serving.class_assembler import ClassAssembler, ClassPlan
from tidegate.serving.model_tasks import Method, classify_method, classify_reason
from tidegate.serving.prepare import Preparation
from tidegate.serving.prepare_reading import Reading, ReadingPreparation
from tidegate.serving.prepared import PreparedCall
from tidegate.serving.prompt_rules import Prompt, read_prompts

Own = ReadingPreparation[ClassifyRequest]


def prepare_classify(call: Call, preparation: Preparation) -> PreparedCall:
    """Raises InvalidRequest, UnsupportedParameter, ModelNotFound or ModelNotAllowed; nothing has been started then."""
    own = ReadingPreparation(call, preparation, decode_classify, ClassifyRequest)
    request, info = own.request, preparation.info
    inputs = read_prompts(request.input, "input", vocab_size=info.vocab_size)
    own.require(classify_reason(info))
    use_activation = request.use_activation is not False
    if classify_method(info) is Method.HEAD:
        if request.labels is not None:
            raise UnsupportedParameter("labels: the served model's head has labels of its own", param="labels")
        labels = own.pooling.labels or None
        readings = [
            Reading(own.encode(text, _place(inputs, index), own.pooled_bound), PoolingTask.CLASSIFY)
            for index, text in enumerate(inputs)
        ]
        plan = ClassPlan(len(inputs), labels, True, use_activation)
    else:
        if request.labels is None:
            message = "labels: the served model has no classification head; give the labels to choose from"
            raise MissingField(message, param="labels")
        readings = [reading for index in range(len(inputs)) for reading in _labelled(own, inputs, index)]
        plan = ClassPlan(len(inputs), request.labels, False, use_activation)
    return own.finish("classify-", readings, partial(ClassAssembler, plan=plan))


def _place(inputs: list[Prompt], index: int) -> str:
    return "input" if len(inputs) == 1 else f"input[{index}]"


def _labelled(own: Own, inputs: list[Prompt], index: int) -> list[Reading]:
    """One input with each label behind it, as it would go on: after a blank, unless one of both brings its own.

    After token ids, which are taken as they are, labels are too.
    """
    text, place = inputs[index], _place(inputs, index)
    token_ids = own.encode(text, place, own.scored_bound)
    readings = []
    for position, label in enumerate(own.request.labels or []):
        needs_blank = isinstance(text, str) and not text[-1].isspace() and not label[0].isspace()
        scored = own.preparation.encode_plain(f" {label}" if needs_blank else label)
        if not scored:
            param = f"labels[{position}]"
            raise InvalidValue(f"{param}: this label has no token that the model could read", param=param)
        own.check_length(len(token_ids) + len(scored), place, own.scored_bound)
        readings.append(Reading([*token_ids, *scored], num_scored=len(scored)))
    return readings
