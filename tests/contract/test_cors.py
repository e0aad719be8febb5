"""What a browser is told."""

import httpx2
import pytest

from tests.kit.network.paths import docs
from tests.kit.network.responses import Json, refused
from tests.kit.people.api_user import ApiUser
from tests.kit.rows import each_row
from tests.kit.servers.process import Server

from .checks import UNKNOWN

ORIGIN = "https://somewhere.example"
EXPOSED = {"etag", "retry-after", "x-request-id"}
PREFLIGHTS = [
    ("POST", "/auth/email/register"),
    ("POST", "/auth/email/login"),
    ("POST", "/auth/refresh"),
    ("GET", "/auth/me"),
    ("DELETE", f"/auth/api-keys/{UNKNOWN}"),
    ("POST", "/vault"),
    ("PUT", f"/vault/{UNKNOWN}"),
    ("PUT", f"/vaults/{UNKNOWN}/documents/{UNKNOWN}"),
    ("DELETE", f"/vaults/{UNKNOWN}/documents/{UNKNOWN}"),
    ("GET", f"/vaults/{UNKNOWN}/documents/sync"),
]


def words(header: str) -> set[str]:
    """The words of a header that is a list, in small letters."""
    return {word.strip().lower() for word in header.split(",")}


def preflight(http: httpx2.Client, method: str, path: str, origin: str) -> httpx2.Response:
    """Ask as a browser asks before it sends something that is not simple."""
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "authorization,content-type,if-match",
    }
    return http.options(path, headers=headers)


@each_row(("method", "path"), PREFLIGHTS, ids=[f"{m} {p}" for m, p in PREFLIGHTS])
def test_preflight(stranger: httpx2.Client, method: str, path: str) -> None:
    """A browser at any origin may send each method with the headers it needs, and asks without a token."""
    answer = preflight(stranger, method, path, ORIGIN)
    assert answer.status_code in (200, 204), answer.text
    assert answer.headers["access-control-allow-origin"] in ("*", ORIGIN)
    assert method.lower() in words(answer.headers["access-control-allow-methods"])
    allowed = words(answer.headers["access-control-allow-headers"])
    assert {"authorization", "content-type", "if-match"} <= allowed
    assert answer.headers.get("access-control-allow-credentials") != "true"


@pytest.mark.parametrize("header", ["if-none-match", "x-request-id"])
def test_preflight_of_other_headers(stranger: httpx2.Client, header: str) -> None:
    """The other headers that the service reads may be sent as well."""
    headers = {
        "Origin": ORIGIN,
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": header,
    }
    answer = stranger.options("/vault", headers=headers)
    assert answer.status_code in (200, 204)
    assert header in words(answer.headers["access-control-allow-headers"])


def test_answers_are_readable(ann: ApiUser, vault: Json) -> None:
    """A script at any origin may read the answer, its ETag, its Retry-After and its id."""
    document = ann.document(vault)
    tag = ann.http.get(docs(vault, document)).headers["etag"]
    origin = {"Origin": ORIGIN}
    for answer in (
        ann.http.get("/health", headers=origin),
        ann.http.get(docs(vault, document), headers=origin),
        ann.http.get(docs(vault), headers=origin),
        ann.http.get(docs(vault, document), headers=origin | {"If-None-Match": tag}),
    ):
        assert answer.headers["access-control-allow-origin"] in ("*", ORIGIN)
        assert words(answer.headers["access-control-expose-headers"]) >= EXPOSED
        assert "access-control-allow-credentials" not in answer.headers


def test_refusals_are_readable(ann: ApiUser, stranger: httpx2.Client) -> None:
    """A script may read why it was refused, whoever refused it."""
    origin = {"Origin": ORIGIN}
    for status, answer in (
        (401, stranger.get("/vault", headers=origin)),
        (404, stranger.get("/nowhere", headers=origin)),
        (405, stranger.patch("/vault", headers=origin)),
        (404, ann.http.get(f"/vault/{UNKNOWN}", headers=origin)),
        (400, ann.http.post("/vault", json={}, headers=origin)),
        (415, ann.http.post("/vault", content=b"x", headers=origin | {"Content-Type": "text/plain"})),
    ):
        refused(answer, status)
        assert answer.headers["access-control-allow-origin"] in ("*", ORIGIN)
        assert words(answer.headers["access-control-expose-headers"]) >= EXPOSED


def test_narrowed_origin_is_answered(tight: Server) -> None:
    """A server narrowed to one origin lets that one in."""
    http, origin = tight.connect(), "https://app.example"
    answer = preflight(http, "POST", "/vault", origin)
    assert answer.status_code in (200, 204)
    assert answer.headers["access-control-allow-origin"] == origin
    answer = http.get("/health", headers={"Origin": origin})
    assert answer.headers["access-control-allow-origin"] == origin
    assert words(answer.headers["access-control-expose-headers"]) >= EXPOSED


@pytest.mark.parametrize("origin", [ORIGIN, "null", "https://app.example.evil.example", "http://app.example"])
def test_narrowed_origin_excludes_others(tight: Server, origin: str) -> None:
    """A server narrowed to one origin lets no other in, however alike."""
    http = tight.connect()
    for answer in (
        preflight(http, "POST", "/vault", origin),
        http.get("/health", headers={"Origin": origin}),
    ):
        assert answer.headers.get("access-control-allow-origin") in (None, "https://app.example")


def test_narrowed_answers_vary_by_origin(tight: Server) -> None:
    """A cache may not give one origin what was answered to another, nor to nobody's origin."""
    http = tight.connect()
    for origin in ("https://app.example", ORIGIN, None):
        headers = {} if origin is None else {"Origin": origin}
        answers = [
            http.get("/health", headers=headers),
            http.get("/vault", headers=headers),
            http.get("/nowhere", headers=headers),
            http.post("/auth/email/login", content=b"x", headers=headers),
        ]
        if origin is not None:
            answers.append(preflight(http, "POST", "/vault", origin))
        for answer in answers:
            assert "origin" in words(answer.headers.get("vary", "")), (origin, answer.request.url.path)
