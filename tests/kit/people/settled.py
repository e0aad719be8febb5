"""Somebody with an account and a vault on a server in a process of its own."""

from __future__ import annotations

from tests.kit.servers.process import Server


def settle_in(server: Server, email: str = "a@b.c") -> tuple[str, str, str]:
    """Register an account with a vault: the address, a token, the vault."""
    with server.connect() as http:
        signed_in = http.post("/auth/email/register", json={"email": email, "password": "correct horse"}).json()
        token: str = signed_in["accessToken"]
        vault = http.post("/vault", json={"name": "v"}, headers={"authorization": f"Bearer {token}"}).json()
    return f"http://127.0.0.1:{server.port}", token, vault["uid"]
