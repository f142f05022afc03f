"""Certificates for tests, made with the `openssl` program; and a client that trusts exactly what it is told."""

import shutil
import socket
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

P256 = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
P521 = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:secp521r1")
RSA = ("-newkey", "rsa:2048")
PLAIN_KEY = ("-nodes",)


@dataclass(frozen=True, slots=True)
class Pair:
    """A self-made certificate for localhost, and its key."""

    name: str
    certificate: Path
    key: Path

    def install(self, target: "Pair") -> None:
        """Puts this pair into the place of another, key first, each file at one stroke."""
        for source, place in ((self.key, target.key), (self.certificate, target.certificate)):
            beside = place.with_name(place.name + ".new")
            shutil.copy(source, beside)
            beside.replace(place)


def make_pair(folder: Path, name: str, kind: tuple[str, ...] = P256, key: tuple[str, ...] = PLAIN_KEY) -> Pair:
    """Makes one that is valid for 30 days."""
    pair = Pair(name, folder / f"{name}.pem", folder / f"{name}.key")
    command = ["openssl", "req", "-x509", *kind, *key, "-keyout", str(pair.key), "-out", str(pair.certificate)]
    command += ["-days", "30", "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    return pair


_AUTHORITY = """
[ca]
default_ca = here
[here]
database = {folder}/index
new_certs_dir = {folder}
rand_serial = yes
default_md = sha256
policy = any
email_in_dn = no
[any]
commonName = supplied
"""


def make_dated(pair: Pair, folder: Path, start: str, end: str) -> Pair:
    """A certificate for a pair's key that is valid from `start` to `end`, such as 20300101000000Z."""
    (folder / "index").touch()
    settings, request, dated = folder / "ca", folder / "request", Pair("dated", folder / "dated.pem", pair.key)
    settings.write_text(_AUTHORITY.format(folder=folder))
    ask = ["openssl", "req", "-new", "-key", str(pair.key), "-subj", "/CN=dated", "-out", str(request)]
    sign = ["openssl", "ca", "-config", str(settings), "-selfsign", "-keyfile", str(pair.key), "-in", str(request)]
    sign += ["-startdate", start, "-enddate", end, "-batch", "-notext", "-out", str(dated.certificate)]
    for command in (ask, sign):
        subprocess.run(command, check=True, capture_output=True)
    return dated


def trusting(*pairs: Pair, highest: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    """A client's context that trusts these certificates only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for pair in pairs:
        context.load_verify_locations(pair.certificate)
    if highest is not None:
        context.maximum_version = highest
    return context


def connect(port: int, context: ssl.SSLContext) -> ssl.SSLSocket:
    """Shakes hands with a server on this machine."""
    plain = socket.create_connection(("127.0.0.1", port), 30.0)
    try:
        return context.wrap_socket(plain, server_hostname="localhost")
    except BaseException:
        plain.close()
        raise


def name_of(sock: ssl.SSLSocket) -> str:
    """Returns the name in the certificate at the other end."""
    shown = sock.getpeercert()
    assert shown is not None
    return str(dict(pair[0] for pair in shown["subject"])["commonName"])  # type: ignore[misc] # loosely typed


def offers(port: int, version: str) -> bool:
    """Whether a handshake of an old version of TLS, such as `tls1_1`, succeeds; with every cipher that there is."""
    client = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", f"-{version}", "-cipher", "ALL:@SECLEVEL=0"]
    return subprocess.run(client, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def served_name(port: int, context: ssl.SSLContext) -> str:
    """Returns the name in the certificate that new connections get."""
    with connect(port, context) as sock:
        return name_of(sock)
