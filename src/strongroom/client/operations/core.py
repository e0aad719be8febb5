"""The state that the operations of one client share: the session, the keys, what the device has seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from strongroom.client.errors import Locked, Tampered
from strongroom.client.format.derive import normal_email
from strongroom.client.format.encoding import checked_text
from strongroom.client.net import requests
from strongroom.client.net.session import Session
from strongroom.client.operations import factors
from strongroom.client.operations.device import Device
from strongroom.client.operations.factors import FactorSource
from strongroom.errors import Invalid, SecondFactorRequired
from strongroom.rules import MAX_DEVICE_NAME, has_control

if TYPE_CHECKING:
    from strongroom.client.format.derive import Descriptor, PasswordKeys
    from strongroom.client.format.keyring import Keyring
    from strongroom.client.format.tokens import Token
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.token_state import TokenState
    from strongroom.model import User
    from strongroom.wire.responses import SignedIn


def now() -> int:
    """The time of this machine, in milliseconds; only the order of new uids depends on it."""
    return time.time_ns() // 1_000_000


def checked_device_name(name: str | None) -> str | None:
    """What the owner's list of sessions calls this device: a name, None for the default, "" for none.

    The server can read it. So the default names the operating system, and neither the machine nor its user.
    """
    if name is None:
        import platform

        return f"strongroom Python client on {platform.system() or 'an unknown system'}"
    if len(checked_text(name, "device_name")) > MAX_DEVICE_NAME or has_control(name):
        raise Invalid({"device_name": f"must be at most {MAX_DEVICE_NAME} characters without control characters"})
    return name or None


class Core:
    """The state of one client."""

    def __init__(
        self,
        session: Session,
        device: Device,
        *,
        device_name: str | None = None,
        clock: Callable[[], int] = now,
    ) -> None:
        self.session = session
        self.device = device
        self.device_name = device_name
        self.clock = clock
        self.email: str | None = None
        self.ring: Keyring | None = None
        self.descriptor: Descriptor | None = None
        self.sealed: str | None = None
        self.forked = False  # the server has shown another keyring than this one that does not follow on it
        self.token: Token | None = None
        self.state: TokenState | None = None  # where what is seen with the token is saved
        self.gaps: set[int] = set()  # versions of keyrings that were taken over from too long after the last one seen
        self.doubted: set[str] = set()  # what rotations have left as it was: reading it then was no belief
        self.on_lock: list[Callable[[], None]] = []
        self.on_keyring: list[Callable[[], None]] = []  # called when another keyring is in use

    @property
    def keyring_gaps(self) -> int:
        """How many keyrings were taken over although they do not say whether they follow on the last one seen."""
        return len(self.gaps)

    def keyring(self) -> Keyring:
        """The opened keyring, if somebody has logged in."""
        if self.ring is None:
            raise Locked
        return self.ring

    def unlock(
        self,
        email: str,
        ring: Keyring,
        sealed: str,
        descriptor: Descriptor,
        keys: PasswordKeys,
        source: FactorSource,
    ) -> None:
        """Use keys that were unlocked without a server; the first request logs in."""
        self.lock()
        self.email, self.ring, self.sealed, self.descriptor = email, ring, sealed, descriptor
        self.device.record_account(email, ring, descriptor)

        def log_in() -> Effects[None]:
            yield from self.open_session(email, keys.password, source)

        self.session.log_in = log_in

    def open_session(self, email: str, password: str, source: FactorSource) -> Effects[User]:
        """Log in with the auth key of a password, and the second factor if the account has one."""
        required = None
        try:
            opened = yield from self.session.send(requests.accounts.login(email, password, self.device_name))
        except SecondFactorRequired as refusal:
            required = refusal
        if required is not None:
            opened = yield from factors.finish_login(self.session, required, source)
        return self.begin(email, opened)

    def begin(self, email: str, opened: SignedIn) -> User:
        """Go on with a session, if it is of this email's account."""
        try:
            theirs = normal_email(opened.user.email)
        except Invalid:
            theirs = ""
        if theirs != email:
            raise Tampered("The server opened a session of another account.")
        self.session.begin(opened)
        self.email = email
        return opened.user

    def lock(self) -> None:
        """Forget every key."""
        self.session.end()
        closing, self.on_lock, self.on_keyring = self.on_lock, [], []
        for close in closing:
            close()
        self.email = self.ring = self.descriptor = self.sealed = self.token = self.state = None
        self.forked = False

    def __repr__(self) -> str:
        return "Core(...)"
