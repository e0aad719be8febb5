"""Example of a fault test: a server process is killed, and started again."""

from pathlib import Path

from tests.kit.network.responses import good
from tests.kit.people.settled import settle_in
from tests.kit.servers.process import Server


def test_a_killed_server_still_has_what_it_acknowledged(tmp_path: Path) -> None:
    """A 201 means that it is on disk."""
    server = Server(tmp_path).start()
    try:
        _, token, vault = settle_in(server)
        path = f"/vaults/{vault}/documents"
        document = good(server.connect(token).post(path, json={"collection": "notes", "data": "QUJD"}), 201)
        server.process.kill()
        server.process.wait()
        server.start()
        assert good(server.connect(token).get(f"{path}/{document['uid']}")) == document
    finally:
        server.abandon()
