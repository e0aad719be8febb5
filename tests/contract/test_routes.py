"""Which roads exist, what they say when taken the wrong way, and how a request is named."""

import httpx2
import pytest

from tests.kit.network.responses import good, refused
from tests.kit.people.api_user import PASSWORD, ApiUser, unique_email
from tests.kit.rows import each_row

from .checks import BLOB, UNKNOWN, clean, now

ALLOWED = {
    "/health": {"GET"},
    "/auth/email/register": {"POST"},
    "/auth/email/login": {"POST"},
    "/auth/me": {"GET"},
    "/auth/refresh": {"POST"},
    "/auth/logout": {"POST"},
    "/auth/api-keys": {"GET", "POST"},
    f"/auth/api-keys/{UNKNOWN}": {"DELETE"},
    "/vault": {"GET", "POST"},
    f"/vault/{UNKNOWN}": {"GET", "PUT", "DELETE"},
    "/vault/by-name/work": {"GET"},
    f"/vaults/{UNKNOWN}/documents": {"GET", "POST"},
    f"/vault/{UNKNOWN}/documents": {"GET", "POST"},
    f"/vaults/{UNKNOWN}/documents/{UNKNOWN}": {"GET", "PUT", "DELETE"},
    f"/vault/{UNKNOWN}/documents/{UNKNOWN}": {"GET", "PUT", "DELETE"},
}


def test_health_tells_the_time(stranger: httpx2.Client) -> None:
    """Anybody may ask for the health, and learns the server's time in milliseconds."""
    before = now()
    body = good(stranger.get("/health"))
    assert body["status"] == "ok"
    assert type(body["timestamp"]) is int
    assert before - 1000 <= body["timestamp"] <= now() + 1000


@each_row("path", ALLOWED)
def test_wrong_method(stranger: httpx2.Client, path: str) -> None:
    """A method that a road does not know is a JSON 405, and Allow names those it knows."""
    answer = stranger.patch(path, json={})
    refused(answer, 405)
    assert ALLOWED[path] <= {method.strip() for method in answer.headers["allow"].split(",")}


@each_row("path", ALLOWED)
def test_every_road_exists(ann: ApiUser, path: str) -> None:
    """Each road of the contract leads somewhere: its 404 is about an object, never about the route."""
    for method in ALLOWED[path] - {"POST"}:
        answer = ann.http.request(method, path, json={})
        clean(answer)
        if answer.status_code == 404:
            assert answer.json()["error"]["code"].endswith("_not_found")


@pytest.mark.parametrize("path", ["/health", "/vault", "/auth/me", "/auth/api-keys"])
def test_trailing_slash(ann: ApiUser, path: str) -> None:
    """A trailing slash changes nothing: the same answer, and no redirect."""
    plain, slashed = good(ann.http.get(path)), good(ann.http.get(f"{path}/"))
    assert set(plain) == set(slashed)


def test_trailing_slash_on_writes(ann: ApiUser) -> None:
    """A trailing slash changes nothing where something is written either."""
    email = unique_email()
    body = {"email": email, "password": PASSWORD}
    assert ann.http.post("/auth/email/register/", json=body).status_code == 201
    assert ann.http.post("/auth/email/login/", json=body).status_code == 200
    vault = ann.http.post("/vault/", json={"name": email}).json()
    path = f"/vaults/{vault['uid']}/documents/"
    document = ann.http.post(path, json={"collection": "a", "data": "QQ"}).json()
    assert good(ann.http.get(path))["documents"] == [document]
    assert good(ann.http.get(f"{path}{document['uid']}/")) == document
    assert good(ann.http.get(f"/vault/by-name/{email}/"))["uid"] == vault["uid"]
    assert ann.http.delete(f"/vault/{vault['uid']}/").status_code == 200


def test_every_answer_has_an_id(ann: ApiUser) -> None:
    """Every answer carries a request id, and no two answers carry the same."""
    answers = [ann.http.get(path) for path in ("/health", "/health", "/vault", f"/vault/{UNKNOWN}", "/nowhere")]
    assert len({answer.headers["x-request-id"] for answer in answers}) == len(answers)


@each_row(
    "uid",
    ["not-a-uuid", "%00", "%F0%9F%92%A5", "x" * 3000, "%FF", "0", "null", "%20", "..%2F..%2Fetc"],
    ids=["word", "nul", "emoji", "long", "no utf-8", "zero", "null", "space", "dots"],
)
def test_malformed_uid(ann: ApiUser, uid: str) -> None:
    """A uid that cannot be one is simply not found, on every road that takes one."""
    vault = ann.vault(**BLOB)
    for path in (f"/vault/{uid}", f"/vaults/{uid}/documents", f"/vaults/{vault['uid']}/documents/{uid}"):
        refused(ann.http.get(path), 404)
    for path in (f"/vault/{uid}", f"/vaults/{vault['uid']}/documents/{uid}", f"/auth/api-keys/{uid}"):
        refused(ann.http.delete(path), 404)
