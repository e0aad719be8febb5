"""Second factors with both clients: enrolment, login, and every change that asks for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from strongroom.client import (
    AsyncClient,
    Client,
    Invalid,
    InvalidCredentials,
    InvalidSecondFactor,
    Locked,
    Refusal,
    SecondFactorNotFound,
    SecondFactorRequired,
)
from strongroom.client.format import derive
from strongroom.client.format.derive import Floor
from strongroom.client.operations.factors import MOST_ASKED
from tests.kit.clients.devices import Devices
from tests.kit.clients.factory import ClientFactory
from tests.kit.clients.secrets import assert_hidden
from tests.kit.network.unreliable_network import world_of
from tests.kit.people.authenticator_app import AuthenticatorApp
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.people.one_time_codes import code, wrong_code
from tests.kit.servers.live_server import live_server
from tests.kit.servers.process import Server

NEW = "another horse, another staple"


class Owner:
    """Somebody whose account has one-time codes, with ten recovery codes at hand."""

    def __init__(self, clients: ClientFactory) -> None:
        self.clients = clients
        self.email = unique_email()
        self.client = clients.client()
        self.client.register(self.email, PASSWORD)
        self.app = AuthenticatorApp(self.client.second_factor.enrol(PASSWORD).secret)
        self.codes = self.client.second_factor.confirm(self.app.next())
        self.asked: list[Refusal] = []

    def ask(self, refusal: Refusal) -> str:
        """A function that is asked for a code, and gives a recovery code."""
        self.asked.append(refusal)
        return str(self.codes.pop())

    def opens(self, password: str) -> Any:
        client = self.clients.client()
        client.login(self.email, password, code=self.ask)
        return client


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """One for each test: the wrong codes of all would add up to the limit of an address."""
    with live_server(tmp_path / "server") as running:
        yield running


@pytest.fixture
def owner(clients: ClientFactory) -> Owner:
    return Owner(clients)


# Enrolment


@pytest.mark.both_languages
def test_an_enrolment_counts_when_it_is_confirmed(clients: ClientFactory) -> None:
    """Until then the password is enough; afterwards it is not, and open sessions stay open."""
    client, email = clients.client(), unique_email()
    client.register(email, PASSWORD)
    assert client.second_factor.status().totp_since is None
    enrolment = client.second_factor.enrol(PASSWORD)
    assert enrolment.uri.startswith("otpauth://totp/")
    assert enrolment.secret in enrolment.uri
    assert enrolment.secret not in repr(enrolment)
    clients.client().login(email, PASSWORD)
    app = AuthenticatorApp(enrolment.secret)
    with pytest.raises(InvalidSecondFactor):
        client.second_factor.confirm(app.wrong())
    codes = client.second_factor.confirm(app.next())
    assert len(set(codes)) == 10
    status = client.second_factor.status()
    assert status.totp_since is not None
    assert status.recovery_codes == 10
    assert client.vaults() == []
    with pytest.raises(SecondFactorRequired) as raised:
        clients.client().login(email, PASSWORD)
    assert raised.value.details is not None
    assert raised.value.details["methods"] == ["totp", "recovery_code"]
    assert "ticket" not in raised.value.details
    assert "`code`" in str(raised.value)


@pytest.mark.both_languages
def test_a_code_logs_in_and_unlocks(owner: Owner) -> None:
    """As a text, with or without a space; each counts once, and a recovery code stands in for one."""
    shown = owner.app.next()
    first = owner.clients.client()
    first.login(owner.email, PASSWORD, code=f" {shown[:3]} {shown[3:]} ")
    first.vault("v", create=True)
    second = owner.clients.client()
    with pytest.raises(InvalidSecondFactor):
        second.login(owner.email, PASSWORD, code=shown)
    with pytest.raises(Locked):
        second.vaults()
    recovery = owner.codes[0]
    second.login(owner.email, PASSWORD, code=recovery.lower().replace("-", " "))
    assert [vault.name for vault in second.vaults()] == ["v"]
    with pytest.raises(InvalidSecondFactor):
        second.login(owner.email, PASSWORD, code=recovery)
    assert first.second_factor.status().recovery_codes == 9


@pytest.mark.both_languages
def test_a_function_is_asked_only_if_a_code_is_needed(clients: ClientFactory) -> None:
    """An account without a second factor asks nobody; a wrong password asks nobody either."""
    plain, email = clients.client(), unique_email()
    plain.register(email, PASSWORD)

    def never(_refusal: Refusal) -> str:
        raise AssertionError("nobody is to be asked")

    clients.client().login(email, PASSWORD, code=never)
    with pytest.raises(InvalidCredentials):
        clients.client().login(email, "wrong horse battery", code=never)
    plain.change_password(PASSWORD, NEW, code="000000")
    owner = Owner(clients)
    with pytest.raises(InvalidCredentials):
        clients.client().login(owner.email, "wrong horse battery", code=never)


@pytest.mark.both_languages
def test_a_function_is_asked_again_and_told_why(owner: Owner) -> None:
    """First that a second factor is required, then that the code was wrong; three times at the most."""
    told: list[Refusal] = []

    def answers(*codes: str) -> Callable[[Refusal], str]:
        left = list(codes)

        def ask(refusal: Refusal) -> str:
            told.append(refusal)
            return left.pop(0)

        return ask

    wrong, client = owner.app.wrong(), owner.clients.client()
    client.login(owner.email, PASSWORD, code=answers(wrong, wrong, owner.codes[0]))
    assert [type(one) for one in told] == [SecondFactorRequired, InvalidSecondFactor, InvalidSecondFactor]
    assert client.vaults() == []
    told.clear()
    with pytest.raises(InvalidSecondFactor):
        owner.clients.client().login(owner.email, PASSWORD, code=answers(*[wrong] * 10))
    assert len(told) == MOST_ASKED
    for nonsense in ("", "x" * 101):
        with pytest.raises(Invalid):
            owner.clients.client().login(owner.email, PASSWORD, code=nonsense)
    with pytest.raises(Invalid):
        owner.clients.client().login(owner.email, PASSWORD, code=123456)


@pytest.mark.awaiting_only
def test_a_coroutine_function_may_be_asked(clients: ClientFactory) -> None:
    """By the asynchronous client, on its event loop."""
    owner = Owner(clients)

    async def ask(_refusal: Refusal) -> str:
        return str(owner.codes.pop())

    client = clients.client()
    client.login(owner.email, PASSWORD, code=ask)
    assert client.vaults() == []


@pytest.mark.both_languages
def test_new_recovery_codes_replace_all(owner: Owner) -> None:
    """Those of before are good no more."""
    old, client = owner.codes[0], owner.client
    with pytest.raises(SecondFactorRequired):
        client.second_factor.new_recovery_codes(PASSWORD)
    with pytest.raises(InvalidCredentials):
        client.second_factor.new_recovery_codes("wrong horse battery", code=owner.ask)
    assert owner.asked == []
    owner.codes = client.second_factor.new_recovery_codes(PASSWORD, code=owner.app.next())
    with pytest.raises(InvalidSecondFactor):
        owner.clients.client().login(owner.email, PASSWORD, code=old)
    owner.opens(PASSWORD)


@pytest.mark.both_languages
def test_one_time_codes_are_replaced_and_disabled(owner: Owner) -> None:
    """Another app replaces the first; without any, the password is enough again."""
    client = owner.client
    with pytest.raises(SecondFactorRequired):
        client.second_factor.enrol(PASSWORD)
    app = AuthenticatorApp(client.second_factor.enrol(PASSWORD, code=owner.ask).secret)
    owner.codes = client.second_factor.confirm(app.next())
    with pytest.raises(InvalidSecondFactor):
        owner.clients.client().login(owner.email, PASSWORD, code=owner.app.next())
    with pytest.raises(SecondFactorRequired):
        client.second_factor.disable(PASSWORD)
    client.second_factor.disable(PASSWORD, code=app.next())
    assert client.second_factor.status().recovery_codes == 0
    owner.clients.client().login(owner.email, PASSWORD)
    with pytest.raises(SecondFactorNotFound):
        client.second_factor.disable(PASSWORD)


# Changes that ask for it


def _attempts(owner: Owner) -> dict[str, Callable[..., Any]]:
    client = owner.client
    return {
        "password": lambda **more: client.change_password(PASSWORD, NEW, **more),
        "recovery key": lambda **more: client.make_recovery_key(PASSWORD, **more),
        "no recovery key": lambda **more: client.remove_recovery_key(PASSWORD, **more),
        "rotation": lambda **more: client.rotate_keys(PASSWORD, **more),
        "rotation with a password": lambda **more: client.rotate_keys(PASSWORD, new_password=NEW, **more),
        "deletion": lambda **more: client.delete_account(PASSWORD, **more),
    }


@pytest.mark.both_languages
@pytest.mark.parametrize(
    "what",
    ["password", "recovery key", "no recovery key", "rotation", "rotation with a password", "deletion"],
)
def test_a_change_of_the_account_asks_for_it(owner: Owner, what: str) -> None:
    """Without one nothing changes; with one it is done, and the account opens as it then should."""
    attempt = _attempts(owner)[what]
    owner.client.vault("v", create=True)
    version = owner.client._core.keyring().version
    for wrong in ({}, {"code": owner.app.wrong()}):
        with pytest.raises(InvalidSecondFactor if wrong else SecondFactorRequired):
            attempt(**wrong)
    assert owner.client._core.keyring().version == version
    attempt(code=owner.ask)
    assert len(owner.asked) == 1
    if what == "deletion":
        with pytest.raises(InvalidCredentials):
            owner.clients.client().login(owner.email, PASSWORD)
        return
    again = owner.opens(NEW if "password" in what else PASSWORD)
    assert [vault.name for vault in again.vaults()] == ["v"]


@pytest.mark.both_languages
def test_a_recovery_key_does_not_replace_the_second_factor(owner: Owner) -> None:
    """It replaces the password. The login and the new password ask for a factor each, so a single code is too few."""
    key = owner.client.make_recovery_key(PASSWORD, code=owner.ask)
    with pytest.raises(SecondFactorRequired):
        owner.clients.client().recover(owner.email, key, NEW)
    with pytest.raises(SecondFactorRequired, match="each code counts once"):
        owner.clients.client().recover(owner.email, key, NEW, code=owner.codes.pop())
    owner.asked.clear()
    owner.clients.client().recover(owner.email, key, NEW, code=owner.ask)
    assert len(owner.asked) == 2
    owner.opens(NEW)


@pytest.mark.both_languages
def test_a_rotation_with_a_recovery_key_asks_twice(owner: Owner) -> None:
    """Once for the keys and once for the new recovery key, which is made last."""
    old = owner.client.make_recovery_key(PASSWORD, code=owner.ask)
    owner.asked.clear()
    new = owner.client.rotate_keys(PASSWORD, code=owner.ask).recovery_key
    assert len(owner.asked) == 2
    assert new not in {None, old}


def test_a_replica_logs_in_with_the_second_factor(owner: Owner, tmp_path: Path) -> None:
    """The function is kept until the first request needs a session."""
    owner.client.vault("v", create=True)
    owner.client.open_replica(tmp_path / "replica").close()
    client = owner.clients.client()
    client.unlock(tmp_path / "replica", PASSWORD)
    with pytest.raises(SecondFactorRequired):
        client.vaults()
    client.unlock(tmp_path / "replica", PASSWORD, code=owner.ask)
    assert owner.asked == []
    assert [vault.name for vault in client.vaults()] == ["v"]
    assert len(owner.asked) == 1


# Where answers are lost, and where something fails


def _enrolled(devices: Devices) -> tuple[Client, list[str]]:
    client = devices.here.client
    secret = client.second_factor.enrol(PASSWORD).secret
    return client, client.second_factor.confirm(code(secret, devices.server.clock()))


@pytest.mark.parametrize("what", ["password", "rotation"])
def test_a_lost_answer_does_not_make_a_used_code_wrong(devices: Devices, what: str) -> None:
    """The server has stored the keyring and used the code up: sent again, the code is refused, and all is well."""
    client, codes = _enrolled(devices)
    after = client._core.keyring().version + (1 if what == "password" else 2)  # a rotation then raises the floor
    asked: list[Refusal] = []

    def ask(refusal: Refusal) -> str:
        asked.append(refusal)
        world_of(client).fates = ["lost"]  # the request with this code
        return codes.pop()

    if what == "password":
        client.change_password(PASSWORD, NEW, code=ask)
    else:
        client.rotate_keys(PASSWORD, code=ask)
    assert len(asked) == 1
    assert client._core.keyring().version == after
    again = devices.client()
    again.login(devices.crew.email, NEW if what == "password" else PASSWORD, code=codes.pop())
    assert again._core.keyring().version == after


def test_a_login_below_the_default_does_not_ask_twice(devices: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are lifted at login; where that needs another code, it waits for the next change of password."""
    _, codes = _enrolled(devices)
    monkeypatch.setattr(derive, "DEFAULT", Floor(65_536, 4))
    other = devices.here.client
    other.login(devices.crew.email, PASSWORD, code=codes.pop())
    assert other._core.descriptor is not None
    assert other._core.descriptor.passes == 3
    other.change_password(PASSWORD, NEW, code=codes.pop())
    assert other._core.descriptor.passes == 4


