"""The second factor and the passkeys of an account, for asynchronous clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.client.async_iterators import AsyncPart
from strongroom.client.format.encoding import checked_secret
from strongroom.client.operations import passkeys, second_factors
from strongroom.client.operations.ceremonies import Authenticator
from strongroom.client.operations.factors import AsyncCode, FactorSource, checked_code
from strongroom.client.operations.passkeys import ListedPasskey, NewPasskey

if TYPE_CHECKING:
    from strongroom.model import SecondFactors
    from strongroom.wire.responses import Enrolment


class AsyncSecondFactor(AsyncPart):
    """One-time codes (TOTP) as the second factor of the account, and the recovery codes that replace a lost phone."""

    async def status(self) -> SecondFactors:
        """Since when there are one-time codes, how many passkeys and recovery codes: all of it the server's word."""
        return await self._run(second_factors.status(self._core))

    async def enrol(self, password: str, *, code: AsyncCode | None = None) -> Enrolment:
        """Begin the enrolment of one-time codes: a secret for an authenticator app, also as a URI for a QR code.

        Nothing changes until `confirm`. If the account has a second factor already, `code` is that of before; the new
        secret then replaces the one of before.
        """
        password, code = checked_secret(password, "password"), checked_code(code)
        return await self._run(second_factors.enrol(self._core, password, FactorSource(code)))

    async def confirm(self, code: str) -> list[str]:
        """Confirm the enrolment by the app's first code. From now on a login asks for one; open sessions stay open.

        Returns ten recovery codes to print and keep, each good once in the place of a code. They are shown only here:
        if the response is lost, call `new_recovery_codes`.
        """
        code = checked_secret(code, "code")
        return await self._run(second_factors.confirm(self._core, code))

    async def disable(self, password: str, *, code: AsyncCode | None = None) -> None:
        """Remove the one-time codes. If there is no other second factor, the password alone logs in again."""
        password, code = checked_secret(password, "password"), checked_code(code)
        await self._run(second_factors.disable(self._core, password, FactorSource(code)))

    async def new_recovery_codes(self, password: str, *, code: AsyncCode | None = None) -> list[str]:
        """Ten new recovery codes. Those of before are good no more."""
        password, code = checked_secret(password, "password"), checked_code(code)
        return await self._run(second_factors.new_recovery_codes(self._core, password, FactorSource(code)))

    def __repr__(self) -> str:
        return "SecondFactor(...)"


class AsyncPasskeys(AsyncPart):
    """The passkeys of the account: each logs in and is a second factor, and one with PRF can open the account too."""

    async def list(self) -> list[ListedPasskey]:
        """All passkeys: those that the server knows, and those that open the account."""
        return await self._run(passkeys.list_(self._core))

    async def add(
        self, name: str, password: str, authenticator: Authenticator, *, code: AsyncCode | None = None
    ) -> NewPasskey:
        """Make a passkey and register it. It logs in, and from now on a login with the password needs a second factor.

        `code` is the second factor of before, if the account has one. If it has none, the new passkey comes with
        recovery codes, which are shown only here. `enable_unlock` lets the passkey open the account, too.
        """
        password, code = checked_secret(password, "password"), checked_code(code)
        return await self._run(passkeys.add(self._core, name, password, authenticator, FactorSource(code)))

    async def enable_unlock(self, passkey: ListedPasskey, password: str, authenticator: Authenticator) -> None:
        """Let a passkey open the account's keys, so that `login_with_passkey` needs no password.

        Its authenticator must have the PRF extension of WebAuthn; it is used once more for this. An account has eight
        ways in at the most, the password and the recovery key included.
        """
        password = checked_secret(password, "password")
        await self._run(passkeys.enable_unlock(self._core, passkey, password, authenticator))

    async def disable_unlock(self, passkey: ListedPasskey, password: str, *, code: AsyncCode | None = None) -> None:
        """Let a passkey open the account no more; it still logs in. Whoever has had the keys by it still has them."""
        password, code = checked_secret(password, "password"), checked_code(code)
        await self._run(passkeys.disable_unlock(self._core, passkey, password, FactorSource(code)))

    async def rename(self, passkey: ListedPasskey, name: str) -> None:
        """Give a passkey another name. The server can read it."""
        await self._run(passkeys.rename(self._core, passkey, name))

    async def delete(self, passkey: ListedPasskey, password: str, *, code: AsyncCode | None = None) -> None:
        """Delete a passkey: it neither opens the account nor logs in.

        For one that opened the account two second factors are needed, and each code counts once: give a function, or
        an authenticator. If it is lost, `rotate_keys` ends what whoever finds it could read.
        """
        password, code = checked_secret(password, "password"), checked_code(code)
        await self._run(passkeys.delete(self._core, passkey, password, FactorSource(code)))

    def __repr__(self) -> str:
        return "Passkeys(...)"
