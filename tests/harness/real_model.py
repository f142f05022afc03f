"""The bundled model behind a whole server, with settings that start fast.

One thread: threads of a forward pass wait for each other at every step, which takes ages where cores are shared.
"""

from harness.server_thread import ServerThread

MAX_MODEL_LEN = 1024
MAX_SEQUENCES = 32


def serve_bundled_model(**settings: object) -> ServerThread:
    """Returns a server that is not started yet."""
    small = {"model__max_model_len": MAX_MODEL_LEN, "engine__max_sequences": MAX_SEQUENCES, "engine__threads": 1}
    return ServerThread("llama", **(small | settings))