@pytest.mark.parametrize("how", ["text", "function"])
@pytest.mark.parametrize("what", ["login", "password", "rotation", "confirm", "disable"])
def test_a_refused_code_is_in_no_traceback(devices: Devices, what: str, how: str) -> None:
    """Neither the code nor the ticket nor the secret is in a local variable or in the error."""
    client = devices.here.client
    secret = client.second_factor.enrol(PASSWORD).secret
    wrong = wrong_code(secret, devices.server.clock())
    given: Any = wrong if how == "text" else lambda _refusal: wrong
    if what == "confirm":
        with pytest.raises(InvalidSecondFactor) as raised:
            client.second_factor.confirm(wrong)
    else:
        client.second_factor.confirm(code(secret, devices.server.clock()))
        if what == "login":
            client = devices.client()
        calls: dict[str, Callable[[], Any]] = {
            "login": lambda: client.login(devices.crew.email, PASSWORD, code=given),
            "password": lambda: client.change_password(PASSWORD, NEW, code=given),
            "rotation": lambda: client.rotate_keys(PASSWORD, code=given),
            "disable": lambda: client.second_factor.disable(PASSWORD, code=given),
        }
        with pytest.raises(InvalidSecondFactor) as raised:
            calls[what]()
    tickets = [request.body for request in world_of(client).sent if request.path.endswith("/second")]
    shown = [str(body).partition("srt_")[2][:43] for body in tickets]
    assert bool(shown) == (what == "login")
    assert_hidden(raised.value, [PASSWORD, wrong, secret, *shown])
    assert wrong not in repr(raised.value) + str(raised.value.details)


def test_both_clients_take_a_code() -> None:
    """Every method that changes who can open the account has it, and no secret is shown by a repr."""
    for kind in (Client, AsyncClient):
        for name in (
            "login",
            "recover",
            "unlock",
            "change_password",
            "make_recovery_key",
            "remove_recovery_key",
            "rotate_keys",
            "delete_account",
        ):
            assert "code" in getattr(kind, name).__annotations__, name
