"""An error names its cause: one sentence for each thing that can go wrong on the way, and a word for programs."""

from __future__ import annotations

import datetime as dt
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import httpcore2
import pytest

from strongroom import errors
from strongroom.client import AsyncClient, Client, Unreachable, WrongServer
from strongroom.client.format.recovery import RecoveryKey
from strongroom.client.net import connection
from strongroom.client.replica import Resolution
from tests.kit.clients.devices import Devices
from tests.kit.clients.factory import ClientFactory
from tests.kit.network.tls import Authority, Canned, ConnectProxy, TlsEndpoint, early, expired, page
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy and no certificates of the machine that runs the tests."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def listeners() -> Iterator[list[Any]]:
    """What is to be closed at the end."""
    made: list[Any] = []
    yield made
    for one in made:
        one.close()


def login_error(client: Any) -> Any:
    """The error of a login."""
    with pytest.raises(errors.Refusal) as raised:
        client.login(unique_email(), PASSWORD)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None
    return raised.value


def reason(error: Any) -> str:
    assert isinstance(error, Unreachable)
    assert isinstance(error, errors.Unavailable)
    assert error.details is not None
    assert error.details["reason"] == error.reason
    return error.reason


# The address


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("vault.example.com", "url must begin with https://, like https://vault.example.com."),
        ("localhost:3000", "url must begin with https://, like https://vault.example.com."),
        ("ftp://vault.example.com", "url must begin with https://"),
        ("", "url must begin with https://"),
        ("https://", "url names no host"),
        ("https:/vault.example.com", "url names no host"),
        ("https://a..b", "url names no host"),
        ("https://" + "a" * 64 + ".com", "url names no host"),
        ("https://vault example.com", "url names no host"),
        ("https://vault.example.com/a b", "url names no host"),
        ("https://vault.example.com\n", "url names no host"),
        ("https://vault.example.com:0", "url names no host"),
        ("https://vault.example.com:99999", "url has a host or a port that no address can have"),
        ("https://[::1", "url has a host or a port that no address can have"),
        ("https://me:secret@vault.example.com", "url must not hold a user name or a password"),
        ("https://vault.example.com?a=b", "url must not have a part after ? or #"),
        ("https://vault.example.com/#/login", "url must not have a part after ? or #"),
        ("http://vault.example.com", "url must begin with https://, or the connection can be read"),
        (None, "url must be a text like https://vault.example.com, not NoneType."),
        (b"https://vault.example.com", "url must be a text like https://vault.example.com, not bytes."),
    ],
)
def test_a_bad_address_is_told_at_once(url: Any, said: str) -> None:
    """Before anything is sent, in a sentence that says what an address looks like, without a password in it."""
    for kind in (Client, AsyncClient):
        with pytest.raises(errors.Invalid) as raised:
            kind(url)
        assert str(raised.value).startswith(said)
        assert "secret" not in str(raised.value)
        assert raised.value.details is not None
        assert list(raised.value.details["fields"]) == ["url"]


@pytest.mark.parametrize("url", ["https://vault.example.com", "https://vault.example.com/", "http://[::1]:3000/path/"])
def test_a_good_address_is_taken(url: str) -> None:
    """A slash at the end does not count."""
    with Client(url) as client:
        assert not client._driver.http._connection.url.endswith("/")


