"""Which formats each real chat template is taken to be written for, and what settings do about it."""

from pathlib import Path

import pytest

from harness.real_templates import UNUSABLE, compiled, sources
from tidegate.cli.model_loading import FormatError, load_model
from tidegate.cli.settings import EngineSettings, ModelSettings, Settings
from tidegate.inference.model_info import ModelInfo
from tidegate.parsers.detect_format import TemplateView, detect_reasoning_format, detect_tool_format
from tidegate.parsers.families import FAMILIES
from tidegate.serving.output_formats import OutputFormats, UnknownFormat, choose_formats, view_templates

READS_BACK = "its calls read back"
NO_TOOLS = "knows no tools"
NO_FORMAT = "no format here knows"
EXPECTED: dict[str, tuple[str | None, str | None, str]] = {
    # Template: the format of calls, of reasoning, and what its reason says.
    "Mistral-7B-Instruct-v0.3 (JSON Schema)": ("mistral", None, READS_BACK),
    "Mistral-7B-Instruct-v0.3-SOTA-GGUF": ("mistral", None, READS_BACK),
    "Mistral-Nemo-Instruct-2407": ("mistral", None, READS_BACK),
    "mistralai-Mistral-Nemo-Instruct-2407.jinja": ("mistral", None, READS_BACK),
    "Mistral-Small-3.2-24B-Instruct-2506.jinja": ("mistral", None, READS_BACK),
    "unsloth-mistral-Devstral-Small-2507.jinja": ("mistral", None, READS_BACK),
    "mistralai-Ministral-3-14B-Reasoning-2512.jinja": ("mistral", "mistral", READS_BACK),
    "Hermes-2-Pro-Llama-3-8B (JSON Schema)": ("hermes", None, READS_BACK),
    "Qwen2.5-7B-Instruct": ("hermes", None, READS_BACK),
    "Qwen-Qwen2.5-7B-Instruct.jinja": ("hermes", None, READS_BACK),
    "MiMo-VL.jinja": ("hermes", None, READS_BACK),
    "ibm-granite-granite-4.0.jinja": ("hermes", None, READS_BACK),
    "ibm-granite-granite-4.1.jinja": ("hermes", None, READS_BACK),
    "Qwen3-0.6B": ("hermes", "hermes", READS_BACK),
    "Qwen-Qwen3-0.6B.jinja": ("hermes", "hermes", READS_BACK),
    "Qwen-QwQ-32B.jinja": ("hermes", "hermes", READS_BACK),
    "Bielik-11B-v3.0-Instruct.jinja": ("hermes", "hermes", READS_BACK),
    # It describes calls to the model, and renders none of those that were made.
    "SmolLM3-3B": ("hermes", "hermes", "it has <tool_call>"),
    "Qwen3.5-4B": ("qwen3_coder", "qwen3_coder", READS_BACK),
    "Qwen3.5-4B.jinja": ("qwen3_coder", "qwen3_coder", READS_BACK),
    "Qwen3-Coder.jinja": ("qwen3_coder", None, READS_BACK),
    "StepFun3.5-Flash.jinja": ("qwen3_coder", "qwen3_coder", READS_BACK),
    "ByteDance-Seed-OSS.jinja": ("seed_oss", "seed_oss", READS_BACK),
    "Llama-3.1-8B-Instruct": ("llama3_json", None, READS_BACK),
    "Llama-3.2-11B-Vision-Instruct": ("llama3_json", None, READS_BACK),
    "DeepSeek-R1": ("deepseek_v3", "deepseek_v3", READS_BACK),
    "llama-cpp-deepseek-r1.jinja": ("deepseek_v3", "deepseek_v3", READS_BACK),
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja": ("deepseek_v3", "deepseek_v3", READS_BACK),
    "deepseek-ai-DeepSeek-V3.1.jinja": ("deepseek_v31", "deepseek_v31", READS_BACK),
    "deepseek-ai-DeepSeek-V3.2.jinja": ("deepseek_v32", "deepseek_v32", READS_BACK),
    "c4ai-command-a-03-2025": ("command_a", "command_a", READS_BACK),
    "command-a-reasoning-08-2025": ("command_a", "command_a", READS_BACK),
    "AI21-Jamba-Large-1.6": ("jamba", None, READS_BACK),
    "MiniMax-M1.jinja": ("jamba", None, READS_BACK),
    "MiniMax-M2.jinja": ("minimax_m2", "minimax_m2", READS_BACK),
    "Apriel-1.6-15b-Thinker-fixed.jinja": ("apriel", "apriel", READS_BACK),
    "unsloth-Apriel-1.5.jinja": ("apriel", "apriel", READS_BACK),
    "Kimi-K2-Instruct.jinja": ("kimi_k2", None, READS_BACK),
    "moonshotai-Kimi-K2.jinja": ("kimi_k2", None, READS_BACK),
    "Kimi-K2-Thinking": ("kimi_k2", "kimi_k2", READS_BACK),
    "Kimi-K2-Thinking.jinja": ("kimi_k2", "kimi_k2", READS_BACK),
    "LFM2.5-VL-450M": ("lfm2", "lfm2", READS_BACK),
    "GLM-4.6.jinja": ("glm45", "glm45", READS_BACK),
    "GLM-4.7-Flash.jinja": ("glm45", "glm45", READS_BACK),
    "GLM-5.1": ("glm45", "glm45", READS_BACK),
    "inclusionai-ling-3.0-flash.jinja": ("glm45", "glm45", READS_BACK),
    "openai-gpt-oss-120b.jinja": ("harmony", "harmony", READS_BACK),
    # It tells the model of the marker, and renders no calls.
    "ibm-granite-granite-3.3-2B-Instruct.jinja": ("granite", "granite", "it has <|tool_call|>"),
    # It asks for a bare JSON list, and renders no calls.
    "Hammer2.1": ("json", None, "[BEGIN OF AVAILABLE_TOOLS]"),
    # Calls go to a recipient named in a header; no family writes so.
    "functionary-medium-v2.2": (None, None, NO_FORMAT),
    # Python in a fenced block between LFM2's markers.
    "MiniCPM3-4B": (None, None, NO_FORMAT),
    # An object from name to arguments, in a list between markers of its own.
    "Apertus-8B-Instruct.jinja": (None, None, NO_FORMAT),
    # A fenced JSON list after the word Action.
    "c4ai-command-r-v01 (JSON Schema)": (None, None, NO_FORMAT),
    # Reasoning, and no tools.
    "HuggingFaceTB-SmolLM3-3B.jinja": (None, "think", NO_TOOLS),
    "llama-cpp-rwkv-world.jinja": (None, "think", NO_TOOLS),
    # It wants functions in a message of a role that the API does not have.
    "firefunction-v1": (None, None, NO_TOOLS),
}
"""Every template that is not here is a plain one: it shows the model neither tools nor reasoning."""
PLAIN = (None, None, NO_TOOLS)
USABLE = sorted(sources().keys() - UNUSABLE)


