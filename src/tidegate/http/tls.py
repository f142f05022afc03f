"""TLS by certificate and key files: what is wrong with a pair, and when a new pair has taken its place.

A pair is judged by using it: a handshake in memory with a client that trusts exactly this certificate. So whatever
OpenSSL would refuse later is refused at the start, with words.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tidegate.http.listener import ListenError
from tidegate.system import SystemClock

_log = logging.getLogger(__name__)

_WARN_BEFORE_S = 7 * 86400
_FAULTS = {10: "has expired", 9: "is not valid yet"}  # X509_V_ERR_CERT_HAS_EXPIRED, X509_V_ERR_CERT_NOT_YET_VALID
_ALPN = ["http/1.1"]


class TlsError(ListenError):
    """A certificate and its key cannot be served. The message says which file, and why."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: the certificate with its chain, and its private key without a password."""

    certificate: Path
    key: Path

    def fingerprint(self) -> tuple[tuple[int, int, int] | None, ...]:
        """Returns a value that differs when a file has been written or replaced, behind links as well."""
        return tuple(_stamp(path) for path in (self.certificate, self.key))


def make_context(files: TlsFiles) -> ssl.SSLContext:
    """Returns a server's context: TLS 1.2 at least, HTTP/1.1. Raises TlsError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(_ALPN)
    load_pair(context, files)
    return context


def load_pair(context: ssl.SSLContext, files: TlsFiles) -> None:
    """Makes a context serve this pair from the next handshake on. Raises TlsError, and then changes nothing."""
    _check_readable(files)
    probe = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for target in (probe, context):
        try:
            target.load_cert_chain(files.certificate, files.key, password=_no_password)
        except ssl.SSLError as error:
            raise TlsError(_explain(files, error)) from error
        except _EncryptedKey as error:
            raise TlsError(f"the key in {files.key} is encrypted; it has to be one without a password") from error


def check_pair(files: TlsFiles, wall: float) -> list[str]:
    """Returns what an operator should know of a pair that can be served, at `wall` seconds since the Unix epoch.

    Raises TlsError for one that cannot.
    """
    server = make_context(files)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(files.certificate)
    try:
        not_after = _shake_hands(server, client)
    except ssl.SSLCertVerificationError as error:
        fault = _FAULTS.get(error.verify_code)  # for the rest, the chain is the client's affair
        return [f"the certificate in {files.certificate} {fault}; clients will refuse it"] if fault else []
    except ssl.SSLError as error:
        raise TlsError(f"TLS does not work with {files.certificate} and {files.key}: {error.reason}") from error
    if not_after is not None and not_after - wall < _WARN_BEFORE_S:
        when = datetime.fromtimestamp(not_after, UTC)
        return [f"the certificate in {files.certificate} expires on {when:%Y-%m-%d %H:%M} UTC"]
    return []


class CertificateWatch:
    """Looks at the files from time to time, and hands on a pair that has changed and can be served."""

    def __init__(self, files: TlsFiles, apply: Callable[[], Awaitable[None]], poll_s: float) -> None:
        self._files = files
        self._apply = apply
        self._poll_s = poll_s
        self._seen = files.fingerprint()

    async def run(self) -> None:
        """Runs until it is cancelled. A pair that cannot be served is reported once; the old one stays."""
        while True:
            await asyncio.sleep(self._poll_s)
            await self.look()

    async def look(self) -> None:
        now = self._files.fingerprint()
        if now == self._seen:
            return
        self._seen = now
        try:
            for warning in check_pair(self._files, SystemClock().wall()):
                _log.warning("%s", warning)
            await self._apply()
        except TlsError as error:
            _log.error("the changed certificate is not used, the old one stays: %s", error)
        else:
            _log.info("the certificate in %s has been read again", self._files.certificate)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _check_readable(files: TlsFiles) -> None:
    for what, path in (("certificate", files.certificate), ("key", files.key)):
        try:
            with path.open("rb") as file:
                file.read(1)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise TlsError(f"the {what} file {path} cannot be read: {reason}") from error


def _no_password() -> str:
    raise _EncryptedKey


class _EncryptedKey(Exception):
    """OpenSSL asked for a password."""


def _explain(files: TlsFiles, error: ssl.SSLError) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"the key in {files.key} does not belong to the certificate in {files.certificate}"
    certificate_only = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with suppress(ssl.SSLError):
        certificate_only.load_verify_locations(files.certificate)
        if certificate_only.cert_store_stats()["x509"]:
            return f"{files.key} holds no private key in PEM form that can be used"
    return f"{files.certificate} holds no certificate in PEM form that can be used"


def _shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> float | None:
    """Runs one handshake in memory. Returns the end of the certificate's time, in seconds since the Unix epoch."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server, server_hostname=None)
    far = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(8):
        num_done = 0
        for end in (near, far):
            try:
                end.do_handshake()
                num_done += 1
            except ssl.SSLWantReadError:
                pass
        if num_done == 2:
            break
    shown = near.getpeercert()
    if not shown or "notAfter" not in shown:
        return None
    return ssl.cert_time_to_seconds(str(shown["notAfter"]))
