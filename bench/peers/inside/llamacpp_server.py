"""llama.cpp's own HTTP server on 127.0.0.1, until SIGTERM. Runs in the environment of the peer llamacpp.

python llamacpp_server.py FILE.gguf PORT NAME TEMPLATE.jinja SLOTS CONTEXT_TOKENS THREADS API_KEY

An empty API_KEY: none is asked for.
"""

import signal
import sys
from pathlib import Path

import xllamacpp


def main() -> None:
    gguf, port, name, template, slots, context_tokens, threads, api_key = sys.argv[1:]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    wanted = xllamacpp.CommonParams()
    wanted.hostnames = ["127.0.0.1"]
    wanted.port = int(port)
    wanted.model.path = gguf
    wanted.model_alias = {name}
    wanted.chat_template = Path(template).read_text("utf-8")
    wanted.n_parallel = int(slots)
    wanted.n_ctx = int(context_tokens)  # of all slots together
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = int(threads)
    wanted.api_keys = [api_key] if api_key else []
    wanted.endpoint_metrics = True
    wanted.offline = True
    wanted.ui = False
    server = xllamacpp.Server(wanted)
    sys.stderr.write(f"listening on {server.listening_address}\n")
    signal.sigwait({signal.SIGINT, signal.SIGTERM})
    del server


if __name__ == "__main__":
    main()
