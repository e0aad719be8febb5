"""A security key that is plugged in, as an authenticator: `fido2` speaks to it over USB."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from strongroom.client.errors import CeremonyFailed
from strongroom.client.format.encoding import checked_secret
from strongroom.client.format.primitives import SecretText

if TYPE_CHECKING:
    from fido2.client import WebAuthnClient
    from fido2.ctap import CtapDevice

_NOT_INSTALLED: Final = "Security keys need a library that is not installed; run: pip install 'strongroom[fido]'"
_NO_DEVICE: Final = "No security key was found. Plug one in; on Linux, the rules of udev must let you use it."
_SEVERAL: Final = "Several security keys are plugged in; leave the one that you want to use."
_REASONS: Final = {
    "DEVICE_INELIGIBLE": "This security key has no passkey for this account, or has one already.",
    "TIMEOUT": "The security key was not touched in time.",
    "CONFIGURATION_UNSUPPORTED": "This security key cannot do what is needed; its firmware is old, or it is full.",
    "BAD_REQUEST": "The security key refused: is the PIN right, and is one set?",
}
_FAILED: Final = "The security key failed, or its PIN was not given."


class SecurityKey:
    """The security key that is plugged in. Needs `strongroom[fido]`.

    `pin` is its PIN, or a function that asks for it; a key with a fingerprint reader needs none. `on_touch` is called
    when the key waits to be touched.
    """

    def __init__(
        self, pin: str | Callable[[], str] | None = None, *, on_touch: Callable[[], None] | None = None
    ) -> None:
        self._pin = pin if pin is None or callable(pin) else checked_secret(pin, "pin")
        self._on_touch = on_touch

    def create(self, origin: str, options: dict[str, Any]) -> dict[str, Any]:
        """Make a passkey."""
        from_dict = _library().webauthn.PublicKeyCredentialCreationOptions.from_dict
        return self._run(lambda client: client.make_credential(from_dict(options)), origin)

    def get(self, origin: str, options: dict[str, Any]) -> dict[str, Any]:
        """Use a passkey; of several that fit, the one that the key names first."""
        from_dict = _library().webauthn.PublicKeyCredentialRequestOptions.from_dict
        return self._run(lambda client: client.get_assertion(from_dict(options)).get_response(0), origin)

    def _run(self, ceremony: Callable[[WebAuthnClient], Any], origin: str) -> dict[str, Any]:
        client_error, device = _library().client.ClientError, self._device()
        try:
            made: dict[str, Any] = _plain(ceremony(self._client(device, origin)))
        except client_error as error:
            reason = _REASONS.get(error.code.name, _FAILED)
        except (OSError, ValueError):
            reason = _FAILED
        else:
            return made
        finally:
            device.close()
        raise CeremonyFailed(reason)

    def _client(self, device: CtapDevice, origin: str) -> WebAuthnClient:
        library = _library()
        client: WebAuthnClient = library.client.Fido2Client(
            device,
            library.client.DefaultClientDataCollector(origin),
            user_interaction=self._interaction(),
            extensions=[library.ctap2.extensions.HmacSecretExtension()],
        )
        return client

    @staticmethod
    def _device() -> CtapDevice:
        found: list[CtapDevice] = list(_library().hid.CtapHidDevice.list_devices())
        if len(found) != 1:
            raise CeremonyFailed(_SEVERAL if found else _NO_DEVICE)
        return found[0]

    def _interaction(self) -> Any:
        key = self

        class Interaction(_library().client.UserInteraction):  # type: ignore[misc]
            """Asks for what the key needs."""

            def prompt_up(self) -> None:
                if key._on_touch is not None:
                    key._on_touch()

            def request_pin(self, *_: Any) -> str | None:
                given = key._pin
                if given is None:
                    return None
                return SecretText(given if isinstance(given, str) else given())

        return Interaction()

    def __repr__(self) -> str:
        return "SecurityKey(...)"


def _library() -> Any:
    try:
        import fido2
        import fido2.client
        import fido2.ctap2.extensions
        import fido2.hid
        import fido2.webauthn
    except ModuleNotFoundError:
        raise ModuleNotFoundError(_NOT_INSTALLED, name="fido2") from None
    return fido2


def _plain(value: Any) -> Any:
    """A response of the library as plain data for JSON."""
    if hasattr(value, "items"):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
