"""Structures of WebAuthn, as its standard has them in JSON: what browsers send, and the options that they get."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

_BASE64URL = r"^[A-Za-z0-9_-]+\Z"
CredentialId = Annotated[str, Meta(pattern=_BASE64URL, max_length=1_364)]  # 1,023 bytes
_Bytes = Annotated[str, Meta(pattern=_BASE64URL, max_length=8_192)]
_LongBytes = Annotated[str, Meta(pattern=_BASE64URL, max_length=16_384)]


class PrfOutput(Struct, frozen=True):
    """What a browser tells of the extension `prf`. Its results are a key of the user's, and never sent to a server."""

    results: None = None


class ClientExtensions(Struct, frozen=True):
    """What a browser tells of extensions."""

    prf: PrfOutput | None = None


class AttestationResponse(Struct, frozen=True):
    """What an authenticator made to register a passkey."""

    client_data: _Bytes = field(name="clientDataJSON")
    attestation_object: _LongBytes = field(name="attestationObject")


class RegisteredCredential(Struct, frozen=True, rename="camel"):
    """A new credential, as `PublicKeyCredential.toJSON()` gives it; unknown fields are ignored."""

    id: CredentialId
    response: AttestationResponse
    client_extension_results: ClientExtensions | None = None


class AssertionResponse(Struct, frozen=True):
    """What an authenticator made to prove that it has a passkey."""

    client_data: _Bytes = field(name="clientDataJSON")
    authenticator_data: _Bytes = field(name="authenticatorData")
    signature: _Bytes
    user_handle: _Bytes | None = field(name="userHandle", default=None)


class AssertedCredential(Struct, frozen=True, rename="camel"):
    """An assertion, as `PublicKeyCredential.toJSON()` gives it; unknown fields are ignored."""

    id: CredentialId
    response: AssertionResponse
    client_extension_results: ClientExtensions | None = None


class RelyingPartyEntity(Struct, frozen=True):
    """The server, as an authenticator knows it."""

    id: str
    name: str


class UserEntity(Struct, frozen=True, rename="camel"):
    """The account, as an authenticator stores it."""

    id: str
    name: str
    display_name: str


class CredentialParameters(Struct, frozen=True):
    """An algorithm that the server accepts, by its number in COSE."""

    alg: int
    type: str = "public-key"


class CredentialDescriptor(Struct, frozen=True):
    """A credential, by its id."""

    id: str
    type: str = "public-key"


class AuthenticatorSelection(Struct, frozen=True, rename="camel"):
    """What the authenticator must be able to do: verify its user, and if it can, find the passkey by itself."""

    resident_key: str = "preferred"
    require_resident_key: bool = False
    user_verification: str = "required"


class CreationOptions(Struct, frozen=True, rename="camel"):
    """`PublicKeyCredentialCreationOptionsJSON` of WebAuthn."""

    rp: RelyingPartyEntity
    user: UserEntity
    challenge: str
    pub_key_cred_params: list[CredentialParameters]
    timeout: int
    exclude_credentials: list[CredentialDescriptor]
    authenticator_selection: AuthenticatorSelection
    attestation: str = "none"


class RequestOptions(Struct, frozen=True, rename="camel"):
    """`PublicKeyCredentialRequestOptionsJSON` of WebAuthn."""

    challenge: str
    timeout: int
    rp_id: str
    allow_credentials: list[CredentialDescriptor]
    user_verification: str = "required"