def test_a_misspelt_option_is_refused() -> None:
    """Also where a client is made from a token."""
    for make in (Client, AsyncClient):
        with pytest.raises(TypeError, match="time_out"):
            make.with_token("http://127.0.0.1:1", "srv_x", time_out=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("timeout", [0, -1, "30", None, float("nan"), True])
def test_a_bad_timeout_is_told(timeout: Any) -> None:
    """Before it makes every request fail."""
    with pytest.raises(errors.Invalid, match="timeout must be a number of seconds above 0"):
        Client("http://127.0.0.1:1", timeout=timeout)


# The network


def test_an_unknown_host(clients: ClientFactory) -> None:
    """A name that nobody knows."""
    error = login_error(clients.client("https://no-such-host.invalid", retries=0))
    assert reason(error) == "dns"
    assert str(error) == "No address is known for the host no-such-host.invalid; check its name and the network."
    assert error.details == {"reason": "dns", "host": "no-such-host.invalid", "port": 443}


def test_a_refused_connection(clients: ClientFactory) -> None:
    """Nothing listens there."""
    error = login_error(clients.client("http://127.0.0.1:9", retries=0))
    assert reason(error) == "refused"
    assert "The server 127.0.0.1:9 refused the connection" in str(error)


def test_a_server_that_does_not_answer(clients: ClientFactory, listeners: list[Any]) -> None:
    """It takes the connection, and then says nothing: the sentence has the seconds, and the option for more."""
    silent = socket.create_server(("127.0.0.1", 0))
    listeners.append(silent)
    error = login_error(clients.client(f"http://127.0.0.1:{silent.getsockname()[1]}", retries=0, timeout=0.2))
    assert reason(error) == "timeout"
    assert "did not answer within 0.2 seconds; pass a longer timeout=" in str(error)


def test_a_server_that_hangs_up(clients: ClientFactory, listeners: list[Any]) -> None:
    """It closes the connection, or sends what is no HTTP."""
    for sent in (b"", b"\x15\x03\x01\x00\x02\x02\x46", b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"):
        listeners.append(Canned(sent))
        error = login_error(clients.client(listeners[-1].url, retries=0))
        assert reason(error) == "disconnected"
        assert "If it expects TLS, its address begins with https://" in str(error)


def test_a_port_without_tls(clients: ClientFactory, server: Server) -> None:
    """An https address that leads to plain HTTP."""
    error = login_error(clients.client(f"https://127.0.0.1:{server.port}", retries=0))
    assert reason(error) == "not_tls"
    assert f"What answers at 127.0.0.1:{server.port} does not speak TLS; check the port." == str(error)


# Certificates


def endpoint(listeners: list[Any], server: Server, files: tuple[Path, Path]) -> str:
    made = TlsEndpoint(server.port, *files)
    listeners.append(made)
    return f"https://127.0.0.1:{made.port}"


@pytest.mark.parametrize(
    ("names", "how", "word", "said"),
    [
        (("127.0.0.1",), {"self_signed": True}, "certificate_self_signed", "is self-signed and not in"),
        (("127.0.0.1",), expired(), "certificate_expired", "has expired; its operator has to renew it"),
        (("127.0.0.1",), early(), "certificate_not_yet_valid", "is not valid yet; check this machine's clock"),
        (("vault.example.com",), {}, "certificate_name", "shown for 127.0.0.1 is for another name"),
    ],
)
def test_a_bad_certificate(
    clients: ClientFactory,
    server: Server,
    authority: Authority,
    listeners: list[Any],
    names: tuple[str, ...],
    how: dict[str, Any],
    word: str,
    said: str,
) -> None:
    """Each fault has its own sentence, and no request is repeated for it."""
    url = endpoint(listeners, server, authority.issue(*names, **how))
    error = login_error(clients.client(url, ca_file=authority.file))
    assert reason(error) == word
    assert said in str(error)


def test_a_private_authority(
    clients: ClientFactory, server: Server, authority: Authority, listeners: list[Any]
) -> None:
    """Without its certificate the sentence says how to trust it; with it everything works; another does not help."""
    url = endpoint(listeners, server, authority.issue("127.0.0.1"))
    error = login_error(clients.client(url))
    assert reason(error) == "certificate_untrusted"
    assert "signed by an authority that this machine does not trust" in str(error)
    assert "as ca_file=" in str(error)
    client = clients.client(url, ca_file=authority.file)
    client.register(unique_email(), PASSWORD)
    note = client.vault("v", create=True).collection("c").create("over TLS")
    assert note.value == "over TLS"
    other = Authority(authority.file.parent, "another authority")
    error = login_error(clients.client(url, ca_file=str(other.file)))
    assert reason(error) == "certificate_untrusted"
    assert "is not signed by one in another-authority.pem (ca_file)" in str(error)


def test_a_self_signed_certificate(
    clients: ClientFactory, server: Server, authority: Authority, listeners: list[Any]
) -> None:
    """The sentence says how to trust it; the certificate itself is what to trust."""
    files = authority.issue("127.0.0.1", self_signed=True)
    url = endpoint(listeners, server, files)
    error = login_error(clients.client(url))
    assert reason(error) == "certificate_self_signed"
    assert "pass the file as ca_file=" in str(error)
    clients.client(url, ca_file=files[0]).register(unique_email(), PASSWORD)


def test_only_the_given_authorities_are_trusted(
    server: Server, authority: Authority, listeners: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SSL_CERT_FILE counts for a client without `ca_file`, and not at all with `trust_env=False`."""
    url = endpoint(listeners, server, authority.issue("127.0.0.1"))
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    for place, name in ((httpcore2, "default_ssl_context"), (connection, "_machine_authorities")):
        monkeypatch.setattr(place, name, getattr(place, name).__wrapped__)  # without its cache
    with Client(url) as client:
        client.register(unique_email(), PASSWORD)
    with Client(url, trust_env=False) as client:
        assert reason(login_error(client)) == "certificate_untrusted"
    other = Authority(authority.file.parent, "another authority")
    with Client(url, ca_file=other.file) as client:
        assert reason(login_error(client)) == "certificate_untrusted"


def test_a_file_of_certificates_that_cannot_be_used(tmp_path: Path) -> None:
    """It is told when the client is made."""
    (tmp_path / "empty.pem").write_text("no certificate")
    for path, said in [
        (tmp_path / "missing.pem", "ca_file cannot be read: missing.pem: No such file or directory."),
        (tmp_path / "empty.pem", "ca_file must hold certificates in PEM form, and empty.pem holds none."),
        (tmp_path, "ca_file"),
    ]:
        with pytest.raises(errors.Invalid) as raised:
            Client("https://vault.example.com", ca_file=path)
        assert str(raised.value).startswith(said)


# Proxies


def test_a_proxy(clients: ClientFactory, server: Server, authority: Authority, listeners: list[Any]) -> None:
    """Everything goes through it, by CONNECT, so that it sees the host and nothing else; the certificate is checked."""
    url = endpoint(listeners, server, authority.issue("vault.example.com")).replace("127.0.0.1", "vault.example.com")
    proxy = ConnectProxy("user:a password")
    listeners.append(proxy)
    client = clients.client(url, ca_file=authority.file, proxy=f"http://user:a%20password@127.0.0.1:{proxy.port}")
    client.register(unique_email(), PASSWORD)
    assert set(proxy.seen) == {f"CONNECT {url.removeprefix('https://')} HTTP/1.1"}
    error = login_error(clients.client(url, proxy=f"http://user:a%20password@127.0.0.1:{proxy.port}"))
    assert reason(error) == "certificate_untrusted"


def test_a_proxy_that_refuses(clients: ClientFactory, listeners: list[Any]) -> None:
    """It wants a password, cannot connect, or is not there; no sentence shows the password that it was given."""
    listeners += [ConnectProxy("user:right"), ConnectProxy(status=403), ConnectProxy(status=502)]
    for port, word, said in [
        (listeners[0].port, "proxy_password", "asks for a password"),
        (listeners[1].port, "proxy", "did not connect to vault.example.com (403)"),
        (listeners[2].port, "proxy", "did not connect to vault.example.com (502)"),
        (9, "refused", "The proxy 127.0.0.1:9 refused the connection"),
    ]:
        client = clients.client("https://vault.example.com", proxy=f"http://user:wrong@127.0.0.1:{port}", retries=1)
        error = login_error(client)
        assert reason(error) == word
        assert said in str(error)
        assert error.details["proxy"] == f"127.0.0.1:{port}"
        assert "wrong" not in f"{error} {error.details} {client!r}"
    assert [len(one.seen) for one in listeners] == [1, 1, 2]


def test_the_proxy_of_the_environment(
    clients: ClientFactory,
    server: Server,
    authority: Authority,
    listeners: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is used for https; not where NO_PROXY or `trust_env=False` says so, and never for plain HTTP."""
    files = authority.issue("vault.example.com", "127.0.0.1")
    url = endpoint(listeners, server, files)
    proxy = ConnectProxy()
    listeners.append(proxy)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    clients.client(url, ca_file=authority.file).register(unique_email(), PASSWORD)
    used = len(proxy.seen)
    assert used > 0
    clients.client(url, ca_file=authority.file, trust_env=False).register(unique_email(), PASSWORD)
    clients.client(f"http://127.0.0.1:{server.port}").register(unique_email(), PASSWORD)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    clients.client(url, ca_file=authority.file).register(unique_email(), PASSWORD)
    assert len(proxy.seen) == used
    monkeypatch.setenv("HTTPS_PROXY", "socks5://127.0.0.1:1080")
    monkeypatch.setenv("https_proxy", "socks5://127.0.0.1:1080")
    with pytest.raises(errors.Invalid, match="HTTPS_PROXY must be the address of an HTTP proxy"):
        Client("https://vault.example.com")


@pytest.mark.parametrize("proxy", ["127.0.0.1:3128", "socks5://secret@127.0.0.1:1", "http://", "http://a:b:c", 5])
def test_a_bad_proxy_is_told_at_once(proxy: Any) -> None:
    """Without what it holds."""
    with pytest.raises(errors.Invalid, match="proxy must be the address of an HTTP proxy") as raised:
        Client("https://vault.example.com", proxy=proxy)
    assert "secret" not in str(raised.value)


def test_plain_http_goes_to_no_proxy_unasked() -> None:
    """A proxy could read it; `insecure=True` says that this is wanted."""
    with pytest.raises(errors.Invalid, match="proxy can read what is sent to an http:// address"):
        Client("http://127.0.0.1:3000", proxy="http://127.0.0.1:3128")
    Client("http://127.0.0.1:3000", proxy="http://127.0.0.1:3128", insecure=True).close()


# Something else than strongroom


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (page("404 Not Found"), "answered 404 with a web page"),
        (page("404 Not Found", '{"detail":"Not Found"}', "application/json"), "answered 404 with something else"),
        (page("404 Not Found", ""), "answered 404 with something else"),
        (page("200 OK"), "answered 200 with a web page"),
        (page("401 Unauthorized"), "answered 401 with a web page"),
        (page("403 Forbidden"), "answered 403 with a web page"),
        (page("405 Method Not Allowed"), "answered 405 with a web page"),
        (page("400 Bad Request", "The plain HTTP request was sent to HTTPS port", "text/plain"), "answered 400"),
        (b"HTTP/1.1 301 Moved\r\nlocation: https://vault.example.com/\r\ncontent-length: 0\r\n\r\n", "redirects"),
    ],
)
def test_another_program_at_the_address(
    clients: ClientFactory, listeners: list[Any], response: bytes, said: str
) -> None:
    """A wrong path, a login page of the network, another server: that is no tampering, and is asked for once."""
    listeners.append(Canned(response))
    error = login_error(clients.client(listeners[0].url + "/strongroom"))
    assert type(error) is WrongServer
    assert said in str(error)
    assert "Check the URL" in str(error)
    assert (error.details or {})["status"] >= 200
    assert listeners[0].requests == 1


def test_a_wrong_path_of_the_right_server(clients: ClientFactory, server: Server) -> None:
    """The server says that there is nothing; the client says that the address is wrong."""
    error = login_error(clients.client(f"http://127.0.0.1:{server.port}/docs"))
    assert type(error) is WrongServer
    assert "There is no login of strongroom at this address" in str(error)


def test_a_missing_document_is_not_a_missing_server(clients: ClientFactory, listeners: list[Any]) -> None:
    """The page of a proxy is not taken for the server's word that something is gone."""
    client = clients.person()
    vault = client.vault("v", create=True)
    notes = vault.collection("c")
    note = notes.create("x")
    listeners.append(Canned(page("404 Not Found")))
    real = client._driver.http._connection.url
    client._driver.http._connection.url = listeners[0].url
    for attempt in (lambda: notes.get(note.uid), vault.delete, lambda: client.vault("v")):
        with pytest.raises(WrongServer):
            attempt()
    client._driver.http._connection.url = real
    assert notes.get(note.uid).value == "x"


def test_the_page_of_a_proxy_whose_server_is_away(clients: ClientFactory, listeners: list[Any]) -> None:
    """It is asked again, and then the sentence names the proxy."""
    listeners.append(Canned(page("502 Bad Gateway")))
    error = login_error(clients.client(listeners[0].url, retries=1))
    assert reason(error) == "behind_proxy"
    assert "A proxy before the server answered 502" in str(error)
    assert listeners[0].requests == 2


# Too large


def test_what_is_too_large(clients: ClientFactory, own_server: Server) -> None:
    """The sentence has the size and the limit."""
    own_server.settings["MAX_BODY_BYTES"] = "20000"
    own_server.start()
    client = clients.client(f"http://127.0.0.1:{own_server.port}")
    client.register(unique_email(), PASSWORD)
    notes = client.vault("v", create=True).collection("c")
    with pytest.raises(errors.PayloadTooLarge) as raised:
        notes.create(b"x" * 30_000)
    details = raised.value.details or {}
    assert details["limit"] == 20_000
    assert details["size"] > 30_000
    assert f"has {details['size']:,} bytes, and this server takes at most 20,000" in str(raised.value)


def test_what_is_too_large_for_a_proxy(clients: ClientFactory, listeners: list[Any]) -> None:
    """It does not say its limit."""
    listeners.append(Canned(page("413 Payload Too Large")))
    error = login_error(clients.client(listeners[0].url))
    assert type(error) is errors.PayloadTooLarge
    assert "which is more than a proxy before the server takes" in str(error)


# What the caller gives


class Thing:
    """No value that JSON can hold."""


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Thing(), "value has a Thing, which JSON cannot hold."),
        ({"due": [1, dt.date(2026, 1, 1)]}, "value has a date at ['due'][1], which JSON cannot hold."),
        ({"tags": {"a"}}, "value has a set at ['tags'], which JSON cannot hold."),
        ({"a secret text!": Thing()}, "value has a Thing at ['…'], which JSON cannot hold."),
        ([float("nan")], "value has a number that is not finite at [0]."),
        ({"n": 2**60}, "value has an integer beyond 2^53 - 1 at ['n']; store it as a text."),
        ({1: "x"}, "value has a key that is not a text but int."),
        (["\ud800"], "value has a text that is not valid Unicode at [0]."),
        ({"\ud800": 1}, "value has a text that is not valid Unicode."),
        ({"file": b"x"}, "value has bytes at ['file'], which JSON cannot hold;"),
    ],
)
def test_a_value_that_is_no_json(clients: ClientFactory, tmp_path: Path, value: Any, said: str) -> None:
    """What it is and where, online and offline; never its contents."""
    client = clients.person()
    notes = client.vault("v", create=True).collection("c")
    replica = client.open_replica(tmp_path / "replica")
    replica.sync()
    for attempt in (notes.create, replica.vault("v").collection("c").create):
        with pytest.raises(errors.Invalid) as raised:
            attempt(value)
        assert str(raised.value).startswith(said)


