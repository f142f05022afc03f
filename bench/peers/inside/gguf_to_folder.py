"""Writes a GGUF file as a Hugging Face folder, its weights unpacked to bfloat16. Runs in the environment of vllm.

python gguf_to_folder.py FILE.gguf FOLDER
"""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils.quantization_config import GgufConfig


def main() -> None:
    gguf, folder = Path(sys.argv[1]), sys.argv[2]
    unpacked = GgufConfig(gguf_file=gguf.name, dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        str(gguf.parent), gguf_file=gguf.name, dtype=torch.bfloat16, quantization_config=unpacked
    )
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name).save_pretrained(folder)


if __name__ == "__main__":
    main()
