"""Binding: real ports, IPv6, Unix sockets, and refusals that say what to do."""

import socket
import sys
from pathlib import Path

import pytest

from tidegate.http.listener import ListenError, bind_tcp, bind_unix, describe


def test_port_0_becomes_a_real_port() -> None:
    with bind_tcp("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        assert port > 0
        assert describe(sock) == f"http://127.0.0.1:{port}"
        socket.create_connection(("127.0.0.1", port)).close()


def test_a_port_can_be_bound_again_right_after_a_connection_ended() -> None:
    with bind_tcp("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        sock.setblocking(True)
        accepted, _ = sock.accept()
        accepted.close()
        client.close()
    bind_tcp("127.0.0.1", port).close()


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
def test_ipv6_is_bound_and_shown_in_brackets() -> None:
    try:
        sock = bind_tcp("::1", 0)
    except ListenError:
        pytest.skip("this machine has no IPv6 loopback")
    with sock:
        port = sock.getsockname()[1]
        assert describe(sock) == f"http://[::1]:{port}"
        socket.create_connection(("::1", port)).close()


def test_a_taken_port_is_named_with_advice() -> None:
    with bind_tcp("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        with pytest.raises(ListenError, match=rf"127\.0\.0\.1:{port}: the port is taken; stop .* another port"):
            bind_tcp("127.0.0.1", port)


@pytest.mark.parametrize(
    ("host", "words"),
    [("host.invalid", "no address of that name"), ("192.0.2.1", "no such address"), ("a" * 300, "no address")],
)
def test_an_address_that_is_not_ours_is_explained(host: str, words: str) -> None:
    with pytest.raises(ListenError, match=words):
        bind_tcp(host, 0)


def test_accepted_connections_inherit_the_options() -> None:  # SSE-8
    with bind_tcp("127.0.0.1", 0, send_buffer_bytes=16384, write_timeout_s=60) as sock:
        client = socket.create_connection(sock.getsockname())
        sock.setblocking(True)
        accepted, _ = sock.accept()
        with client, accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) <= 2 * 16384
            if sys.platform == "linux":
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 60_000


def test_a_unix_socket_is_private_and_replaces_a_stale_one(tmp_path: Path) -> None:
    path = tmp_path / "s"
    bind_unix(path).close()
    with bind_unix(path) as sock:
        assert path.stat().st_mode & 0o777 == 0o600
        assert describe(sock) == f"unix:{path}"
        with pytest.raises(ListenError, match="another program listens there"):
            bind_unix(path)


def test_a_file_in_the_way_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("mine")
    with pytest.raises(ListenError, match="in the way"):
        bind_unix(path)
    assert path.read_text() == "mine"
