"""Recordings: a run as JSON, byte for byte, to be judged again without the server. Pure: values in, values out.

A folder holds `manifest.json` and one file a case. Credentials were taken out before (`redaction.py`). Bytes are text
where they are UTF-8, else base64; long ones are compressed. A request's JSON is read again from its bytes.
"""

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.conformance.judge import CaseRun
from tidegate.conformance.probing.capability import Capability
from tidegate.conformance.probing.probed import Probed
from tidegate.conformance.wire.exchange import Ending, Exchange, Piece

FORMAT = "tidegate-conformance-recording"
VERSION = 1
MAX_PLAIN_BYTES = 64 * 1024
MAX_BYTES = 256 * 1024 * 1024
"""Of one stretch of bytes, unpacked: what a recording from elsewhere may make us hold."""


class RecordingError(Exception):
    """It is no recording that this version reads; the message says what is wrong where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What is known of the run as a whole. `suite`: version of the suite. `started_at`: UTC. `cases`: ids, in order.
    `stopped`: why the run ended before its end; empty: it did not.
    """

    suite: str
    started_at: str
    duration_s: float
    base_url: str
    admin_url: str | None
    seed: int
    profile: str
    probed: Probed
    cases: tuple[str, ...]
    stopped: str = ""


@dataclass(frozen=True, slots=True)
class Recording:
    """`runs` and `durations_s`: by id of the case. A case that needs what the server lacks has no runs."""

    manifest: Manifest
    runs: Mapping[str, tuple[CaseRun, ...]] = field(default_factory=dict)
    durations_s: Mapping[str, float] = field(default_factory=dict)


def encode_manifest(manifest: Manifest) -> dict[str, Any]:
    """Returns the manifest as JSON."""
    probed = manifest.probed
    return {
        "format": FORMAT,
        "version": VERSION,
        "suite": manifest.suite,
        "started_at": manifest.started_at,
        "duration_s": manifest.duration_s,
        "target": {"base_url": manifest.base_url, "admin_url": manifest.admin_url, "model": probed.model},
        "identity": dict(probed.identity),
        "seed": manifest.seed,
        "profile": manifest.profile,
        "has_contract": probed.has_contract,
        "is_scripted": probed.is_scripted,
        "capabilities": sorted(capability.name for capability in probed.capabilities),
        "absent": {capability.name: reason for capability, reason in probed.absent.items()},
        "found_by": {capability.name: how for capability, how in probed.found_by.items()},
        "cases": list(manifest.cases),
        "stopped": manifest.stopped,
    }


def decode_manifest(value: Any) -> Manifest:
    """Returns the manifest. Capabilities that this version does not know are passed over. Raises RecordingError."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise RecordingError("manifest.json is not of a recording")
    if value.get("version") != VERSION:
        raise RecordingError(f"the recording has format version {value.get('version')!r}; this suite reads {VERSION}")
    try:
        probed = Probed(
            model=value["target"]["model"],
            capabilities=frozenset(_capabilities(dict.fromkeys(value["capabilities"], ""))),
            absent=_capabilities(value["absent"]),
            is_scripted=value["is_scripted"],
            has_contract=value["has_contract"],
            found_by=_capabilities(value["found_by"]),
            identity=dict(value["identity"]),
        )
        return Manifest(
            suite=value["suite"],
            started_at=value["started_at"],
            duration_s=float(value["duration_s"]),
            base_url=value["target"]["base_url"],
            admin_url=value["target"]["admin_url"],
            seed=value["seed"],
            profile=value["profile"],
            probed=probed,
            cases=tuple(value["cases"]),
            stopped=value["stopped"],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordingError(f"manifest.json is incomplete: {error!r}") from error


def _capabilities(named: Mapping[str, str]) -> dict[Capability, str]:
    known = Capability.__members__
    return {known[name]: text for name, text in named.items() if name in known}


def encode_case(case_id: str, runs: tuple[CaseRun, ...], duration_s: float) -> dict[str, Any]:
    """Returns what came of a case as JSON."""
    return {
        "case": case_id,
        "duration_s": duration_s,
        "runs": [
            {
                "stopped": run.stopped,
                "is_suite_fault": run.is_suite_fault,
                "asks": {
                    name: [_encode_exchange(exchange) for exchange in exchanges]
                    for name, exchanges in run.evidence.items()
                },
            }
            for run in runs
        ],
    }


def decode_case(value: Any) -> tuple[str, tuple[CaseRun, ...], float]:
    """Returns id, runs and duration. Raises RecordingError."""
    try:
        runs = tuple(
            CaseRun(
                {
                    name: tuple(_decode_exchange(name, one) for one in exchanges)
                    for name, exchanges in run["asks"].items()
                },
                run["stopped"],
                run["is_suite_fault"],
            )
            for run in value["runs"]
        )
        return value["case"], runs, float(value["duration_s"])
    except (KeyError, TypeError, ValueError, AttributeError, zlib.error) as error:
        raise RecordingError(f"the recording of a case is damaged: {error!r}") from error


def _encode_exchange(exchange: Exchange) -> dict[str, Any]:
    return {
        "copy": exchange.copy,
        "method": exchange.method,
        "url": exchange.url,
        "marker": exchange.marker,
        "sent_at_s": exchange.sent_at_s,
        "duration_s": exchange.duration_s,
        "ending": exchange.ending.name,
        "detail": exchange.detail,
        "request": encode_bytes(exchange.request),
        "sends_json": exchange.request_json is not None,
        "pieces": [{"at_s": piece.at_s, **encode_bytes(piece.data)} for piece in exchange.pieces],
    }


def _decode_exchange(ask: str, value: Mapping[str, Any]) -> Exchange:
    request = decode_bytes(value["request"])
    body = request.partition(b"\r\n\r\n")[2]
    return Exchange(
        ask=ask,
        copy=value["copy"],
        method=value["method"],
        url=value["url"],
        request=request,
        marker=value["marker"],
        pieces=tuple(Piece(piece["at_s"], decode_bytes(piece)) for piece in value["pieces"]),
        ending=Ending[value["ending"]],
        detail=value["detail"],
        duration_s=value["duration_s"],
        sent_at_s=value["sent_at_s"],
        request_json=json.loads(body.decode("utf-8", "surrogatepass")) if value["sends_json"] and body else None,
    )


def encode_bytes(data: bytes) -> dict[str, str]:
    """Returns the bytes as JSON: text, base64, or base64 of what zlib made of them."""
    if len(data) > MAX_PLAIN_BYTES:
        return {"zlib": base64.b64encode(zlib.compress(data)).decode()}
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def decode_bytes(value: Mapping[str, Any]) -> bytes:
    """Returns the bytes. Raises ValueError, KeyError and zlib.error."""
    if "text" in value:
        return str(value["text"]).encode("utf-8")
    if "base64" in value:
        return base64.b64decode(value["base64"], validate=True)
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(base64.b64decode(value["zlib"], validate=True), MAX_BYTES)
    if unpacker.unconsumed_tail:
        raise ValueError(f"more than {MAX_BYTES} bytes")
    return data
