"""Whether granian can serve a certificate and key: `python -m tidegate.http.tls_proof CERTIFICATE KEY`.

granian's library takes fewer kinds of keys than OpenSSL, and ends its process at one that it does not take. So this
is a process of its own: it serves the pair on this machine, shakes hands once, and ends with 0.
"""

import asyncio
import os
import ssl
import sys
from pathlib import Path
from typing import NoReturn

from tidegate.http.asgi import Receive, Scope, Send
from tidegate.http.granian_server import GranianServer
from tidegate.http.listener import bind_tcp
from tidegate.http.settings import ServerSettings
from tidegate.http.tls import TlsFiles


async def prove(files: TlsFiles) -> NoReturn:
    """Ends the process with 0 after a handshake. Raises what the handshake raises."""
    server = GranianServer(_answer_nothing, bind_tcp("127.0.0.1", 0), ServerSettings(tls=files, stop_grace_s=0.0))
    await server.start(is_proven=True)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    await asyncio.open_connection("127.0.0.1", server.port, ssl=client)
    os._exit(0)  # the proof is done; an orderly end of two runtimes at once could still fail, and prove nothing


async def _answer_nothing(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise AssertionError


if __name__ == "__main__":
    asyncio.run(prove(TlsFiles(Path(sys.argv[1]), Path(sys.argv[2]))))
