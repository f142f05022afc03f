"""What a started server listens on, all its processes: the two ports it was told, on loopback, and nothing else."""

import socket
from pathlib import Path

import psutil
import pytest

from harness.raw_http import request
from harness.server_process import ServerProcess

pytestmark = pytest.mark.process


def test_only_the_configured_ports_listen_and_only_on_loopback() -> None:  # SEC-17
    with ServerProcess("scripted", server__workers=2) as server:
        assert request(server.port, "GET", "/v1/models").status == 200
        parent = psutil.Process(server.process_id)
        family = [parent, *parent.children(recursive=True)]
        assert len(family) >= 4
        bound = [connection for process in family for connection in process.net_connections("inet")]
        listening = {connection.laddr for connection in bound if connection.status == psutil.CONN_LISTEN}
        assert {(address.ip, address.port) for address in listening} == {
            ("127.0.0.1", server.port),
            ("127.0.0.1", server.admin_port),
        }
        assert not [one for one in bound if one.type == socket.SOCK_DGRAM]
        paths = {Path(str(one.laddr)) for process in family for one in process.net_connections("unix") if one.laddr}
        paths = {path for path in paths if path.is_socket()}
        assert paths, "the engine listens somewhere"
        assert [path for path in paths if not is_private(path)] == []


def is_private(path: Path) -> bool:
    """Whether a socket lies in a folder that only its owner may enter."""
    return path.parent.stat().st_mode & 0o077 == 0
