"""A security key in software, as clients and browsers use one: it holds passkeys, and has the PRF or has not."""

from __future__ import annotations

import hashlib
import hmac
import os
from typing import Any
from urllib.parse import urlsplit

from tests.kit.people.soft_authenticator import SoftPasskey, b64, unb64


class SoftKey:
    """Makes and uses passkeys with the options and responses of WebAuthn in JSON."""

    def __init__(self, *, prf: bool = True) -> None:
        self.prf = prf
        self.passkeys: list[SoftPasskey] = []
        self.asked: list[dict[str, Any]] = []  # all options that it was given
        self.outputs: list[bytes] = []  # all outputs of its PRF
        self._secrets: dict[bytes, bytes] = {}

    def create(self, origin: str, options: dict[str, Any]) -> dict[str, Any]:
        """Make a passkey."""
        self._check(origin, options["rp"]["id"], options, options["authenticatorSelection"]["userVerification"])
        excluded = {one["id"] for one in options["excludeCredentials"]}
        if any(one.credential_id in excluded for one in self.passkeys):
            raise PermissionError("this key has a passkey of the account")
        made = SoftPasskey(options["rp"]["id"], unb64(options["user"]["id"]))
        self.passkeys.append(made)
        self._secrets[made.id] = os.urandom(32)
        response = made.register(options, origin)
        enabled = self.prf and options["extensions"].get("prf") is not None
        return response | {"clientExtensionResults": {"prf": {"enabled": enabled}}}

    def get(self, origin: str, options: dict[str, Any]) -> dict[str, Any]:
        """Use the newest passkey that fits."""
        self._check(origin, options["rpId"], options, options["userVerification"])
        allowed = {one["id"] for one in options.get("allowCredentials", [])}
        fitting = [one for one in self.passkeys if one.rp_id == options["rpId"]]
        used = [one for one in fitting if not allowed or one.credential_id in allowed][-1]
        response = used.assertion(options, origin)
        values = options.get("extensions", {}).get("prf", {}).get("eval")
        if not self.prf or values is None:
            return response
        output = self.output(used, unb64(values["first"]))
        self.outputs.append(output)
        return response | {"clientExtensionResults": {"prf": {"results": {"first": b64(output)}}}}

    def output(self, passkey: SoftPasskey, value: bytes) -> bytes:
        """What the PRF of a passkey gives for an input, as a browser asks for it."""
        salt = hashlib.sha256(b"WebAuthn PRF\0" + value).digest()
        return hmac.new(self._secrets[passkey.id], salt, hashlib.sha256).digest()

    def _check(self, origin: str, rp_id: str, options: dict[str, Any], verification: str) -> None:
        """What a browser refuses."""
        self.asked.append(options)
        host = urlsplit(origin).hostname or ""
        if host != rp_id and not host.endswith(f".{rp_id}"):
            raise PermissionError("the rp id is not of this origin")
        assert verification == "required"
