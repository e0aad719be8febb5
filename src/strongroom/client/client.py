# Generated from async_client.py by `make generate`. Do not edit.
"""The blocking client."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

from strongroom.client.factors import Passkeys, SecondFactor
from strongroom.client.format.encoding import checked_secret
from strongroom.client.iterators import Log, Part
from strongroom.client.net.connection import Connection
from strongroom.client.net.driver import Driver
from strongroom.client.net.http import HttpClient
from strongroom.client.net.session import PATIENCE, RETRIES, Session
from strongroom.client.operations import (
    accounts,
    adoption,
    passkeys,
    rotation,
    saved_sessions,
    sessions_and_keys,
    usage_and_log,
    vaults,
)
from strongroom.client.operations.ceremonies import Authenticator
from strongroom.client.operations.core import Core, checked_device_name
from strongroom.client.operations.device import Device
from strongroom.client.operations.documents import Document
from strongroom.client.operations.factors import Code, FactorSource, checked_code
from strongroom.client.operations.rotation import Rotation
from strongroom.client.operations.usage_and_log import Usage
from strongroom.client.operations.value_types import T
from strongroom.client.operations.vaults import Blob
from strongroom.client.vaults import Collection, Items, Vault

if TYPE_CHECKING:
    from strongroom.client.replica.replica import Replica
    from strongroom.model import ApiKey, User
    from strongroom.wire.responses import ListedSession


class Client(Part):
    """A client of one server: register or log in, then open vaults. Everything is sealed here and opened here.

    Several threads may use one client. `device_name` is what the list of sessions calls this device, and the server can
    read it; by default it names the operating system and nothing else, and `""` sends none.

    `ca_file` has the only certificates to trust, in PEM form; `proxy` is the address of an HTTP proxy. Otherwise the
    machine's certificates are trusted, and for https the proxy of the environment is used; with `trust_env=False`, no
    variable of the environment counts.
    """

    def __init__(
        self,
        url: str,
        *,
        insecure: bool = False,
        timeout: float = 30.0,
        retries: int = RETRIES,
        patience: float = PATIENCE,
        ca_file: str | os.PathLike[str] | None = None,
        proxy: str | None = None,
        trust_env: bool = True,
        device_name: str | None = None,
        transport: Any = None,
    ) -> None:
        connection = Connection(
            url,
            insecure=insecure,
            timeout=timeout,
            ca_file=ca_file,
            proxy=proxy,
            trust_env=trust_env,
            transport=transport,
        )
        session = Session(connection.url, retries=retries, patience=patience)
        core = Core(session, Device(), device_name=checked_device_name(device_name))
        super().__init__(core, Driver(HttpClient(connection)))

    @classmethod
    def with_token(
        cls,
        url: str,
        token: str,
        *,
        state: str | os.PathLike[str] | None = None,
        insecure: bool = False,
        timeout: float = 30.0,
        retries: int = RETRIES,
        patience: float = PATIENCE,
        ca_file: str | os.PathLike[str] | None = None,
        proxy: str | None = None,
        trust_env: bool = True,
        transport: Any = None,
    ) -> Self:
        """A client that opens what a token (`srv_…`) was made for, and nothing else.

        `state` is the path of a file that holds what was seen, so that the next run notices what is older. `lock` and
        `close` write it, and `save_state`.
        """
        token = checked_secret(token, "token")
        client = cls(
            url,
            insecure=insecure,
            timeout=timeout,
            retries=retries,
            patience=patience,
            ca_file=ca_file,
            proxy=proxy,
            trust_env=trust_env,
            transport=transport,
        )
        sessions_and_keys.use_token(client._core, token, state)
        return client

    @classmethod
    def import_account(
        cls,
        url: str,
        path: str | os.PathLike[str],
        email: str,
        password: str,
        *,
        invitation: str | None = None,
        allow_less_history: bool = False,
        restart: bool = False,
        progress: Callable[[int, int], None] | None = None,
        insecure: bool = False,
        timeout: float = 30.0,
        retries: int = RETRIES,
        patience: float = PATIENCE,
        ca_file: str | os.PathLike[str] | None = None,
        proxy: str | None = None,
        trust_env: bool = True,
        device_name: str | None = None,
        transport: Any = None,
    ) -> Self:
        """Move the account in a file of `export_account` to the server at `url`; a client that has logged in there.

        Email and password are those of the old server at the time of the export, and are those of the new one. The
        file is verified with the account's keys first. Then the account is registered on the new server, the file is
        sent, and everything that the server then has is compared with the file. After an interruption, call it again.

        A server that is closed for sign-ups asks for an invitation. A server that keeps less history or trash than the
        file has raises HistoryLeftOut, unless `allow_less_history`. `restart` deletes what an unfinished import of
        another file has left in the account. `progress` is told how many bytes are done, of how many: each byte of the
        file is verified, sent and compared, and counts three times.
        """
        from strongroom.client.operations import account_move

        password = checked_secret(password, "password")
        if invitation is not None:
            invitation = checked_secret(invitation, "invitation")
        client = cls(
            url,
            insecure=insecure,
            timeout=timeout,
            retries=retries,
            patience=patience,
            ca_file=ca_file,
            proxy=proxy,
            trust_env=trust_env,
            device_name=device_name,
            transport=transport,
        )
        try:
            client._run(
                account_move.import_account(
                    client._core,
                    Path(path),
                    email,
                    password,
                    invitation,
                    allow_less_history=allow_less_history,
                    restart=restart,
                    progress=progress,
                )
            )
        except BaseException:
            client.close()
            raise
        return client

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        *,
        email: str | None = None,
        insecure: bool = False,
        timeout: float = 30.0,
        retries: int = RETRIES,
        patience: float = PATIENCE,
        ca_file: str | os.PathLike[str] | None = None,
        proxy: str | None = None,
        trust_env: bool = True,
        transport: Any = None,
    ) -> Self:
        """A client that continues a session which `save_session` has saved, without the password.

        No request is sent. Where the session has ended, the first request raises InvalidRefreshToken. With `email`, the
        session of another account is refused.
        """
        file, contents = Driver.run_alone(saved_sessions.open_(path, email))
        client = cls(
            contents.url,
            insecure=insecure,
            timeout=timeout,
            retries=retries,
            patience=patience,
            ca_file=ca_file,
            proxy=proxy,
            trust_env=trust_env,
            transport=transport,
        )
        saved_sessions.use(client._core, file, contents)
        return client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return "Client(...)"

    def close(self) -> None:
        """Close the connections and forget every key. The session stays open on the server: `logout` ends it."""
        try:
            self.lock()
        finally:
            self._driver.close()

    def save_session(
        self, path: str | os.PathLike[str], *, keyring: str | None = None, needs_password: bool = False
    ) -> None:
        """Save the session in a file, so that `resume` continues it without the password.

        The file holds tokens and keys, sealed; only its owner can read it. With `keyring`, a name of your choice, the
        key to it lies in the operating system's keyring under that name. Without, it lies in the file, and nothing but
        the file's permissions protects it. `logout` deletes the file.

        With `needs_password` the file alone opens nothing: `unlock` goes on with it, from a replica and with the
        password, and `resume` does not.
        """
        self._run(saved_sessions.save(self._core, path, keyring, needs_password=needs_password))

    def lock(self) -> None:
        """Forget every key and token. The session stays open on the server, and a file that it is saved in stays."""
        try:
            self._run(saved_sessions.update(self._core))
            self.save_state()
        finally:
            self._core.lock()

    def save_state(self) -> None:
        """Write what was seen into the state file that `with_token` was given, if there is one."""
        self._run(sessions_and_keys.save_state(self._core))

    # The account

    @property
    def keyring_gaps(self) -> int:
        """How many newer keyrings this client has taken over although they do not name the one that it had seen.

        A keyring names the hundred before it. A device that was away for longer cannot tell whether the newest one
        follows on the one that it had seen.
        """
        return self._core.keyring_gaps

    def register(self, email: str, password: str, *, invitation: str | None = None) -> User:
        """Register an account, and log in. A server that is closed for sign-ups asks for an invitation."""
        password = checked_secret(password, "password")
        if invitation is not None:
            invitation = checked_secret(invitation, "invitation")
        return self._run(accounts.register(self._core, email, password, invitation))

    def adopt_account(self, email: str, password: str, new_password: str) -> User:
        """Take over an account that the operator of the server made and gave you the password of, and log in.

        `password` is sent as typed: never give one that only you know. `new_password` is never sent. Where an
        interruption leaves in doubt whether it is set, try `login` with it first.
        """
        password = checked_secret(password, "password")
        new_password = checked_secret(new_password, "new_password")
        return self._run(adoption.adopt(self._core, email, password, new_password))

    @property
    def second_factor(self) -> SecondFactor:
        """One-time codes as the second factor of the account."""
        return SecondFactor(self._core, self._driver)

    @property
    def passkeys(self) -> Passkeys:
        """The passkeys of the account."""
        return Passkeys(self._core, self._driver)

    def login(self, email: str, password: str, *, code: Code | None = None) -> User:
        """Log in. An earlier login of this client ends.

        `code` is the second factor, if the account has one: a one-time code of six digits, a recovery code, or a
        function that is called when the server asks for one, with the error that says so, and returns it. It is asked
        three times at the most. An authenticator with a passkey of the account will do as well. Without `code`, an
        account with a second factor raises SecondFactorRequired.
        """
        password, code = checked_secret(password, "password"), checked_code(code)
        return self._run(accounts.login(self._core, email, password, FactorSource(code)))

    def login_with_passkey(self, authenticator: Authenticator, *, email: str | None = None) -> User:
        """Log in with a passkey that opens the account, in one ceremony and without the password.

        `authenticator` is a `SecurityKey`, or your own. Which account it is, the passkey says; with `email`, another
        account is refused. An earlier login of this client ends.
        """
        return self._run(passkeys.login(self._core, authenticator, email))

    def logout(self, *, everywhere: bool = False) -> None:
        """End this session, or all of the account, and forget every key. A file that it is saved in is deleted."""
        self._run(accounts.logout(self._core, everywhere=everywhere))

    def change_password(self, old: str, new: str, *, restored: bool = False, code: Code | None = None) -> None:
        """Set another password. Every other session of the account ends; no document is encrypted anew.

        Whoever has had the account's keys still has them: `rotate_keys` ends that. `old` is the password that the
        server knows; after a restore from a backup, that may be one of before. `restored=True` says that the server was
        restored, and accepts the work in the derivation of keys of that time; otherwise less than was seen is refused.
        `code` is the second factor, as for `login`.
        """
        old, new, code = checked_secret(old, "old"), checked_secret(new, "new"), checked_code(code)
        self._run(accounts.change_password(self._core, old, new, FactorSource(code), restored=restored))

    def make_recovery_key(self, password: str, *, code: Code | None = None) -> str:
        """A key to print and keep; it opens the account if the password is lost. An earlier one opens nothing more.

        `code` is the second factor, as for `login`.
        """
        password, code = checked_secret(password, "password"), checked_code(code)
        return self._run(accounts.set_recovery(self._core, password, FactorSource(code)))

    def remove_recovery_key(self, password: str, *, code: Code | None = None) -> None:
        """Remove the recovery key: from now on it does not open the account. `code` is the second factor."""
        password, code = checked_secret(password, "password"), checked_code(code)
        self._run(accounts.remove_recovery(self._core, password, FactorSource(code)))

    def rotate_keys(
        self,
        password: str,
        *,
        new_password: str | None = None,
        progress: Callable[[int, int], None] | None = None,
        code: Code | None = None,
    ) -> Rotation:
        """Make new keys for the account and every vault, and encrypt everything again under them.

        Whoever has had the keys of before (a lost device, an old password with an old keyring, an agent with a token)
        cannot read what is written from now on. API keys, and tokens with them, are revoked. `progress` is told how
        many documents are done, of how many. After an interruption, call it again or call `finish_rotation`.

        Give a new password too. Without one, whoever has had the account's keys and works with the server can show a
        device that logs in for the first time the keys of before, and read what it writes.

        If there is a recovery key, the result has a new one, to be printed; the one of before then opens nothing more.
        It is made last: after an interruption the one of before still works, and `make_recovery_key` replaces it.

        Passkeys open the account no more: the result has them, and `passkeys.enable_unlock` lets each again that is at
        hand. It also has the other sessions that were open: devices that have not seen the rotation.

        What this device has not read before the keys change is not encrypted again: anyone who had the old keys,
        and works with the server, may have made it. The result has it as `unseen`; `finish_rotation` takes what its
        caller accepts. When nothing is left, nobody believes anything under the old keys any more.

        `code` is the second factor, as for `login`. Where there is a recovery key, two are needed, and each code counts
        once: give a function.
        """
        password, code = checked_secret(password, "password"), checked_code(code)
        new_password = None if new_password is None else checked_secret(new_password, "new_password")
        return self._run(rotation.rotate_keys(self._core, password, new_password, progress, FactorSource(code)))

    def finish_rotation(
        self, *, accept: Iterable[Document | Blob] = (), progress: Callable[[int, int], None] | None = None
    ) -> Rotation:
        """Encrypt again what an interrupted rotation has left; it does nothing where nothing is left.

        It takes what this device has read before, and what is given as `accept`: what an earlier `Rotation` has as
        `unseen`, or a part of that. Ask a person first.
        """
        return self._run(rotation.finish(self._core, accept, progress))

    def recover(self, email: str, recovery_key: str, new_password: str, *, code: Code | None = None) -> User:
        """Log in with the recovery key, and set another password.

        `code` is the second factor, as for `login`: the recovery key replaces the password, not the second factor. Two
        are needed, for the login and for the password, and each code counts once: give a function.
        """
        recovery_key, code = checked_secret(recovery_key, "recovery_key"), checked_code(code)
        new_password = checked_secret(new_password, "new_password")
        return self._run(accounts.recover(self._core, email, recovery_key, new_password, FactorSource(code)))

    def export_plaintext(self, path: str | os.PathLike[str]) -> int:
        """Write every vault and live document, decrypted, as lines of JSON; the number of documents.

        Anybody who reads the file reads your data. To move to another server, use `export_account`. Only the file's
        owner can read it, and it is there only when it is whole. It replaces an earlier plaintext export, and no other
        file.
        """
        from strongroom.client.operations import plaintext_export
        from strongroom.client.operations.new_files import PLAINTEXT, new_file

        with new_file(path, PLAINTEXT) as write:
            return self._run(plaintext_export.export(self._core, write))

    def export_account(self, path: str | os.PathLike[str]) -> None:
        """Write the whole account, encrypted as it is stored, to a file that `import_account` moves to another server.

        The file has the keyring, all vaults, documents and blobs, their history and the trash, and is verified with
        the account's keys while it is written. Only its owner can read it, and it is there only when it is whole. It
        replaces an earlier file of `export_account`, and no other file.
        """
        from strongroom.client.operations import account_move
        from strongroom.client.operations.new_files import ACCOUNT, new_file

        with new_file(path, ACCOUNT) as write:
            self._run(account_move.export_account(self._core, write))

    def delete_account(self, password: str, *, code: Code | None = None) -> None:
        """Delete the account and everything in it, at once and for good. `code` is the second factor."""
        password, code = checked_secret(password, "password"), checked_code(code)
        self._run(accounts.delete(self._core, password, FactorSource(code)))

    def sessions(self) -> list[ListedSession]:
        """The open sessions, the one used last first."""
        return self._run(sessions_and_keys.sessions(self._core))

    def end_session(self, session_id: str) -> None:
        """End one session."""
        self._run(sessions_and_keys.end_session(self._core, session_id))

    def log(self) -> Log:
        """The account's log, newest first: logins, failed logins, changes of passwords, keys and sessions."""
        return Log(self._core, self._driver)

    def usage(self) -> Usage:
        """What the account uses, and its limits."""
        return self._run(usage_and_log.usage(self._core))

    def api_keys(self) -> list[ApiKey]:
        """The API keys, those inside tokens included."""
        return self._run(sessions_and_keys.api_keys(self._core))

    def revoke_api_key(self, uid: str) -> None:
        """Revoke an API key, and with it a token that holds it."""
        self._run(sessions_and_keys.revoke_key(self._core, uid))

    # What it keeps

    def vault(self, name: str | None = None, *, create: bool = False, sealed: bool = True) -> Vault:
        """The vault of this name. A new one shows the server its name only if `sealed` is False.

        With a token that opens a vault, the name may be left out.
        """
        opened = self._run(sessions_and_keys.open_vault(self._core, name, create=create, sealed=sealed))
        return Vault(self._core, self._driver, opened)

    def vaults(self) -> list[Vault]:
        """All vaults."""
        found = self._run(vaults.list_vaults(self._core))
        return [Vault(self._core, self._driver, opened) for opened in found]

    @overload
    def collection(self) -> Collection: ...
    @overload
    def collection(self, *, type: type[T]) -> Collection[T]: ...
    def collection(self, *, type: Any = None) -> Collection[Any]:  # noqa: A002
        """The collection that this client's token opens. `type` is that of its values."""
        return Collection(self._core, self._driver, sessions_and_keys.token_scope(self._core, type))

    def items(self, vault: str | None = None, *, create: bool = False) -> Items:
        """The items of the vault of this name: logins, notes, keys and so on, in its collection `items`.

        With a token, the name may be left out, and the token may be one for that collection. With `create`, a vault
        that is not there is made.
        """
        if vault is None and (scope := sessions_and_keys.token_items(self._core)) is not None:
            return Items(self._core, self._driver, scope)
        return (self.vault(vault, create=create)).items()

    def open_replica(self, path: str | os.PathLike[str], *, read_only: bool | None = None) -> Replica:
        """A copy on this device, in a file that only its owner can read; made if there is none.

        One process writes to it. While another one does, this one reads: see `read_only` of the replica. With
        `read_only` True it never writes; with False, that another one writes is a ReadOnlyReplica at once.
        """
        from strongroom.client.replica import unlock
        from strongroom.client.replica.replica import Replica

        return Replica(unlock.open_replica(self._core, path, read_only=read_only), self._driver)

    def unlock(
        self,
        path: str | os.PathLike[str],
        password: str,
        *,
        code: Code | None = None,
        session: str | os.PathLike[str] | None = None,
    ) -> None:
        """Open the account from its replica, without the server; this client logs in by itself when it needs one.

        `code` is the second factor of that login, as for `login`. `session` is the path of a session that was saved
        with `needs_password`: where it can be used, there is no login.
        """
        from strongroom.client.replica import unlock

        password, code = checked_secret(password, "password"), checked_code(code)
        self._run(unlock.unlock(self._core, path, password, FactorSource(code)))
        if session is not None:
            self._run(saved_sessions.join(self._core, session))
