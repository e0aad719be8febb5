"""Nodes are restarted behind real proxies, with the settings of docs/operating.md, while people read and write."""

from __future__ import annotations

import itertools
import re
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.kit.documents import fences, sections, text_of
from tests.kit.network.ports import free_port
from tests.kit.requirements import needed
from tests.kit.servers.postgres import postgres
from tests.kit.servers.process import launch
from tests.kit.waiting import until
from tests.proxies.processes import HOST, settings, started

PASSWORD = "correct horse"
CLIENTS = 6
RESTARTS = 1  # of each node


METRICS_TOKEN = "a-token-of-the-restarts"


class Node:
    """A node that can be restarted on its port."""

    def __init__(self, home: Path, database: str, drain: int) -> None:
        home.mkdir()
        self.home, self.port = home, free_port()
        self._settings = {
            "DATABASE_URL": database,
            "JWT_SECRET": "a secret of the restarts, 32 bytes long",
            "PORT": str(self.port),
            "DRAIN_SECONDS": str(drain),
            "LOG_LEVEL": "warning",
            "METRICS_TOKEN": METRICS_TOKEN,
        }
        self.process: subprocess.Popen[bytes]

    def start(self) -> None:
        self.process = launch(self.home, self._settings)
        until(lambda: "docs" in (self.home / "stdout").read_text(), "a node's start")
        until(self._is_ready, "a node's readiness")  # a proxy that asks earlier takes the node for down

    def _is_ready(self) -> bool:
        return httpx2.get(f"http://127.0.0.1:{self.port}/ready", trust_env=False).status_code == 200

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(40) == 0, (self.home / "stderr").read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(20)


class Load:
    """People who read and write through a proxy, each on connections that are kept, until they are told to stop."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self._stop = threading.Event()
        self.found: Counter[object] = Counter()
        with self._client() as http:
            made = http.post("/auth/email/register", json={"email": "ada@example.com", "password": PASSWORD})
            self._authority = {"authorization": f"Bearer {made.json()['accessToken']}"}
            vault = http.post("/vault", json={"name": "v"}, headers=self._authority).json()
        self._documents = f"/vaults/{vault['uid']}/documents"
        self._threads = [threading.Thread(target=self._work) for _ in range(CLIENTS)]

    def _client(self) -> httpx2.Client:
        return httpx2.Client(base_url=self._url, headers={"host": HOST}, timeout=60, trust_env=False)

    def _work(self) -> None:
        with self._client() as http:
            for number in itertools.count():
                if self._stop.is_set():
                    return
                try:
                    if number % 2:
                        answer = http.get("/vault", headers=self._authority)
                    else:
                        body = {"collection": "c", "data": "AAAA"}
                        answer = http.post(self._documents, json=body, headers=self._authority)
                    self.found[answer.status_code] += 1
                except httpx2.TransportError as error:
                    self.found[type(error).__name__] += 1

    def until_more(self, requests: int) -> None:
        wanted = self.found.total() + requests
        until(lambda: self.found.total() > wanted, "more requests", 60)

    @contextmanager
    def running(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join(60)


def shown(mark: str) -> str:
    """The example of the page that has this in it."""
    page = sections(text_of("docs/operating.md"), 2)["High availability"]
    [text] = [text for _, text in fences(page) if mark in text]
    return text


def nodes_of(text: str, nodes: list[Node]) -> str:
    for number, node in enumerate(nodes, 1):
        assert f"10.0.0.{number}:3000" in text
        text = text.replace(f"10.0.0.{number}:3000", f"127.0.0.1:{node.port}")
    return text


def proxy_settings(name: str, port: int, nodes: list[Node]) -> str:
    """The proxy of the section on proxies, with the nodes as the section on restarts has them."""
    if name == "caddy":
        return nodes_of(shown("health_uri"), nodes).replace(f"{HOST} {{", f"http://{HOST}:{port} {{", 1)
    whole = settings(name, port, 1)
    mark = r"^backend strongroom\n(?: .*\n)*" if name == "haproxy" else r"^upstream strongroom \{\n(?: .*\n)*\}\n"
    part = nodes_of(shown("httpchk" if name == "haproxy" else "max_fails"), nodes)
    text, times = re.subn(mark, part, whole, flags=re.MULTILINE)
    assert times == 1
    return text


@pytest.mark.alone  # a node that does not answer a poll within two seconds counts as down, as it should
@pytest.mark.parametrize(("name", "drain"), [("haproxy", 5), ("nginx", 0), ("caddy", 5)])
def test_nodes_restart_one_after_the_other_and_no_request_fails(name: str, drain: int, tmp_path: Path) -> None:
    """Readers and writers on kept connections; each node is restarted, and ready again before the next one goes."""
    program = needed(name)
    database = postgres().fresh()
    nodes = [Node(tmp_path / f"node{one}", database, drain) for one in range(2)]
    port = free_port()
    with ExitStack() as stack:
        for node in nodes:
            stack.callback(node.kill)
            node.start()
        stack.enter_context(started(name, program, tmp_path / name, proxy_settings(name, port, nodes), port))
        load = Load(port)
        with load.running():
            for _ in range(RESTARTS):
                for node in nodes:
                    load.until_more(200)
                    node.stop()
                    node.start()
                    if name != "nginx":
                        until_used_again(node)
    assert set(load.found) == {200, 201}, load.found
    assert load.found.total() > 400


def until_used_again(node: Node) -> None:
    """The proxy has seen that the node is ready: it sends requests for documents to it again."""
    headers = {"authorization": f"Bearer {METRICS_TOKEN}"}
    with httpx2.Client(base_url=f"http://127.0.0.1:{node.port}", trust_env=False, headers=headers) as http:
        until(lambda: "{vaultUid}/documents" in http.get("/metrics").text, "requests through the proxy", 60)
