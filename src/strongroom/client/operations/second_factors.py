"""Operations on second factors: one-time codes and recovery codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strongroom.client.net import requests
from strongroom.client.operations import factors, keyrings
from strongroom.errors import Invalid

if TYPE_CHECKING:
    from strongroom.client.net.call import Factor
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.factors import FactorSource
    from strongroom.model import SecondFactors
    from strongroom.wire.responses import Enrolment


def status(core: Core) -> Effects[SecondFactors]:
    """The second factors of the account, as the server says."""
    return (yield from core.session.send(requests.second_factors.status()))


def enrol(core: Core, password: str, source: FactorSource) -> Effects[Enrolment]:
    """Begin the enrolment of one-time codes."""
    keys = yield from keyrings.checked_password(core, password)

    def send(factor: Factor | None) -> Effects[Enrolment]:
        return core.session.send(requests.second_factors.enrol(keys.password, factor))

    return (yield from factors.prove(core.session, source, send))


def confirm(core: Core, code: str) -> Effects[list[str]]:
    """Confirm the enrolment by its first code; the recovery codes."""
    factor = factors.read_code(code)
    if "code" not in factor.sent:
        raise Invalid({"code": "must be a one-time code of six digits"})
    return (yield from core.session.send(requests.second_factors.confirm(factor.sent["code"])))


def disable(core: Core, password: str, source: FactorSource) -> Effects[None]:
    """Delete the one-time codes."""
    keys = yield from keyrings.checked_password(core, password)

    def send(factor: Factor | None) -> Effects[Any]:
        return core.session.send_or_done(requests.second_factors.disable(keys.password, factor))

    yield from factors.prove(core.session, source, send)


def new_recovery_codes(core: Core, password: str, source: FactorSource) -> Effects[list[str]]:
    """Replace the recovery codes by new ones."""
    keys = yield from keyrings.checked_password(core, password)

    def send(factor: Factor | None) -> Effects[list[str]]:
        return core.session.send(requests.second_factors.new_recovery_codes(keys.password, factor))

    return (yield from factors.prove(core.session, source, send))
