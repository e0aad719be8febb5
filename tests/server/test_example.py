"""Example of a server test: the server runs in this process, on each engine, and the test sets its clock."""

from strongroom.rules import DAY
from tests.kit.asynchronous import async_test
from tests.kit.network.responses import good, refused
from tests.kit.servers.in_process import OpenServer


@async_test
async def test_a_refresh_token_expires(open_server: OpenServer) -> None:
    """After its lifetime, and not before."""
    async with open_server(jwt_refresh_expiry="7d") as server:
        person = await server.person()
        body = {"refreshToken": person.refresh}
        server.clock.pass_(7 * DAY - 1_000)
        good(await server.http.post("/auth/refresh", json=body))
        server.clock.pass_(2_000)
        refused(await server.http.post("/auth/refresh", json=body), 401, "invalid_refresh_token")