def test_a_value_that_holds_itself(clients: ClientFactory) -> None:
    """It has no end."""
    value: list[Any] = []
    value.append(value)
    with pytest.raises(errors.Invalid, match="value is nested too deeply, or holds itself"):
        clients.person().vault("v", create=True).collection("c").create(value)


def test_values_of_the_wrong_type(clients: ClientFactory, tmp_path: Path) -> None:
    """A number, None or bytes in the place of a text is told, not turned into a text; so is what is no document."""
    client = clients.person()
    vault = client.vault("v", create=True)
    notes = vault.collection("c")
    note = notes.create("x")
    replica = client.open_replica(tmp_path / "replica")
    replica.sync()
    copies = replica.vault("v").collection("c")
    document = "document must be a Document, as get and create return it, not str."
    attempts: list[tuple[Callable[[], Any], str]] = [
        (lambda: client.login(None, PASSWORD), "email must be a text (str), not NoneType."),
        (lambda: client.login("a@example.com", None), "password must be a text (str), not NoneType."),
        (lambda: client.register("a@example.com", b"a long password"), "password must be a text (str), not bytes."),
        (lambda: client.change_password(PASSWORD, 12345678), "new must be a text (str), not int."),
        (lambda: client.recover("a@example.com", 5, PASSWORD), "recovery_key must be a text (str), not int."),
        (lambda: client.vault(5), "name must be a text (str), not int."),
        (lambda: client.vault(5, create=True), "name must be a text (str), not int."),
        (lambda: vault.collection(None), "collection must be a text (str), not NoneType."),
        (lambda: vault.rename(5), "name must be a text (str), not int."),
        (lambda: notes.get(5), "uid must be a text (str), not int."),
        (lambda: notes.create("x", uid=5), "uid must be a text (str), not int."),
        (lambda: notes.replace(note.uid, "y"), "document must be a Document, as get and create return it, not str."),
        (lambda: notes.delete(note.uid), "document must be a Document, as get and create return it, not str."),
        (lambda: clients.with_token(cast("str", None)), "token must be a text (str), not NoneType."),
        (lambda: notes.revive(note.uid), document),
        (lambda: notes.purge(note.uid), document),
        (lambda: notes.restore(note.uid, 1), document),
        (lambda: list(notes.delete_many([note.uid])), document),
        (lambda: list(notes.replace_many([(note.uid, "y")])), document),
        (lambda: list(notes.replace_many([note])), "changes must be pairs of a Document and its new value."),
        (lambda: copies.replace(note.uid, "y"), document),
        (lambda: copies.delete(note.uid), document),
        (lambda: list(notes.since("foo")), "cursor must be an integer (int), not str."),
        (lambda: list(notes.since(None)), "cursor must be an integer (int), not NoneType."),
        (lambda: list(vault.since(None)), "cursor must be an integer (int), not NoneType."),
        (lambda: list(vault.since(cursor=True)), "cursor must be an integer (int), not bool."),
        (lambda: list(vault.since(-1)), "cursor must be 0, or the cursor of earlier changes."),
        (lambda: notes.get_version(note.uid, "1"), "version must be an integer (int), not str."),
        (lambda: notes.restore(note, None), "version must be an integer (int), not NoneType."),
        (lambda: vault.blob.get_version("1"), "version must be an integer (int), not str."),
        (lambda: client.end_session(5), "session_id must be a text (str), not int."),
        (lambda: client.revoke_api_key(None), "uid must be a text (str), not NoneType."),
        (lambda: clients.client(device_name=5), "device_name must be a text (str), not int."),
        (lambda: replica.sync("mine"), "resolver must be a function, such as keep_mine, not str."),
    ]
    for attempt, said in attempts:
        with pytest.raises(errors.Invalid) as raised:
            attempt()
        assert str(raised.value) == said


