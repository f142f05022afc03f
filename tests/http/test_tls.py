"""Certificates: what is refused at the start, and a changed pair on both HTTP servers while streams run."""

import asyncio
import ssl
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from harness.certificates import P256, P521, RSA, Pair, make_dated, make_pair, offers, served_name, trusting
from tidegate.http.app import make_public_app
from tidegate.http.granian_server import GranianServer
from tidegate.http.listener import bind_tcp
from tidegate.http.settings import ServerSettings
from tidegate.http.tls import TlsError, TlsFiles, check_pair
from tidegate.system import SystemClock

REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
DONE = b"data: [DONE]\n\n"
DAY_S = 86_400
KINDS = ["granian", "uvicorn"]


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(30):
            return await coroutine

    return uvloop.run(bounded())


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pair]:
    folder = tmp_path_factory.mktemp("certificates")
    return {
        "old": make_pair(folder, "old"),
        "new": make_pair(folder, "new"),
        "rsa": make_pair(folder, "rsa", kind=RSA),
        "p521": make_pair(folder, "p521", kind=P521),
        "locked": make_pair(folder, "locked", kind=P256, key=("-passout", "pass:x")),
    }


def files(pair: Pair) -> TlsFiles:
    return TlsFiles(pair.certificate, pair.key)


def placed(store: dict[str, Pair], folder: Path) -> Pair:
    place = Pair("place", folder / "tls.pem", folder / "tls.key")
    store["old"].install(place)
    return place


def complaint(certificate: Path, key: Path) -> str:
    with pytest.raises(TlsError) as refused:
        check_pair(TlsFiles(certificate, key), SystemClock().wall())
    return str(refused.value)


def test_what_cannot_be_served_is_explained_and_names_the_file(store: dict[str, Pair], tmp_path: Path) -> None:
    old, new, locked = store["old"], store["new"], store["locked"]
    junk = tmp_path / "junk.pem"
    junk.write_text("junk")
    missing = tmp_path / "missing.pem"
    assert complaint(old.certificate, new.key) == (
        f"the key in {new.key} does not belong to the certificate in {old.certificate}"
    )
    assert complaint(missing, old.key) == f"the certificate file {missing} cannot be read: no such file or directory"
    assert complaint(old.certificate, missing) == f"the key file {missing} cannot be read: no such file or directory"
    assert complaint(junk, old.key).startswith(f"{junk} holds no certificate")
    assert complaint(old.certificate, junk).startswith(f"{junk} holds no private key")
    assert complaint(old.certificate, old.certificate).startswith(f"{old.certificate} holds no private key")
    assert "encrypted" in complaint(locked.certificate, locked.key)


def test_a_pair_that_is_well_has_nothing_to_say(store: dict[str, Pair]) -> None:
    for name in ("old", "rsa", "p521"):
        assert check_pair(files(store[name]), SystemClock().wall()) == []


def test_a_certificate_that_ends_soon_is_a_warning(store: dict[str, Pair]) -> None:
    (warning,) = check_pair(files(store["old"]), SystemClock().wall() + 24 * DAY_S)
    assert "expires on" in warning


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        ("20000101000000Z", "20000102000000Z", "has expired"),
        ("20990101000000Z", "20990102000000Z", "is not valid yet"),
    ],
)
def test_a_certificate_out_of_its_time_is_a_warning_and_served(
    store: dict[str, Pair], tmp_path: Path, start: str, end: str, words: str
) -> None:
    pair = make_dated(store["old"], tmp_path, start, end)
    (warning,) = check_pair(files(pair), SystemClock().wall())
    assert words in warning


async def served_as(site: Any, context: ssl.SSLContext) -> str:
    return await asyncio.to_thread(served_name, site.server.port, context)


async def until_served(site: Any, context: ssl.SSLContext, name: str) -> None:
    async with asyncio.timeout(20):
        while await served_as(site, context) != name:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_pair_is_served_to_new_connections_while_old_streams_go_on(
    make: Any, kind: str, store: dict[str, Pair], tmp_path: Path
) -> None:
    place, context = placed(store, tmp_path), trusting(store["old"], store["new"])

    async def go() -> None:
        service = make.service()
        stream = service.reply = make.stream()
        async with make.serve(kind, make_public_app(service), tls=files(place), tls_poll_s=0.02) as site:
            assert site.server.url == f"https://127.0.0.1:{site.server.port}"
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", site.server.port, ssl=context, server_hostname="localhost"
            )
            writer.write(REQUEST)
            stream.put(b"data: 1\n\n")
            await reader.readuntil(b"data: 1\n\n")
            store["new"].install(place)
            await until_served(site, context, "new")
            stream.put(b"data: 2\n\n")
            await reader.readuntil(b"data: 2\n\n")
            stream.put(DONE)
            stream.end()
            assert (await reader.readuntil(b"0\r\n\r\n")).endswith(DONE + b"\r\n0\r\n\r\n")
            assert stream.causes == ["done"]
            writer.close()

    run(go())


@pytest.mark.parametrize("kind", KINDS)
def test_a_pair_that_cannot_be_served_leaves_the_old_one(
    make: Any, kind: str, store: dict[str, Pair], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place, context = placed(store, tmp_path), trusting(store["old"], store["new"])

    async def go() -> None:
        async with make.serve(kind, make_public_app(make.service()), tls=files(place), tls_poll_s=0.02) as site:
            for spoil in (lambda: place.certificate.write_text("junk"), place.key.unlink):
                num_before = len(caplog.records)
                spoil()
                await make.eventually(lambda before=num_before: len(caplog.records) > before)
                assert await served_as(site, context) == "old"
            store["new"].install(place)
            await until_served(site, context, "new")

    with caplog.at_level("ERROR", "tidegate.http.tls"):
        run(go())
    assert all("the old one stays" in record.message for record in caplog.records)


@pytest.mark.parametrize("kind", KINDS)
def test_tls_1_1_and_plain_http_are_refused(make: Any, kind: str, store: dict[str, Pair]) -> None:
    async def go() -> None:
        async with make.serve(kind, make_public_app(make.service()), tls=files(store["rsa"])) as site:
            assert not await asyncio.to_thread(offers, site.server.port, "tls1_1")
            assert await asyncio.to_thread(offers, site.server.port, "tls1_2")
            for highest in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                assert await served_as(site, trusting(store["rsa"], highest=highest)) == "rsa"
            assert b"200" not in await site.talk(HEALTH)

    run(go())


def test_granian_says_which_keys_it_takes_and_uvicorn_takes_others(make: Any, store: dict[str, Pair]) -> None:
    async def go() -> None:
        app = make_public_app(make.service())
        server = GranianServer(app, bind_tcp("127.0.0.1", 0), ServerSettings(tls=files(store["p521"])))
        with pytest.raises(TlsError, match="takes RSA, P-256"):
            await server.start()
        await server.stop()
        async with make.serve("uvicorn", app, tls=files(store["p521"])) as site:
            assert await served_as(site, trusting(store["p521"])) == "p521"

    run(go())


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_that_leaves_mid_stream_is_noticed_under_tls(make: Any, kind: str, store: dict[str, Pair]) -> None:
    async def go() -> None:
        service = make.service()
        stream = service.reply = make.stream(b"data: 1\n\n")
        async with make.serve(kind, make_public_app(service), tls=files(store["old"])) as site:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", site.server.port, ssl=trusting(store["old"]), server_hostname="localhost"
            )
            writer.write(REQUEST)
            await reader.readuntil(b"data: 1\n\n")
            writer.transport.abort()
            await make.eventually(lambda: stream.causes == ["client_gone"])

    run(go())
