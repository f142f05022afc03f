import pytest

from tidegate.engine.options import EngineOptions, OptionsError, decode_options, encode_options


def test_options_survive_the_command_line() -> None:
    options = EngineOptions(
        backend="llama", model_path="/models/ü.gguf", tensor_split=(0.5, 0.5), kv_type_k="q8_0", num_threads=3
    )
    assert decode_options(encode_options(options), "llama") == options


@pytest.mark.parametrize(
    ("text", "backend", "message"),
    [
        ("", "scripted", "truncated"),
        ("[]", "scripted", "object"),
        ('{"max_sequences": 0}', "scripted", "max_sequences"),
        ('{"max_sequences": true}', "scripted", "max_sequences"),
        ('{"max_sequences": 4097}', "scripted", "max_sequences"),
        ('{"flash_attn": "maybe"}', "scripted", "flash_attn"),
        ('{"n_ctx": 3}', "scripted", "n_ctx"),
        ("{}", "llama", "model_path"),
        ("{}", "vllm", "backend"),
        ('{"max_step_tokens": 8}', "simulated", "max_step_tokens"),
    ],
)
def test_unusable_options_name_the_field(text: str, backend: str, message: str) -> None:
    with pytest.raises(OptionsError, match=message):
        decode_options(text, backend)
