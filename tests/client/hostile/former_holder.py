"""Somebody who has had the keys of an account, and works with the server: what the two can show its devices."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import httpx2

from strongroom import identifiers
from strongroom.client import Client
from strongroom.client.format import names, seal
from strongroom.client.format.content import to_content
from strongroom.client.format.encoding import short
from strongroom.client.operations import core
from tests.client.hostile.lying_proxy import Lie, Talk

Row = dict[str, Any]
NOTES = "notes"


class FormerHolder:
    """Has the keyring of before a rotation, and writes whatever the server lets it write: here, everything."""

    def __init__(self, url: str, email: str, password: str) -> None:
        with Client(url) as client:
            client.login(email, password)
            ring = client._core.keyring()
        [entry] = ring.vaults
        self.vault = entry.uid
        self._vault_keys = ring.vault_keys(entry)
        self.keys = names.collection_keys(self._vault_keys, NOTES, sealed=True)
        self.times: dict[str, int] = {}  # of the documents, as the server has them after the rotation
        self._http = httpx2.Client(base_url=url)

    def close(self) -> None:
        self._http.close()

    # What the server has, and does for them. The bearer is one of the owner's: the server would need none.

    def _ask(self, method: str, path: str, bearer: str, body: Any = None) -> Any:
        found = self._http.request(method, path, json=body, headers={"authorization": f"Bearer {bearer}"})
        assert found.status_code < 300, found.text
        return found.json()

    def rows(self, bearer: str) -> list[Row]:
        """Every row of the vault."""
        path = f"/vaults/{self.vault}/documents?since=0&includeDeleted=true"
        found: list[Row] = self._ask("GET", path, bearer)["documents"]
        return found

    def row(self, bearer: str, uid: str) -> Row:
        """One row."""
        [found] = [row for row in self.rows(bearer) if row["uid"] == uid]
        return found

    def vault_row(self, bearer: str) -> Row:
        """The vault as the server has it."""
        row: Row = self._ask("GET", f"/vault/{self.vault}", bearer)
        return row

    def plant(self, bearer: str, value: Any) -> str:
        """A new document under the keys of before, stored like any other."""
        uid = identifiers.new_uid(core.now())
        sealed = seal.seal_document(self.keys, uid, 1, value)
        body = {"uid": uid, "collection": self.keys.wire, "data": sealed.data, "hmac": sealed.hmac}
        self._ask("POST", f"/vaults/{self.vault}/documents", bearer, body)
        return uid

    def plant_blob(self, bearer: str, value: Any) -> None:
        """Another blob under the keys of before."""
        row = self.vault_row(bearer)
        parent = seal.parent_after_blob(row["data"])
        sealed = seal.seal_blob_content(
            self._vault_keys, row["name"], row["version"] + 1, to_content(value), parent=parent
        )
        body = {"data": sealed.data, "salt": sealed.salt, "version": row["version"]}
        self._ask("PUT", f"/vault/{self.vault}", bearer, body)

    # What they make for a server to show

    def changed(self, row: Row, value: Any, version: int) -> Row:
        """A later version of a document, which follows on a row of before the rotation."""
        return self._after(row, version, seal.DOCUMENT, value) | {"version": version}

    def notice(self, row: Row, version: int) -> Row:
        """The notice that it is deleted, not yet a tombstone."""
        return self._after(row, version, seal.DELETION, None) | {"version": version}

    def tombstone(self, row: Row, version: int) -> Row:
        """The deletion of it."""
        made = self._after(row, version - 1, seal.DELETION, None)
        return made | {"version": version, "deletedAt": made["updatedAt"]}

    def _after(self, row: Row, version: int, kind: int, value: Any) -> Row:
        made = seal.seal_content(
            self.keys, kind, row["uid"], version, to_content(value), parent=short(row["hmac"]), wire=row["collection"]
        )
        return row | {"data": made.data, "hmac": made.hmac, "updatedAt": self.times[row["uid"]]}

    def shows(self, vault: Row, rows: list[Row]) -> Lie:
        """The vault with these rows and no others, in every response."""
        ordered = sorted(rows, key=lambda row: row["updatedAt"])
        live = [row for row in ordered if row["deletedAt"] is None]
        last = max([vault["updatedAt"], *(row["updatedAt"] for row in rows)])
        shown = vault | {"updatedAt": last, "documents": len(live)}
        path = f"/vaults/{self.vault}/documents"

        def lie(talk: Talk) -> None:
            if talk.method != "GET" or talk.status >= 300:
                return
            if talk.path == "/vault":
                talk.say({"vaults": [shown]})
            elif talk.path == f"/vault/{self.vault}":
                talk.say(shown)
            elif talk.path == path:
                _list(talk, ordered, live)
            elif talk.path.startswith(path + "/") and talk.path.count("/") == path.count("/") + 1:
                found = [row for row in ordered if talk.path.endswith(row["uid"])]
                if found:
                    talk.say(found[0])

        return lie


def _list(talk: Talk, ordered: list[Row], live: list[Row]) -> None:
    """Respond to a list as an honest server would that has these rows."""
    query = parse_qs(talk.query)
    since = int(query.get("since", ["0"])[0])
    deleted = query.get("includeDeleted", ["true" if "since" in query else "false"])[0] == "true"
    if query.get("deleted") == ["only"]:
        chosen = [row for row in ordered if row["deletedAt"] is not None and row["data"]]
    else:
        chosen = ordered if deleted else live
    found = [row for row in chosen if row["updatedAt"] > since]
    next_ = found[-1]["updatedAt"] if found else since
    talk.say({"documents": found, "hasMore": False, "next": next_})
