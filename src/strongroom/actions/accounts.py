"""Accounts: register, read for a login, change the password, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import credentials, rules, store
from strongroom.actions import deletions, events, invitations, keyrings, second_factors, sessions
from strongroom.errors import EmailAlreadyExists, InvalidCredentials, Unauthorized
from strongroom.model import EventType

if TYPE_CHECKING:
    from strongroom.credentials import TokenPair
    from strongroom.model import Actor, Login, Origin, Proof, Usage, User
    from strongroom.store import Tx
    from strongroom.wire.requests import ChangePassword, Register


async def exists(tx: Tx, email: str) -> bool:
    """Whether an email has an account; a registration asks before its password is hashed."""
    return await store.accounts.by_email(tx, email) is not None


async def create(
    tx: Tx, user_id: str, email: str, password_hash: str, origin: Origin, code_hash: str | None = None
) -> User:
    """Create an account; an invitation is used up with it, so the account exists exactly if the code is used."""
    user = await store.accounts.insert(tx, user_id, email, password_hash)
    if user is None:
        raise EmailAlreadyExists
    if code_hash is not None:
        await invitations.use(tx, code_hash, email, user_id)
    kind = EventType.REGISTERED if code_hash is None else EventType.REGISTERED_BY_INVITATION
    await events.record(tx, user_id, kind, origin)
    return user


async def register(
    tx: Tx,
    user_id: str,
    email: str,
    password_hash: str,
    pair: TokenPair,
    origin: Origin,
    wanted: Register,
    code_hash: str | None = None,
) -> User:
    """Create an account with the descriptor and keyring of its client, and open its first session."""
    user = await create(tx, user_id, email, password_hash, origin, code_hash)
    await keyrings.store_first(tx, user_id, password_hash, wanted.kdf, wanted.keyring)
    await sessions.open_(tx, user_id, password_hash, pair, origin, wanted.device_name)
    return user


async def me(tx: Tx, actor: Actor) -> tuple[User, Usage | None]:
    """The actor's account and its usage; a key limited to vaults or collections gets no usage."""
    user = await store.accounts.get(tx, actor.user_id)
    if user is None:
        raise Unauthorized
    return user, None if rules.is_restricted(actor) else await store.ledgers.usage(tx, actor.user_id)


async def for_login(tx: Tx, email: str) -> Login | None:
    """The id and password hash of the account with this email, or None."""
    return await store.accounts.by_email(tx, email)


async def for_reauthentication(tx: Tx, actor: Actor) -> Login:
    """The id and password hash of the actor's own account, for actions that ask for the password again."""
    login = await store.accounts.with_hash(tx, actor.user_id)
    if login is None:
        raise Unauthorized
    return login


async def change_password(
    tx: Tx, actor: Actor, proof: Proof, new_hash: str, origin: Origin, wanted: ChangePassword
) -> None:
    """Replace the password that was verified, and the keys wrapped under it; end all other sessions."""
    old_hash = await second_factors.use(tx, actor.user_id, proof, origin)
    new_hash = credentials.marked(new_hash, second_factor=credentials.needs_second_factor(old_hash))
    if actor.session_id is None or not await store.accounts.change_hash(tx, actor.user_id, old_hash, new_hash):
        raise InvalidCredentials
    await keyrings.rewrap(tx, actor, new_hash, wanted)
    await store.challenges.clear(tx, actor.user_id)
    await store.sessions.end_others(tx, actor.user_id, actor.session_id)
    await store.key_shares.delete(tx, actor.user_id, actor.session_id)
    await events.record(tx, actor.user_id, EventType.PASSWORD_CHANGED, origin)


async def delete(tx: Tx, actor: Actor, proof: Proof, origin: Origin) -> None:
    """Delete the account whose password was verified: at once for everybody, its rows in steps."""
    await store.ledgers.lock(tx, [actor.user_id])  # waits for writes under way; one lock order prevents deadlocks
    password_hash = await second_factors.use(tx, actor.user_id, proof, origin)
    if not await store.accounts.delete(tx, actor.user_id, password_hash):
        raise InvalidCredentials
    await deletions.add_account(tx, actor.user_id)