@pytest.mark.parametrize("given", ["mine", None, Resolution("other")])
def test_a_resolver_that_does_not_decide(devices: Devices, given: Any) -> None:
    """It returns no resolution: that is told, by `sync` and by `resolve`, and the conflict stays."""
    note = devices.notes(devices.here).create("base")
    devices.sync()
    devices.notes(devices.here).replace(devices.get(devices.here, note.uid), "mine")
    devices.replace_there(note.uid, "theirs")
    replica = devices.here.replica
    [conflict] = replica.sync().conflicts
    for attempt in (lambda: replica.sync(lambda _: given), lambda: conflict.resolve(lambda _: given)):
        with pytest.raises(errors.Invalid, match="resolver must return what keep_mine"):
            attempt()
    with pytest.raises(errors.Invalid, match="resolver must be a function, such as keep_mine, not"):
        conflict.resolve(given)
    assert len(replica.conflicts()) == 1


# A recovery key


def test_a_typo_in_a_recovery_key() -> None:
    """The group is told where the checksum, or the form, shows it; the key itself is not."""
    printed = RecoveryKey(bytes(range(20))).printed()
    groups = printed.split("-")
    swapped = "-".join([*groups[:5], groups[5][1] + groups[5][0] + groups[5][2:], *groups[6:]])
    other = "-".join([*groups[:3], ("A" if groups[3][0] != "A" else "B") + groups[3][1:], *groups[4:]])
    twice = other.replace(groups[7], groups[7][::-1])
    for typed, said in [
        (printed.lower(), ""),
        (other, "has a typo, most likely in group 3;"),
        (swapped, "has a typo, most likely in group 5;"),
        (twice, "has more than one typo, or was changed;"),
        (printed.replace(groups[4], "U" + groups[4][1:]), "has a typo: sign 1 of group 4 is in no recovery key."),
        (printed.replace(groups[4], groups[4][1:]), "has a typo: group 4 has 3 signs instead of 4."),
        (printed.replace(f"-{groups[4]}", ""), "must be SR2 and nine groups of four letters or digits; it has 32"),
        (printed.removeprefix("SR2-"), "must begin with SR2."),
        ("srv_abc", "is a token; use it with with_token."),
        ("", "must begin with SR2."),
    ]:
        if not said:
            assert RecoveryKey.read(typed).printed() == printed
            continue
        with pytest.raises(errors.Invalid) as raised:
            RecoveryKey.read(typed)
        assert str(raised.value).startswith(f"recovery_key {said}"), typed
        assert not any(group in str(raised.value) for group in groups[1:])


