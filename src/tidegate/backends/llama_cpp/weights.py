"""Which files a model consists of, and a digest of what is in them."""

import hashlib
import re
from pathlib import Path

from tidegate.sizing.start_error import StartError

# Whole files are hashed up to this size: well under a second on a common machine.
WHOLE_BYTES = 1 << 30
# Beyond it: the head (metadata, vocabulary, list of tensors) and evenly spread samples.
HEAD_BYTES = 16 << 20
NUM_SAMPLES = 4096
SAMPLE_BYTES = 4096

_MAGIC = b"GGUF"
_SHARD = re.compile(r"(?P<stem>.*)-(?P<index>\d{5})-of-(?P<count>\d{5})\.gguf")


def weight_files(path: Path) -> list[Path]:
    """Returns the files of the model at `path`: itself, or all shards of the split set that it belongs to.

    Raises StartError when a file is missing or is not GGUF.
    """
    files = _shards(path)
    for file in files:
        if not file.is_file():
            raise StartError(f"model file {file} does not exist: check the path, or download the model again")
        with file.open("rb") as stream:
            if stream.read(4) != _MAGIC:
                raise StartError(
                    f"model file {file} is not GGUF (it does not begin with the letters GGUF): it may be cut off, a "
                    "Git LFS pointer, or weights in another format; download the .gguf file again, or convert it"
                )
    return files


def _shards(path: Path) -> list[Path]:
    match = _SHARD.fullmatch(path.name)
    if not match:
        return [path]
    stem, count = match["stem"], int(match["count"])
    return [path.with_name(f"{stem}-{i + 1:05}-of-{count:05}.gguf") for i in range(count)]


def digest_weights(files: list[Path]) -> str:
    """Returns a digest of the files' contents, independent of their names and places.

    `sha256:` covers every byte. `sha256-sampled:` (files over 1 GiB in all, where reading everything would delay each
    start by half a minute or more) covers the sizes, the first 16 MiB of each file, and 4,096 samples of 4 KiB spread
    evenly over each: two models with it equal are the same unless somebody arranged otherwise.
    """
    sizes = [file.stat().st_size for file in files]
    whole = sum(sizes) <= WHOLE_BYTES
    digest = hashlib.sha256()
    for file, size in zip(files, sizes, strict=True):
        digest.update(f"{size}\n".encode())
        (_add_whole if whole else _add_samples)(digest, file, size)
    return f"sha256{'' if whole else '-sampled'}:{digest.hexdigest()}"


def _add_whole(digest: "hashlib._Hash", file: Path, _size: int) -> None:
    with file.open("rb", buffering=0) as stream:
        while part := stream.read(1 << 20):
            digest.update(part)


def _add_samples(digest: "hashlib._Hash", file: Path, size: int) -> None:
    with file.open("rb", buffering=0) as stream:
        digest.update(stream.read(HEAD_BYTES))
        last = max(0, size - SAMPLE_BYTES)
        for i in range(NUM_SAMPLES):
            stream.seek(last * i // (NUM_SAMPLES - 1))
            digest.update(stream.read(SAMPLE_BYTES))
