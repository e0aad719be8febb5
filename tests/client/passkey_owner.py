"""Somebody with a passkey, for tests of both clients and of servers that lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from strongroom.client import ListedPasskey, Refusal
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.people.soft_key import SoftKey


class Owner:
    """Somebody with a passkey that opens the account."""

    def __init__(self, make: Callable[[], Any], *, unlock: bool = True) -> None:
        self.make, self.email, self.key = make, unique_email(), SoftKey()
        self.client = make()
        self.client.register(self.email, PASSWORD)
        self.client.vault("v", create=True)
        added = self.client.passkeys.add("blue key", PASSWORD, self.key)
        assert added.has_prf
        self.passkey: ListedPasskey = added.passkey
        self.codes: list[str] = added.recovery_codes
        if unlock:
            self.client.passkeys.enable_unlock(self.passkey, PASSWORD, self.key)

    def enter(self) -> Any:
        """A new device that logs in with the passkey."""
        client = self.make()
        client.login_with_passkey(self.key)
        return client

    def ask(self, _refusal: Refusal) -> str:
        return self.codes.pop()
