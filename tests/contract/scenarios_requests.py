"""Scenarios of requests whatever they ask for: routes, ids, sizes and kinds of bodies."""

from .scenarios import Scenario

TIGHT = 20_000  # bytes, the limit of the server that is narrowed in every way
CALLER = {"X-Request-Id": "caller-7f3a"}
DOCUMENT = b'{"collection":"a","data":"' + b"A" * 72 + b'"}'
SOME_BODY = b'{"name": "x", "email": "a@b", "password": "x", "refreshToken": "x"}'

ROUTES = [
    Scenario("no route GET /nowhere", "GET", "/nowhere", 404, sent_by="stranger"),
    Scenario("no route POST /nowhere", "POST", "/nowhere", 404, sent_by="stranger", json={}),
    Scenario("no route GET /auth", "GET", "/auth", 404, sent_by="stranger"),
    Scenario("no route POST /auth", "POST", "/auth", 404, sent_by="stranger", json={}),
    Scenario("no route GET /auth/email", "GET", "/auth/email", 404, sent_by="stranger"),
    Scenario("no route POST /auth/email", "POST", "/auth/email", 404, sent_by="stranger", json={}),
    Scenario("no route GET /health/more", "GET", "/health/more", 404, sent_by="stranger"),
    Scenario("no route POST /health/more", "POST", "/health/more", 404, sent_by="stranger", json={}),
    Scenario("no route GET /vault/a/b/c", "GET", "/vault/a/b/c", 404, sent_by="stranger"),
    Scenario("no route POST /vault/a/b/c", "POST", "/vault/a/b/c", 404, sent_by="stranger", json={}),
    Scenario("HEAD of the health", "HEAD", "/health", 200),
    Scenario("HEAD of the vaults", "HEAD", "/vault", 200),
    Scenario("HEAD of an account", "HEAD", "/auth/me", 200),
    Scenario("no Origin", "GET", "/health", 200, sent_by="stranger"),
]

REQUEST_IDS = [
    Scenario("the id of a good request", "GET", "/health", 200, headers=CALLER, response_headers=CALLER),
    Scenario("the id of a request for no route", "GET", "/nowhere", 404, headers=CALLER, response_headers=CALLER),
    Scenario("the id of a refused request", "GET", "/vault/{unknown}", 404, headers=CALLER, response_headers=CALLER),
    Scenario("a long request id", "GET", "/vault/{unknown}", 404, "vault_not_found",
             headers={"X-Request-Id": b"x" * 4000}),
    Scenario("a request id with spaces", "GET", "/vault/{unknown}", 404, "vault_not_found",
             headers={"X-Request-Id": b"a b\tc"}),
    Scenario("a request id that is not ASCII", "GET", "/vault/{unknown}", 404, "vault_not_found",
             headers={"X-Request-Id": "é"}),
    Scenario("a request id in quotes", "GET", "/vault/{unknown}", 404, "vault_not_found",
             headers={"X-Request-Id": b'"quoted"'}),
    Scenario("a request id that is markup", "GET", "/vault/{unknown}", 404, "vault_not_found",
             headers={"X-Request-Id": b"<script>"}),
    Scenario("an empty request id", "GET", "/vault/{unknown}", 404, "vault_not_found", headers={"X-Request-Id": b""}),
]  # fmt: skip

BODIES = [
    *(
        Scenario(f"too large: {method} {path}", method, path, 413, "payload_too_large",
                 sent_by="tess_elsewhere", json={"x": "x" * TIGHT})
        for method, path in [
            ("POST", "/auth/email/register"),
            ("POST", "/auth/email/login"),
            ("POST", "/auth/refresh"),
            ("POST", "/auth/api-keys"),
            ("POST", "/vault"),
            ("PUT", "/vault/{unknown}"),
            ("PUT", "/vaults/{unknown}/documents/{unknown}"),
        ]
    ),
    *(
        Scenario(f"JSON as {kind}", "POST", "/vaults/{my.vault}/documents", 201,
                 sent_by="tess", content=DOCUMENT, headers={"Content-Type": kind})
        for kind in [
            "application/json",
            "application/json; charset=utf-8",
            "application/json;charset=UTF-8",
            "APPLICATION/JSON",
        ]
    ),
    *(
        Scenario(f"not JSON but {kind}: POST {path}", "POST", path, 415, "unsupported_media_type",
                 sent_by="tess_elsewhere", content=SOME_BODY, headers={"Content-Type": kind})
        for path in ["/vault", "/auth/email/login", "/auth/refresh"]
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/jsonp",
            "application/octet-stream",
            "text/html; application/json",
            "nonsense",
        ]
    ),
    Scenario("bytes that are no UTF-8 in an unknown field", "POST", "/vault", 400, "validation_error",
             content=b'{"name": "with other bytes", "extra": "\xff"}', headers={"Content-Type": "application/json"}),
]  # fmt: skip
