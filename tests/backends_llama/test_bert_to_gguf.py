"""The converter of embedding models: a checkpoint made of a random model's own tensors comes out as that model."""

import json
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from tidegate.backends.llama_cpp.open_model import open_model
from tidegate.core.backend import Float32Array
from tidegate.inference.pooling import PoolingTask
from tidegate.sizing.llama_cpp_options import LlamaCppOptions
from tidegate.testing.bert_gguf import TINY, random_tensors, tiny_words, write_tiny_bert
from tidegate.testing.gguf_file import write_gguf

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from bert_to_gguf import EMBEDDINGS, LAYER, convert


def write_checkpoint(folder: Path) -> None:
    names = dict(EMBEDDINGS)
    for layer in range(TINY.num_layers):
        names |= {f"blk.{layer}.{ours}": f"encoder.layer.{layer}.{theirs}" for ours, theirs in LAYER.items()}
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    data = b""
    for ours, values in random_tensors(TINY, len(tiny_words()), np.random.default_rng(1)).items():
        stem, _, kind = ours.rpartition(".")
        offsets = [len(data), len(data) + values.nbytes]
        entries[f"{names[stem]}.{kind}"] = {"dtype": "F32", "shape": values.shape, "data_offsets": offsets}
        data += values.tobytes()
    head = json.dumps(entries).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + data)
    (folder / "vocab.txt").write_text("\n".join(tiny_words()), "utf-8")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": false}')
    config = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 32, "intermediate_size": 64}
    config |= {"max_position_embeddings": 96, "layer_norm_eps": 1e-12}
    (folder / "config.json").write_text(json.dumps(config))


def vectors(path: Path) -> Float32Array:
    model = open_model(LlamaCppOptions(model_path=str(path), n_threads=1))
    assert model.pooling is not None
    found = model.pooling.pool([[2, 9, 40, 3], [2, 11, 3]], PoolingTask.EMBED)
    model.pooling.close()
    model.backend.close()
    return found


def test_a_converted_checkpoint_gives_the_vectors_of_its_weights(tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    convert(tmp_path, tmp_path / "converted.gguf")
    write_tiny_bert(tmp_path / "direct.gguf", seed=1)
    converted, direct = vectors(tmp_path / "converted.gguf"), vectors(tmp_path / "direct.gguf")
    assert np.allclose(converted, direct, atol=0.02)  # matrices became 16-bit floats
    assert not np.allclose(converted[0], converted[1], atol=0.1)


BAD_FILES = [
    ({"a": np.zeros(3, np.float64)}, {}, ValueError, "float64"),
    ({}, {"k": [1, "x"]}, TypeError, "one kind"),
]


@pytest.mark.parametrize(("tensors", "metadata", "error", "fault"), BAD_FILES, ids=range(len(BAD_FILES)))
def test_what_gguf_cannot_hold_here_is_refused(tmp_path: Path, tensors, metadata, error, fault) -> None:  # noqa: ANN001
    with pytest.raises(error, match=fault):
        write_gguf(tmp_path / "bad.gguf", metadata, tensors)
