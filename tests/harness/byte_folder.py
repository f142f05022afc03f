"""A Hugging Face folder whose tokenizer is the simulated engine's: one token for each byte, BOS 256, EOS 257."""

import json
from pathlib import Path

from tidegate.cli.model_loading import CONTENTS_TEMPLATE
from tidegate.text.byte_tokenizer import BOS_TOKEN, BOS_TOKEN_ID, EOS_TOKEN, EOS_TOKEN_ID


def write_byte_folder(folder: Path, *, template: str = CONTENTS_TEMPLATE, vocab_size: int = 258) -> Path:
    """Writes the files and returns the folder. With a larger `vocab_size` the rest are made-up words."""
    folder.mkdir(parents=True, exist_ok=True)
    vocab = {spelled: value for value, spelled in enumerate(_byte_characters())}
    vocab |= {f"word{i}": i for i in range(258, vocab_size)}
    added = [_added(BOS_TOKEN_ID, BOS_TOKEN), _added(EOS_TOKEN_ID, EOS_TOKEN)]
    definition = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": vocab | {BOS_TOKEN: BOS_TOKEN_ID, EOS_TOKEN: EOS_TOKEN_ID},
            "merges": [],
        },
    }
    (folder / "tokenizer.json").write_text(json.dumps(definition), "utf-8")
    config = {"bos_token": BOS_TOKEN, "eos_token": EOS_TOKEN, "chat_template": template}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    return folder


def _added(token_id: int, content: str) -> dict[str, object]:
    rules = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": token_id, "content": content, **rules}


def _byte_characters() -> list[str]:
    """The characters that byte-level vocabularies write bytes with: printable ones as they are, others from 256 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(256, 512))
    return [chr(value if value in printable else next(others)) for value in range(256)]
