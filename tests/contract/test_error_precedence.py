"""Where several errors apply, which one is returned: one row for each pair of neighbours."""

from dataclasses import dataclass, field

import httpx2
import pytest

from tests.kit.network.paths import docs
from tests.kit.network.responses import Json, refused
from tests.kit.people.api_user import PASSWORD, ApiUser
from tests.kit.rows import each_row
from tests.kit.servers.process import Server, fresh_address

from .checks import UNKNOWN

JSON, TEXT = "application/json", "text/plain"
HUGE, BROKEN = b'{"x": "' + b"x" * 20_001, b"{"
DOCUMENT = b'{"collection": "closed", "data": "QUJD"}'
NOT_SEALED = b'{"collection": "closed", "data": "not sealed!"}'
NOWHERE = f"/vaults/{UNKNOWN}/documents"


@dataclass
class Case:
    """One request with two faults, and the one that is spoken of."""

    who: str
    request: str
    status: int
    code: str | None
    body: bytes = b""
    kind: str = JSON
    headers: dict[str, str] = field(default_factory=dict)


CASES = {
    "404 route, 401": Case("nobody", "GET /nowhere", 404, None),
    "404 route, 413": Case("owner", "POST /nowhere", 404, None, HUGE),
    "405 route, 401": Case("nobody", "PATCH /vault", 405, None),
    "405 route, 415": Case("owner", "PATCH /vault", 405, None, BROKEN, TEXT),
    "401, 413": Case("nobody", "POST /vault", 401, "unauthorized", HUGE),
    "401, 415": Case("nobody", "POST /vault", 401, "unauthorized", b"{}", TEXT),
    "401, 400": Case("nobody", "POST /vault", 401, "unauthorized", BROKEN),
    "401, 404": Case("nobody", f"GET /vault/{UNKNOWN}", 401, "unauthorized"),
    "401 bad token, 400": Case("junk", "POST /vault", 401, "unauthorized", BROKEN),
    "401 logout, 400": Case("nobody", "POST /auth/logout", 401, "unauthorized", BROKEN),
    "401 list, 400": Case("nobody", f"GET {NOWHERE}?limit=0", 401, "unauthorized"),
    "403, 413": Case("reader", "POST /vault", 403, "insufficient_scope", HUGE),
    "403, 415": Case("reader", "POST /vault", 403, "insufficient_scope", b"{}", TEXT),
    "403, 400": Case("reader", "POST /vault", 403, "insufficient_scope", BROKEN),
    "403, 404": Case("reader", f"DELETE /vault/{UNKNOWN}", 403, "insufficient_scope"),
    "403 document, 404": Case("reader", f"POST {NOWHERE}", 403, "insufficient_scope", DOCUMENT),
    "403 document, 400": Case("reader", f"POST {NOWHERE}", 403, "insufficient_scope", NOT_SEALED),
    "403 document, 412": Case(
        "reader", "DELETE {document}", 403, "insufficient_scope", headers={"If-Match": '"stale"'}
    ),
    "403 users only, 413": Case("full", "POST /auth/api-keys", 403, "insufficient_scope", HUGE),
    "403 users only, 415": Case("full", "POST /auth/api-keys", 403, "insufficient_scope", b"{}", TEXT),
    "403 users only, 400": Case("full", "POST /auth/api-keys", 403, "insufficient_scope", BROKEN),
    "403 users only, 404": Case("full", f"DELETE /auth/api-keys/{UNKNOWN}", 403, "insufficient_scope"),
    "403 scoped, 400": Case("clerk", "POST /vault", 403, "insufficient_scope", BROKEN),
    "403 scoped, 404": Case("clerk", f"DELETE /vault/{UNKNOWN}", 403, "insufficient_scope"),
    "413, 415": Case("owner", "POST /vault", 413, "payload_too_large", HUGE, TEXT),
    "413, 400": Case("owner", "POST /vault", 413, "payload_too_large", HUGE),
    "413, 404": Case("owner", f"POST {NOWHERE}", 413, "payload_too_large", HUGE),
    "413 open road, 400": Case("nobody", "POST /auth/email/register", 413, "payload_too_large", HUGE),
    "415, 400": Case("owner", "POST /vault", 415, "unsupported_media_type", BROKEN, TEXT),
    "415, 404": Case("owner", f"POST {NOWHERE}", 415, "unsupported_media_type", DOCUMENT, TEXT),
    "415 open road, 400": Case("nobody", "POST /auth/email/login", 415, "unsupported_media_type", BROKEN, TEXT),
    "400, 403 collection": Case("clerk", "POST {documents}", 400, "validation_error", NOT_SEALED),
    "400 list, 403 collection": Case("clerk", "GET {documents}?collection=closed&limit=0", 400, "validation_error"),
    "400, 404": Case("owner", f"POST {NOWHERE}", 400, "validation_error", NOT_SEALED),
    "400 list, 404": Case("owner", f"GET {NOWHERE}?since=x", 400, "validation_error"),
    "400 sync, 404": Case("owner", f"GET {NOWHERE}/sync?since=x", 400, "validation_error"),
    "400 update, 404": Case("owner", f"PUT {NOWHERE}/{UNKNOWN}", 400, "validation_error", b'{"data": "QQ"}'),
    "400 vault, 404": Case("owner", f"PUT /vault/{UNKNOWN}", 400, "validation_error", BROKEN),
    "400 contradiction, 404": Case(
        "owner",
        f"PUT {NOWHERE}/{UNKNOWN}",
        400,
        "validation_error",
        b'{"data": "QQ", "version": 7}',
        headers={"If-Match": '"1"'},
    ),
    "403 collection, 404": Case("clerk", f"POST {NOWHERE}", 403, "insufficient_scope", DOCUMENT),
    "403 list collection, 404": Case("clerk", f"GET {NOWHERE}?collection=closed", 403, "insufficient_scope"),
    "404, 412": Case("owner", f"DELETE {NOWHERE}/{UNKNOWN}", 404, "vault_not_found", headers={"If-Match": '"stale"'}),
    "404 scope, 409": Case("clerk", "PUT {document}", 404, "document_not_found", b'{"data": "QQ", "version": 7}'),
}


