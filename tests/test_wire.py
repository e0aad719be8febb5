"""Reading bodies: every bad field is named at once, and nothing breaks the reader."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom import wire
from strongroom.errors import Invalid

BODIES = [
    kind
    for kind in (*vars(wire.requests).values(), wire.export_lines.Header, wire.export_lines.Trailer)
    if isinstance(kind, type) and issubclass(kind, wire.requests.Body) and kind is not wire.requests.Body
]


def fields_of(kind: type[wire.requests.Body], body: bytes) -> dict[str, str]:
    with pytest.raises(Invalid) as refused:
        wire.decode(kind, body)
    assert refused.value.details is not None
    fields: dict[str, str] = refused.value.details["fields"]
    return fields


def test_all_bad_fields_at_once() -> None:
    """A person mends a form once, not field by field."""
    fields = fields_of(wire.requests.Register, b'{"email": "nobody", "password": 5}')
    assert set(fields) == {"email", "password"}
    assert set(fields_of(wire.requests.CreateDocument, b'{"data": "{}", "uid": "x"}')) == {"collection", "data", "uid"}


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"nul",
        b'{"name": NaN}',
        b'{"name": "\\ud800"}',
        b'{"ignored": "\xff", "name": "x"}',
        b"\xef\xbb\xbf{}",
        '{"name": "x"}'.encode("utf-16"),
        b"[" * 100_000 + b"]" * 100_000,
        b'{"name": "x", "deep": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"name": ' + b"9" * 10_000 + b"}",
        b"[]",
        b'"text"',
        b"5",
        b"null",
    ],
    ids=range(14),
)
def test_what_breaks_parsers_is_refused(body: bytes) -> None:
    """Whatever comes, it is a refusal and not a fault."""
    assert fields_of(wire.requests.CreateVault, body)


def test_the_last_of_two_equal_keys_counts() -> None:
    """As decided, and as most parsers have it."""
    assert wire.decode(wire.requests.CreateVault, b'{"name": "a", "name": "b"}').name == "b"


def test_unknown_fields_are_ignored_and_null_is_absent() -> None:
    """A newer client may say more than we know."""
    vault = wire.decode(wire.requests.CreateVault, b'{"name": "a", "colour": {"deep": [1]}, "uid": null, "data": null}')
    assert (vault.name, vault.uid, vault.data) == ("a", None, None)


@pytest.mark.parametrize(
    ("body", "field"), [(b'{"name": "a", "data": "x"}', "salt"), (b'{"name": "a", "salt": ""}', "data")]
)
def test_a_blob_is_whole(body: bytes, field: str) -> None:
    """Data and salt come together or not at all."""
    assert set(fields_of(wire.requests.CreateVault, body)) == {field}


@pytest.mark.parametrize(("number", "good"), [(2**63 - 1, True), (-(2**63), True), (2**63, False), (10**40, False)])
def test_integers_fit_the_store(number: int, *, good: bool) -> None:
    """What no engine can store is refused at the door."""
    body = msgspec.json.encode({"data": "AA", "version": number})
    if good:
        assert wire.decode(wire.requests.PutDocument, body).version == number
    else:
        assert set(fields_of(wire.requests.PutDocument, body)) == {"version"}


@pytest.mark.parametrize("kind", BODIES)
def test_no_body_shows_what_it_holds(kind: type[wire.requests.Body]) -> None:
    """Bodies hold passwords, tokens and ciphertext: a repr in a log must show none of it."""
    values = {field.name: "canary" for field in msgspec.structs.fields(kind)}
    assert "canary" not in repr(kind(**values))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
NAMES = sorted({field.encode_name for kind in BODIES for field in msgspec.structs.fields(kind)})


@given(st.sampled_from(BODIES), st.dictionaries(st.sampled_from(NAMES) | st.text(), JSON, max_size=6))
def test_any_object_is_read_or_refused(kind: type[wire.requests.Body], value: dict[str, Any]) -> None:
    """There is no third way."""
    try:
        body = msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError):
        return
    try:
        assert isinstance(wire.decode(kind, body), kind)
    except Invalid as refused:
        assert refused.details is not None
        assert refused.details["fields"]


@given(st.sampled_from(BODIES), st.binary())
def test_any_bytes_are_read_or_refused(kind: type[wire.requests.Body], body: bytes) -> None:
    """Nor for bytes that are not JSON at all."""
    try:
        assert isinstance(wire.decode(kind, body), kind)
    except Invalid as refused:
        assert refused.details


def test_a_descriptor_with_a_key_given_twice() -> None:
    """The last counts there too, whatever the first was."""
    body = b'{"email": "a@example.com", "password": "12345678", "kdf": {"salt": [], "salt": "AAAA"}}'
    assert wire.decode(wire.requests.Register, body).kdf == {"salt": "AAAA"}


def test_a_body_is_read_in_steps_as_it_is_at_once() -> None:
    """What the steps come to is what `decode` gives, for good and for bad."""
    operations = b",".join([b'{"op":"create","collection":"c","data":"AAAA","data":%s}'] * 1_000)
    good, bad = operations.replace(b"%s", b'"BBBB"'), operations.replace(b"%s", b'"{"')
    steps, number = (
        wire.decode_in_steps(wire.requests.Batch, b'{"operations":[%s],"more":[%s0]}' % (good, b"0," * 9_000)),
        0,
    )
    while True:
        try:
            next(steps)
            number += 1
        except StopIteration as done:
            assert done.value == wire.decode(wire.requests.Batch, b'{"operations":[%s]}' % good)
            break
    assert number > 10
    with pytest.raises(Invalid):
        list(wire.decode_in_steps(wire.requests.Batch, b'{"operations":[%s]}' % bad))
