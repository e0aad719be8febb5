"""A phone with an app for one-time codes."""

from __future__ import annotations

import time

from tests.kit.people.one_time_codes import code, wrong_code


class AuthenticatorApp:
    """A phone with an authenticator app: each code that it shows is of the next step, as the server counts them."""

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self._step = -1

    def next(self) -> str:
        """A code that was not shown before. A server takes three without waiting: one step either way."""
        self._step += 1
        return code(self.secret, time.time_ns() // 1_000_000, self._step - 1)

    def wrong(self) -> str:
        return wrong_code(self.secret, time.time_ns() // 1_000_000)
