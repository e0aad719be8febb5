"""Ceremonies with passkeys: options with a challenge, and the verification of what comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import rules, wire
from strongroom.actions import passkeys
from strongroom.errors import InvalidPasskey
from strongroom.model import EventType, PasskeyProof, Purpose

if TYPE_CHECKING:
    from collections.abc import Iterable

    from strongroom.model import Passkey, StoredPasskey, User
    from strongroom.server.request import Request
    from strongroom.webauthn import Credential, RelyingParty
    from strongroom.wire.webauthn import AssertedCredential, CredentialDescriptor, RegisteredCredential


def creation_options(
    party: RelyingParty, challenge: str, user: User, existing: Iterable[Passkey]
) -> wire.responses.PasskeyCreation:
    """The options of a registration; authenticators that have a passkey of the account make no second one."""
    return wire.responses.PasskeyCreation(
        wire.webauthn.CreationOptions(
            rp=wire.webauthn.RelyingPartyEntity(party.id, party.id),
            user=wire.webauthn.UserEntity(party.user_handle(user.id), user.email, user.email),
            challenge=challenge,
            pub_key_cred_params=[wire.webauthn.CredentialParameters(number) for number in party.algorithms],
            timeout=rules.CHALLENGE_LIFETIME,
            exclude_credentials=_descriptors(existing),
            authenticator_selection=wire.webauthn.AuthenticatorSelection(),
        )
    )


def request_options(
    party: RelyingParty, challenge: str, allowed: Iterable[Passkey] = ()
) -> wire.responses.PasskeyRequest:
    """The options of an assertion by one of these passkeys; if none is named, by any that an authenticator finds."""
    return wire.responses.PasskeyRequest(
        wire.webauthn.RequestOptions(challenge, rules.CHALLENGE_LIFETIME, party.id, _descriptors(allowed))
    )


def _descriptors(found: Iterable[Passkey]) -> list[CredentialDescriptor]:
    return [wire.webauthn.CredentialDescriptor(one.credential_id) for one in found]


async def verify_registration(request: Request, given: RegisteredCredential) -> Credential:
    """Verify a new credential of the caller, and use its challenge up."""
    from strongroom.webauthn import Registration

    party, response = request.context.relying_party, given.response
    challenge_hash = party.challenge_hash(response.client_data)
    if challenge_hash is not None and await request.write(
        passkeys.take_for_registration, request.actor, challenge_hash
    ):
        sent = Registration(given.id, response.client_data, response.attestation_object)
        credential = party.verify_registration(challenge_hash, sent)
        if credential is not None:
            return credential
    raise InvalidPasskey


async def verify_assertion(
    request: Request, given: AssertedCredential, purpose: Purpose, user_id: str | None
) -> tuple[StoredPasskey, PasskeyProof]:
    """Verify an assertion of a passkey, of this account if one is known, and use its challenge up.

    One that is refused is counted and logged in a transaction of its own. A valid one passes even from a throttled
    address: signatures cannot be guessed.
    """
    from strongroom.webauthn import Assertion

    party, response = request.context.relying_party, given.response
    challenge_hash = party.challenge_hash(response.client_data)
    found = None
    if challenge_hash is not None:
        found = await request.write(passkeys.take, challenge_hash, purpose, user_id, given.id)
    kind = EventType.LOGIN_FAILED if purpose is Purpose.LOGIN else EventType.SECOND_FACTOR_FAILED
    if found is not None and challenge_hash is not None and _is_owner(party, found, response.user_handle, purpose):
        sent = Assertion(given.id, response.client_data, response.authenticator_data, response.signature)
        count = party.verify_assertion(challenge_hash, found.public_key, sent)
        if count is not None:
            if passkeys.has_risen(found, count):
                return found, PasskeyProof(found.uid, count)
            kind = EventType.PASSKEY_COUNTER_FELL
    owner = user_id if found is None else found.user_id
    await request.context.db.write(passkeys.record_failure, request.counted_address, owner, kind, request.origin)
    raise InvalidPasskey


def _is_owner(party: RelyingParty, found: StoredPasskey, handle: str | None, purpose: Purpose) -> bool:
    """Whether the authenticator means the same account; where nobody was named before, it must say so."""
    return handle == party.user_handle(found.user_id) or (handle is None and purpose is not Purpose.LOGIN)
