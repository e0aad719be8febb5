"""What the operations of one client share: the session, the keys, what the device has seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from strongroom.client.device import Device
from strongroom.client.errors import Locked
from strongroom.client.session import Session

if TYPE_CHECKING:
    from strongroom.client.derive import Descriptor
    from strongroom.client.keyring import Keyring
    from strongroom.client.keys import AccountKey
    from strongroom.client.tokens import Token


def now() -> int:
    """The time of this machine; nothing but the order of new uids depends on it."""
    return time.time_ns() // 1_000_000


class Core:
    """One client. `bare`: the server is one of the bare specification, which keeps neither descriptors nor keyrings."""

    def __init__(self, session: Session, device: Device, *, bare: bool, clock: Callable[[], int] = now) -> None:
        self.session = session
        self.device = device
        self.clock = clock
        self.bare = bare
        self.email: str | None = None
        self.keys: AccountKey | None = None
        self.ring: Keyring | None = None
        self.descriptor: Descriptor | None = None
        self.token: Token | None = None

    def account_key(self) -> AccountKey:
        """The account key, if somebody has logged in."""
        if self.keys is None:
            raise Locked
        return self.keys

    def lock(self) -> None:
        """Forget every key."""
        self.session.end()
        self.email = self.keys = self.ring = self.descriptor = self.token = None

    def __repr__(self) -> str:
        return "Core(...)"
