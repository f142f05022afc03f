"""The real `Hub`: huggingface_hub, with its cache, its progress bar, and errors that say what to do."""

from pathlib import Path
from typing import Any

from tidegate.cli.model_source_error import ModelSourceError


class HuggingFace:
    """Honours HF_HUB_OFFLINE, HF_HOME, HF_TOKEN and HF_ENDPOINT, as huggingface_hub does.

    `cache_dir`: another cache than the one that these name.
    """

    def __init__(self, cache_dir: Path | None = None) -> None:
        self._cache_dir = cache_dir

    def list_files(self, repo: str) -> list[str]:
        """Returns the paths of a repository's files. Raises ModelSourceError."""
        import huggingface_hub

        try:
            return list(huggingface_hub.list_repo_files(repo))
        except Exception as error:
            raise _explain(error, repo) from error

    def download(self, repo: str, file: str) -> Path:
        """Returns the path of a file, fetched into the cache if it is not there. Raises ModelSourceError."""
        import huggingface_hub

        try:
            return Path(huggingface_hub.hf_hub_download(repo, file, cache_dir=self._cache_dir))
        except Exception as error:
            raise _explain(error, repo) from error

    def cached(self) -> dict[str, dict[str, Path]]:
        """Returns the files of each cached repository, of its newest revision here. Never touches the network."""
        import huggingface_hub
        from huggingface_hub.errors import CacheNotFound

        try:
            repos = huggingface_hub.scan_cache_dir(self._cache_dir).repos
        except (CacheNotFound, OSError, ValueError):
            return {}
        return {repo.repo_id: _newest_files(repo) for repo in repos if repo.repo_type == "model"}


def _newest_files(repo: Any) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for revision in sorted(repo.revisions, key=lambda revision: revision.last_modified):
        for file in revision.files:
            files[Path(file.file_path).relative_to(revision.snapshot_path).as_posix()] = Path(file.file_path)
    return files


def _explain(error: Exception, repo: str) -> ModelSourceError:
    from huggingface_hub import errors

    if isinstance(error, errors.OfflineModeIsEnabled):
        return ModelSourceError(f"{repo} is not in the local cache, and HF_HUB_OFFLINE forbids fetching it: unset that")
    if isinstance(error, errors.GatedRepoError):
        return ModelSourceError(
            f"{repo} is open only to those who accepted its terms: accept them at https://huggingface.co/{repo}, "
            "then set HF_TOKEN to a token of yours"
        )
    if isinstance(error, errors.RepositoryNotFoundError | errors.HFValidationError):
        return ModelSourceError(f"Hugging Face has no public repository {repo}: check the name, or set HF_TOKEN")
    if isinstance(error, errors.HfHubHTTPError):
        return ModelSourceError(f"Hugging Face answered with an error for {repo} ({_brief(error)}): try again later")
    return ModelSourceError(
        f"{repo} is not in the local cache, and Hugging Face cannot be reached ({_brief(error)}): check the network "
        "and proxy, or download the .gguf file elsewhere and give its path"
    )


def _brief(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