def test_every_single_typo_is_found() -> None:
    """One sign, or two neighbours of a group that changed places: the group is right each time that one is named."""
    printed = RecoveryKey(bytes(range(100, 120))).printed()
    named = 0
    places = [place for place in range(4, len(printed)) if printed[place] != "-"]
    for number, place in enumerate(places):
        wrong = "7" if printed[place] != "7" else "8"
        with pytest.raises(errors.Invalid) as raised:
            RecoveryKey.read(printed[:place] + wrong + printed[place + 1 :])
        if "most likely" in str(raised.value):
            named += 1
            assert f"in group {number // 4 + 1};" in str(raised.value)
    assert named > 30


# Files


def test_an_export_replaces_no_other_file(clients: ClientFactory, tmp_path: Path) -> None:
    """An empty file and an earlier export of the same kind are replaced; everything else is told, and stays."""
    client = clients.person()
    vault = client.vault('a "name" \\ of ours', create=True)
    vault.blob.put("x" * 9_000)
    exports = {"account": client.export_account, "plaintext": client.export_plaintext}
    for name, export in exports.items():
        (tmp_path / name).touch()
        for _ in range(2):
            export(tmp_path / name)
    (tmp_path / "text").write_text("years of work")
    (tmp_path / "link").symlink_to(tmp_path / "text")
    (tmp_path / "folder").mkdir()
    before = {name: (tmp_path / name).read_bytes() for name in ("text", "account", "plaintext")}
    for name, export in exports.items():
        other = "plaintext" if name == "account" else "account"
        for path, said in [
            ("text", "path is not an export of this kind: text is another file. It was not changed."),
            (other, f"path is not an export of this kind: {other} is another file. It was not changed."),
            ("link", "path is a symbolic link; name the file itself: link."),
            ("folder", "path is not a file: folder."),
            ("none/x", "path cannot be written: x: No such file or directory."),
        ]:
            with pytest.raises(errors.Invalid) as raised:
                export(tmp_path / path)
            assert str(raised.value) == said
    assert before == {name: (tmp_path / name).read_bytes() for name in before}
    assert not list(tmp_path.glob("*.part"))


