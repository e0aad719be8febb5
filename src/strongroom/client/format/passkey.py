"""The passkey: a secret that an authenticator gives for a constant input (the PRF extension of WebAuthn).

The input is the same for every account and credential, so one ceremony logs in and unlocks. What follows from the
output is bound to the account, the rp id and the credential.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from strongroom.client.format import primitives
from strongroom.client.format.encoding import items, label, split_items, text
from strongroom.client.format.keys import derive
from strongroom.client.format.primitives import KEY
from strongroom.errors import Invalid

INPUT: Final = label("passkey-prf")  # `prf.eval.first`, in every ceremony
MOST_CREDENTIAL: Final = 1023  # bytes of a credential id
_SLOT: Final = label("slot-passkey")
_RP_ID: Final = re.compile(r"[a-z0-9.-]{1,253}", re.ASCII)


class PasskeyId(Struct, frozen=True):
    """A credential, by the rp id that it was made for and its id. Holds no secret."""

    rp_id: str
    credential: bytes

    @classmethod
    def of(cls, rp_id: str, credential: bytes) -> PasskeyId:
        """A credential that a slot can be for; anything else is the caller's mistake."""
        if not _RP_ID.fullmatch(rp_id):
            raise Invalid({"rp_id": "must be a host name of 1 to 253 characters in lower case"})
        if not 1 <= len(credential) <= MOST_CREDENTIAL:
            raise Invalid({"credential": f"must have 1 to {MOST_CREDENTIAL} bytes"})
        return cls(rp_id, credential)

    @classmethod
    def of_slot(cls, associated: bytes, account: bytes) -> PasskeyId:
        """The credential that a slot is for, by the slot's associated data; ValueError where that is none."""
        named, owner, rp_id, credential = split_items(associated)
        if named != _SLOT or owner != account:
            raise ValueError
        return cls.of(rp_id.decode("ascii"), credential)

    def slot(self, account: bytes) -> bytes:
        """The associated data of this credential's slot."""
        return items(_SLOT, account, text(self.rp_id), self.credential)


class PasskeySecret(Struct, frozen=True):
    """What an authenticator gave for the constant input, and the credential that gave it."""

    passkey: PasskeyId
    output: bytes

    @classmethod
    def of(cls, rp_id: str, credential: bytes, output: bytes) -> PasskeySecret:
        """From a ceremony with user verification; an output of another length is the caller's mistake."""
        output = primitives.SecretBytes(output)
        if len(output) != KEY:
            raise Invalid({"output": f"must have {KEY} bytes"})
        return cls(PasskeyId.of(rp_id, credential), output)

    def wrap(self, account: bytes) -> bytes:
        """The secret whose key pair opens a slot of this account's keyring."""
        digest = primitives.sha256(self.passkey.credential)  # some libraries take 1,024 bytes of info at the most
        return derive(self.output, "passkey-wrap", account, text(self.passkey.rp_id), digest)

    def __repr__(self) -> str:
        return "PasskeySecret(...)"