@pytest.mark.parametrize("name", USABLE)
def test_a_real_template_gets_the_formats_that_its_model_writes(name: str) -> None:
    formats = choose_formats(view_templates([sources()[name]], compiled(name)))
    tool, reasoning, reason = EXPECTED.get(name, PLAIN)
    assert (formats.tool and formats.tool.name, formats.reasoning_name) == (tool, reasoning)
    assert formats.tool_name == (tool or "json")
    assert reason in formats.tool_why


def test_the_table_names_templates_that_exist() -> None:
    assert EXPECTED.keys() <= set(USABLE)
    assert len(USABLE) == 87


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_a_template_that_writes_a_familys_example_is_of_that_family(name: str) -> None:
    example = FAMILIES[name].example.replace("tide_at", "zebra_tool").replace("port", "zebra_key")
    turn = example.replace("Brest", "zebra-Q7")
    found = detect_tool_format(TemplateView((turn,), (turn,), supports_tools=True))
    # These write a call with the very text of another family, which comes first.
    shared = {"json": "llama3_json", "llama4_pythonic": "llama4_pythonic", "apriel": "jamba"}
    assert found.name == shared.get(name, name)


def test_a_template_chosen_format_leaves_it_to_each_prompt_whether_reasoning_is_open() -> None:
    view = view_templates([sources()["DeepSeek-R1"]], compiled("DeepSeek-R1"))
    by_template = choose_formats(view).reasoning
    by_setting = choose_formats(view, reasoning_setting="deepseek_r1").reasoning
    assert by_template is not None
    assert by_setting is not None
    assert (by_template.is_open, by_setting.is_open) == (False, True)