@pytest.fixture(scope="module")
def callers(tight: Server, tess: ApiUser) -> dict[str, httpx2.Client]:
    """Everybody who asks, from nobody to the owner."""
    return {
        "nobody": tight.connect(address=fresh_address()),
        "junk": tight.connect("junk", address=fresh_address()),
        "owner": tess.http,
        "full": tess.with_key(),
        "reader": tess.with_key(permissions=["read"]),
        "clerk": tess.with_key(collections=["open"]),
    }


@pytest.fixture(scope="module")
def places(tess: ApiUser) -> dict[str, str]:
    """A vault, and a document in a collection that is closed to the clerk."""
    vault: Json = tess.vault()
    return {"documents": docs(vault), "document": docs(vault, tess.document(vault, collection="closed"))}


@each_row("case", CASES.values(), ids=CASES.keys())
def test_order(callers: dict[str, httpx2.Client], places: dict[str, str], case: Case) -> None:
    """Of two refusals that apply, the first in the contract's order is given."""
    method, path = case.request.format(**places).split(" ")
    headers = {"Content-Type": case.kind} if case.body else {}
    answer = callers[case.who].request(method, path, content=case.body, headers=headers | case.headers)
    refused(answer, case.status, case.code)


def test_bad_field_before_taken_email(tight: Server, tess: ApiUser) -> None:
    """A registration with a bad password does not learn whether the email is taken."""
    answer = tight.connect().post("/auth/email/register", json={"email": tess.email, "password": "short"})
    refused(answer, 400, "validation_error")


def test_bad_field_before_taken_name(tess: ApiUser) -> None:
    """Half a blob under a taken name is a bad request first."""
    answer = tess.http.post("/vault", json={"name": tess.vault()["name"], "data": PASSWORD})
    refused(answer, 400, "validation_error")
