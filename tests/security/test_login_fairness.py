"""Who logs in or registers as fast as they can shuts nobody else out: addresses take turns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import quantiles

import pytest

from tests.kit.samples import LONG, rounds
from tests.kit.servers.process import ENGINES, STRONGROOM, Server
from tests.security.login_flood import Ask, flooded, honest, logins, registered, registrations

pytestmark = pytest.mark.alone

LOGINS = rounds(12, 200)
PEOPLE = 2  # of the honest, at a time
SUCCEED = 0.95
# An honest login waits for those that run. The flood keeps the event loop busy, too, and so does whoever sends it.
RATIO = 10


@pytest.mark.parametrize("addresses", [1, 16])
@pytest.mark.parametrize("attack", [logins, registrations])
@pytest.mark.parametrize("engine", ENGINES if LONG else ENGINES[:1])
def test_others_still_log_in(
    tmp_path: Path, engine: str, attack: Callable[[Server], list[Ask]], addresses: int
) -> None:
    """Nearly all of them, within a few times of what it takes them alone: beside one address, and sixteen."""
    server = Server(tmp_path, engine, LOGIN_LIMIT="0", SIGNUP_LIMIT="0")
    server.program = STRONGROOM  # at the cost of production
    try:
        emails = registered(server.start(), 4) * (LOGINS // 4)
        alone = quantiles((login.seconds for login in honest(server, emails, PEOPLE)), n=10)[-1]
        with flooded(server, attack(server), addresses) as flood:
            found = honest(server, emails, PEOPLE)
            assert flood.statuses[503], "the flood must be more than there is room for"
        good = [login.seconds for login in found if login.status == 200]
        slowest = quantiles(good, n=100)[-1] if len(good) > 1 else 0
        what = f"{engine}, {attack.__name__} from {addresses}: {len(good)} of {len(found)}"
        print(f"{what}, p99 {slowest:.2f} s; alone p90 {alone:.2f} s")  # noqa: T201
        assert len(good) >= SUCCEED * len(found)
        assert quantiles(good, n=10)[-1] <= RATIO * alone
    finally:
        server.abandon()