def test_none_switches_a_format_off() -> None:
    view = view_templates([sources()["Qwen3-0.6B"]], compiled("Qwen3-0.6B"))
    formats = choose_formats(view, tool_setting="none", reasoning_setting="none")
    assert (formats.tool, formats.tool_name, formats.reasoning) == (None, None, None)
    assert formats.tool_why == "by setting model.tool_format"


@pytest.mark.parametrize("setting", ["tool_setting", "reasoning_setting"])
def test_a_wrong_name_is_refused_with_the_known_ones(setting: str) -> None:
    with pytest.raises(UnknownFormat, match=r"'hermse'.*known are auto, none, apriel.*hermes"):
        choose_formats(TemplateView(()), **{setting: "hermse"})


def test_a_family_without_markers_of_reasoning_is_no_reasoning_format() -> None:
    with pytest.raises(UnknownFormat, match="llama3_json"):
        choose_formats(TemplateView(()), reasoning_setting="llama3_json")


def test_harmony_tells_its_reasoning_apart_by_itself() -> None:
    formats = choose_formats(TemplateView(()), tool_setting="harmony")
    assert (formats.reasoning, formats.reasoning_name, formats.tells_reasoning) == (None, "harmony", True)
    assert choose_formats(TemplateView(()), tool_setting="harmony", reasoning_setting="harmony").tool_name == "harmony"
    with pytest.raises(UnknownFormat, match="does not go with"):
        choose_formats(TemplateView(()), tool_setting="harmony", reasoning_setting="think")


def test_words_of_a_templates_instructions_are_no_markers() -> None:
    view = TemplateView(("Here is my thought process: {{ messages }}",))
    assert detect_reasoning_format(view, FAMILIES["granite"]).name is None


def test_a_server_with_a_wrong_format_does_not_load() -> None:
    settings = Settings(engine=EngineSettings(kind="simulated"), model=ModelSettings(tool_format="hermse"))
    with pytest.raises(FormatError, match="known are"):
        load_model(settings)


def test_the_formats_are_part_of_the_served_revision(tmp_path: Path) -> None:
    template = tmp_path / "template.jinja"
    template.write_text(sources()["Qwen3-0.6B"])
    revisions = set()
    for tool, reasoning in (("auto", "auto"), ("none", "auto"), ("auto", "none"), ("auto", "deepseek_r1")):
        model = ModelSettings(chat_template=str(template), tool_format=tool, reasoning_format=reasoning)
        served = load_model(Settings(engine=EngineSettings(kind="simulated"), model=model)).served
        assert isinstance(served.formats, OutputFormats)
        revisions.add(served.revision(_info()))
    assert len(revisions) == 4


def _info() -> ModelInfo:
    return ModelInfo(
        vocab_size=300,
        max_model_len=64,
        eos_token_ids=(),
        max_sequences=1,
        num_blocks=4,
        block_tokens=16,
        weights_digest="w",
        build="b",
    )
