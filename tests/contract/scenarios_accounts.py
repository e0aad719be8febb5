"""Scenarios of accounts and sessions: registering, logging in and out, tokens and where they count."""

from .scenarios import Scenario

REGISTER, LOGIN, REFRESH = "/auth/email/register", "/auth/email/login", "/auth/refresh"
UNUSED = "{new}"  # an email without an account

ACCOUNTS = [
    Scenario("a short password at login", "POST", LOGIN, 401, "invalid_credentials",
             sent_by="stranger", json={"email": UNUSED, "password": "short"}),
    Scenario("a long password at login", "POST", LOGIN, 401, "invalid_credentials",
             sent_by="stranger", json={"email": UNUSED, "password": "x" * 1025}),
    Scenario("a space for a password at login", "POST", LOGIN, 401, "invalid_credentials",
             sent_by="stranger", json={"email": UNUSED, "password": " "}),
    Scenario("a password in Cyrillic at login", "POST", LOGIN, 401, "invalid_credentials",
             sent_by="stranger", json={"email": UNUSED, "password": "ключ"}),
    Scenario("a registration without fields", "POST", REGISTER, 400, "validation_error",
             sent_by="stranger", json={}, bad_fields=("email", "password")),
    Scenario("a registration with fields of wrong types", "POST", REGISTER, 400, "validation_error",
             sent_by="stranger", json={"email": 1, "password": None}, bad_fields=("email", "password")),
    Scenario("a login without fields", "POST", LOGIN, 400, "validation_error",
             sent_by="stranger", json={}, bad_fields=("email", "password")),
    Scenario("a login with fields of wrong types", "POST", LOGIN, 400, "validation_error",
             sent_by="stranger", json={"email": 1, "password": None}, bad_fields=("email", "password")),
]  # fmt: skip

SESSIONS = [
    Scenario("a logout without a body", "POST", "/auth/logout", 200,
             sent_by="anns_second_session", body={"success": True}),
    Scenario("a logout with an empty body", "POST", "/auth/logout", 200,
             sent_by="anns_second_session", json={}, body={"success": True}),
    Scenario("a logout with an unknown field", "POST", "/auth/logout", 200,
             sent_by="anns_second_session", json={"refreshToken": "whatever"}, body={"success": True}),
    Scenario("a refresh without a token", "POST", REFRESH, 400, "validation_error",
             sent_by="stranger", json={}, bad_fields=("refreshToken",)),
    Scenario("a refresh with null", "POST", REFRESH, 400, "validation_error",
             sent_by="stranger", json={"refreshToken": None}, bad_fields=("refreshToken",)),
    Scenario("a refresh with a number", "POST", REFRESH, 400, "validation_error",
             sent_by="stranger", json={"refreshToken": 7}, bad_fields=("refreshToken",)),
    Scenario("a refresh with a list", "POST", REFRESH, 400, "validation_error",
             sent_by="stranger", json={"refreshToken": ["a"]}, bad_fields=("refreshToken",)),
    Scenario("a refresh with a misspelt field", "POST", REFRESH, 400, "validation_error",
             sent_by="stranger", json={"refresh_token": "a.b.c"}, bad_fields=("refreshToken",)),
    Scenario("a refresh with an access token", "POST", REFRESH, 401, "invalid_refresh_token",
             sent_by="stranger", json={"refreshToken": "{ann.access}"}),
    Scenario("a refresh with an API key", "POST", REFRESH, 401, "invalid_refresh_token",
             sent_by="stranger", json={"refreshToken": "{ann.key}"}),
]  # fmt: skip

TOKENS = [
    Scenario("no token for vaults", "GET", "/vault", 401, "unauthorized", sent_by="stranger"),
    Scenario("no token for an account", "GET", "/auth/me", 401, "unauthorized", sent_by="stranger"),
    Scenario("no token for API keys", "GET", "/auth/api-keys", 401, "unauthorized", sent_by="stranger"),
    Scenario("no token for a vault", "GET", "/vault/{unknown}", 401, "unauthorized", sent_by="stranger"),
    Scenario("no token for documents", "GET", "/vaults/{unknown}/documents", 401, "unauthorized", sent_by="stranger"),
    Scenario("no token for a logout", "POST", "/auth/logout", 401, "unauthorized", sent_by="stranger"),
    Scenario("no token for HEAD", "HEAD", "/vault", 401, sent_by="stranger"),
    Scenario("a refresh token in place of an access token", "GET", "/auth/me", 401, "unauthorized",
             sent_by="stranger", headers={"Authorization": "Bearer {ann.refresh}"}),
    Scenario("a token of another server", "GET", "/auth/me", 401, "unauthorized",
             sent_by="stranger_of_document", headers={"Authorization": "Bearer {ann.access}"}),
    Scenario("a token in the query", "GET", "/vault?token={ann.access}&access_token={ann.access}",
             401, "unauthorized", sent_by="stranger"),
    Scenario("a token in a cookie", "GET", "/vault", 401, "unauthorized",
             sent_by="stranger", headers={"Cookie": "token={ann.access}; accessToken={ann.access}"}),
    Scenario("a token in the body", "POST", "/vault", 401, "unauthorized",
             sent_by="stranger", json={"name": "x", "accessToken": "{ann.access}"}),
    Scenario("the scheme in small letters", "GET", "/auth/me", 200,
             sent_by="stranger", headers={"Authorization": "bearer {ann.access}"}),
    Scenario("the scheme in capitals", "GET", "/auth/me", 200,
             sent_by="stranger", headers={"Authorization": "BEARER {ann.access}"}),
]  # fmt: skip

AUTHORIZATION = [
    Scenario(f"Authorization: {name}", "GET", "/vault", 401, "unauthorized",
             sent_by="stranger", headers={"Authorization": value})
    for name, value in {
        "empty": b"",
        "scheme only": b"Bearer",
        "basic": b"Basic dXNlcjpwYXNz",
        "token only": b"eyJhbGciOiJIUzI1NiJ9.e30.x",
        "two tokens": b"Bearer a b",
        "comma": b"Bearer a,b",
        "not ASCII": "Bearer ключ".encode(),
        "not UTF-8": b"Bearer \xff\xfe",
        "quoted": b'Bearer "a.b.c"',
        "glued": b"Bearera.b.c",
        "long": b"Bearer " + b"a" * 6000,
        "key prefix": b"Bearer srk_",
        "key-like": b"Bearer srk_" + b"A" * 50,
        "key in non-ASCII": "Bearer srk_ключ".encode(),
    }.items()
]  # fmt: skip
