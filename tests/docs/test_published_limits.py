"""The published limits in docs/limits.md, and the excerpts in docs/contract_document.md, are what a server tells."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from tidegate.cli.described_settings import server_facts
from tidegate.cli.model_loading import load_model
from tidegate.cli.open_ledger import ledger_facts, ledger_rules
from tidegate.cli.settings_sources import resolve
from tidegate.contract.self_description import DescribedLimit, SelfDescription
from tidegate.contract.unknown_fields import UnknownFieldPolicy
from tidegate.lifecycle.principal import ANONYMOUS
from tidegate.serving.describe import describe_contract

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "limits.md").read_text("utf-8")
NO_VALUE = {
    "context_length": "the model's",
    "input_tokens": "the model's",
    "max_output_tokens": "none",
    "media_bytes": "none",
}
"""What stands for null. Quotas are the key's."""


def description() -> SelfDescription:
    """The default settings; the scripted engine has all limits."""
    settings = resolve(None, {}, {"engine.kind": "scripted"}, is_file_required=False).settings
    served = load_model(settings).served
    return describe_contract(
        served, None, server_facts(settings, ledger_facts(ledger_rules(settings))), UnknownFieldPolicy.REPORT, ANONYMOUS
    )


def row(name: str, limit: DescribedLimit) -> str:
    value = str(limit.value) if limit.value is not None else NO_VALUE.get(name, "the key's")
    force = "yes" if limit.reason is UNSET else f"no: {limit.reason}"
    code = "" if limit.code is None else f"`{limit.code}`"
    return " | ".join([f"| `{name}`", value, limit.unit, limit.scope, code, force]) + " |"


def test_the_table_is_what_the_server_tells() -> None:
    rows = [row(name, limit) for name, limit in description().limits.items()]
    header = "| name | value | unit | scope | code of the error | in force |\n|---|---|---|---|---|---|\n"
    assert header + "\n".join(rows) + "\n" in PAGE, "\n".join(rows)


def excerpt_is_of(shown: Any, whole: Any) -> bool:
    """Whether everything shown is so in the whole; lists may be cut."""
    if isinstance(shown, dict):
        return all(name in whole and excerpt_is_of(value, whole[name]) for name, value in shown.items())
    if isinstance(shown, list):
        return all(any(excerpt_is_of(one, other) for other in whole) for one in shown)
    return bool(shown == whole)


def test_the_excerpt_on_the_page_is_of_a_true_answer() -> None:
    page = (ROOT / "docs" / "contract_document.md").read_text("utf-8")
    shown = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]
    assert shown
    whole = msgspec.to_builtins(description())
    for one in shown:
        assert excerpt_is_of(one, whole), one
