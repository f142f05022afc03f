"""What a key is made of, which policies can be had, and whose key one is at an instant."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import InvalidApiKey
from tidegate.lifecycle.key_policy import (
    MAX_KEY_DAYS,
    NUMBER_RANGES,
    KeyPolicyError,
    KeyRecord,
    KeyState,
    check_policy,
)
from tidegate.lifecycle.key_ring import KeyRing
from tidegate.lifecycle.key_text import KEY_ENTROPY_BYTES, digest_of, make_key
from tidegate.lifecycle.principal import Principal, Quotas

WALL = 1_750_000_000.0
KEY = re.compile(r"tg_([0-9A-Za-z]{8})_([0-9A-Za-z]{43})")
ROUTES = frozenset({"/v1/models", "/v1/chat/completions"})
BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def person(**fields: object) -> Principal:
    return replace(Principal("key_1", "mobile-app"), **fields)  # type: ignore[arg-type]


@given(st.binary(min_size=KEY_ENTROPY_BYTES, max_size=KEY_ENTROPY_BYTES))
def test_a_key_holds_all_its_256_random_bits_and_shows_its_id(entropy: bytes) -> None:
    key_id, key = make_key(entropy)
    match = KEY.fullmatch(key)
    assert match is not None
    assert key_id == f"key_{match[1]}"
    number = sum(BASE62.index(character) * 62**place for place, character in enumerate(match[2]))
    assert number.to_bytes(32, "big") == entropy[8:]
    assert len(digest_of(key)) == 32


@pytest.mark.parametrize("size", [0, KEY_ENTROPY_BYTES - 1, KEY_ENTROPY_BYTES + 1])
def test_a_key_is_not_made_of_less_entropy_or_more(size: int) -> None:
    with pytest.raises(ValueError, match="bytes"):
        make_key(bytes(size))


def with_number(field: str, value: int) -> Principal:
    if field in Quotas.__dataclass_fields__:
        return person(quotas=replace(Quotas(), **{field: value}))
    return person(**{field: value})


@pytest.mark.parametrize("field", NUMBER_RANGES)
def test_numbers_at_both_ends_are_taken_and_beyond_them_refused_with_the_range(field: str) -> None:
    least, most = NUMBER_RANGES[field]
    for value in (least, most):
        check_policy(with_number(field, value), expires_at=None, wall=WALL)
    for value in (least - 1, most + 1):
        with pytest.raises(KeyPolicyError, match=f"{value} is not in the range {least} to {most}") as caught:
            check_policy(with_number(field, value), expires_at=None, wall=WALL)
        assert caught.value.field == field


POLICIES: list[tuple[Principal, float | None, str | None]] = [
    (person(), None, None),
    (person(name="a"), None, None),
    (person(name="A.b_c@d-" + "e" * 56), None, None),
    (person(name="e" * 65), None, "name"),
    (person(name=""), None, "name"),
    (person(name="-rf"), None, "name"),
    (person(name="two words"), None, "name"),
    (person(name="line\nbreak"), None, "name"),
    (person(name="Zoë"), None, "name"),
    (person(name="key_AbCd1234"), None, "name"),
    (person(name="anonymous"), None, "name"),
    (person(models=frozenset({"org/name:q8"})), None, None),
    (person(models=frozenset()), None, "models"),
    (person(models=frozenset({""})), None, "models"),
    (person(models=frozenset({"a\n"})), None, "models"),
    (person(models=frozenset({"m" * 257})), None, "models"),
    (person(models=frozenset(map(str, range(65)))), None, "models"),
    (person(routes=ROUTES), None, None),
    (person(routes=frozenset()), None, "routes"),
    (person(routes=frozenset({"/v1/models", "/v1/models/"})), None, "routes"),
    (person(priority_min=5, priority_max=5), None, None),
    (person(priority_min=6, priority_max=5), None, "priority_max"),
    (person(), WALL + 1, None),
    (person(), WALL + MAX_KEY_DAYS * 86400, None),
    (person(), WALL, "expires_at"),
    (person(), WALL + MAX_KEY_DAYS * 86400 + 1, "expires_at"),
]


@pytest.mark.parametrize(("principal", "expires_at", "field"), POLICIES)
def test_a_policy_is_taken_or_refused_by_field(
    principal: Principal, expires_at: float | None, field: str | None
) -> None:
    if field is None:
        check_policy(principal, expires_at=expires_at, wall=WALL, known_routes=ROUTES)
        return
    with pytest.raises(KeyPolicyError) as caught:
        check_policy(principal, expires_at=expires_at, wall=WALL, known_routes=ROUTES)
    assert caught.value.field == field


def test_a_key_is_active_up_to_the_instant_of_its_expiry_and_never_after_its_revocation() -> None:
    record = KeyRecord(person(), digest_of("k"), WALL, expires_at=WALL + 10)
    states = [record.state(WALL + after) for after in (0, 9.999, 10, 11)]
    assert states == [KeyState.ACTIVE, KeyState.ACTIVE, KeyState.EXPIRED, KeyState.EXPIRED]
    assert replace(record, revoked_at=WALL).state(WALL) is KeyState.REVOKED
    assert replace(record, expires_at=None).state(WALL * 2) is KeyState.ACTIVE


def test_a_ring_knows_its_active_keys_and_nobody_else() -> None:  # ERR-2
    keys = {name: KeyRecord(person(name=name), digest_of(name), WALL) for name in ("a", "b")}
    keys["old"] = replace(keys["a"], digest=digest_of("old"), expires_at=WALL + 10)
    ring = KeyRing({record.digest: record for record in keys.values()}, is_closed=True)
    assert ring.identify("a", WALL) is keys["a"]
    assert ring.identify("old", WALL + 9) is keys["old"]
    for key, wall in (("old", WALL + 10), ("c", WALL), ("", WALL), ("A", WALL), ("a ", WALL), ("\udce9", WALL)):
        with pytest.raises(InvalidApiKey):
            ring.identify(key, wall)