# Replicas


def test_a_file_that_is_no_replica(clients: ClientFactory, tmp_path: Path) -> None:
    """A folder, a missing folder, a link, a text, another program's database, a damaged one, a newer one."""
    import apsw

    client = clients.person()
    (tmp_path / "text").write_text("a text that is long enough to be no database" * 9)
    (tmp_path / "link").symlink_to(tmp_path / "text")
    for name, statement in [("other", "CREATE TABLE facts (x)"), ("newer", "UPDATE facts SET value = ?")]:
        if name == "newer":
            client.open_replica(tmp_path / name).close()
        db = apsw.Connection(str(tmp_path / name))
        db.execute(statement, ("strongroom replica 99",) if "?" in statement else ())
        db.close()
    client.open_replica(tmp_path / "damaged").close()
    raw = bytearray((tmp_path / "damaged").read_bytes())
    raw[100:4096] = b"\xff" * (4096 - 100)
    (tmp_path / "damaged").write_bytes(raw)
    before = {name: (tmp_path / name).read_bytes() for name in ("text", "other")}
    for path, said in [
        (tmp_path, f"path is a folder: {tmp_path.name}; a replica is a file."),
        (tmp_path / "none" / "x", "path is in a folder that does not exist"),
        (tmp_path / "link", "path is a symbolic link: link; name the file itself."),
        (tmp_path / "text", "path is not a replica: text is another file. It was not changed."),
        (tmp_path / "other", "path is not a replica: other is a database of another program. It was not changed."),
        (tmp_path / "damaged", "path is a replica that is damaged: damaged. Move it away, open a new one and sync;"),
        (tmp_path / "newer", "path is a replica of a newer format: newer. Update this program."),
    ]:
        with pytest.raises(errors.Invalid) as raised:
            client.open_replica(path)
        assert str(raised.value).startswith(said)
    assert before == {name: (tmp_path / name).read_bytes() for name in before}
