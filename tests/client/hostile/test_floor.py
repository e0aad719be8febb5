"""The floor: after a rotation with a new password, whoever has had the keys and works with the server shows nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from strongroom.client import RolledBack, Tampered
from strongroom.client.format import seal
from strongroom.errors import InsufficientScope
from tests.client.hostile.former_holder import NOTES, FormerHolder, Row
from tests.client.hostile.lying_proxy import Liar, Lie, Talk
from tests.client.moving_accounts import url_of
from tests.kit.clients.factory import ClientFactory
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server

NEW = "another password"
PAY, KEEP = {"pay to": "me"}, "never delete this"


def bearer(client: Any) -> str:
    access: str = client._core.session._access
    return access


class Scene:
    """The owner's device, which rotates; one that is lied to, and has seen everything before; and a former holder."""

    def __init__(self, clients: ClientFactory, liar: Liar, server: Server, home: Path) -> None:
        self._clients, self.liar, self.home = clients, liar, home
        self.email = unique_email()
        self.owner = clients.client()
        self.owner.register(self.email, PASSWORD)
        vault = self.owner.vault("v", create=True)
        notes = vault.collection(NOTES)
        self.pay, self.keep = notes.create(PAY).uid, notes.create(KEEP).uid
        self.gone = notes.delete(notes.create("unwanted")).uid
        vault.blob.put("the blob")
        self.victim = clients.client(liar.url)
        self.victim.login(self.email, PASSWORD)
        self.former = FormerHolder(url_of(server), self.email, PASSWORD)
        with self.replica() as replica:
            replica.sync()
        assert len(list(self.victim.vault("v").collection(NOTES))) == 2
        token = bearer(self.owner)
        self.before, self.vault_before = self.former.rows(token), self.former.vault_row(token)

    def rotate(self) -> Any:
        """The owner rotates; the other device logs in again, with the new password."""
        rotation = self.owner.rotate_keys(PASSWORD, new_password=NEW)
        self.victim.login(self.email, NEW)
        self.former.times = {row["uid"]: row["updatedAt"] for row in self.now()}
        return rotation

    def replica(self, client: Any = None, name: str = "replica") -> closing[Any]:
        """The replica of the device that is lied to, or of another one."""
        return closing((client or self.victim).open_replica(self.home / name))

    def fresh(self) -> Any:
        """A device that logs in for the first time, through the liar."""
        client = self._clients.client(self.liar.url)
        client.login(self.email, NEW)
        return client

    def old(self, uid: str) -> Row:
        [row] = [row for row in self.before if row["uid"] == uid]
        return row

    def now(self) -> list[Row]:
        return self.former.rows(bearer(self.owner))

    def with_(self, *rows: Row) -> Lie:
        """What the server has now, with these rows in the place of its own."""
        uids = {row["uid"] for row in rows}
        kept = [row for row in self.now() if row["uid"] not in uids]
        return self.former.shows(self.former.vault_row(bearer(self.owner)), [*kept, *rows])

    def held_back(self, *rows: Row) -> Lie:
        """Everything as it was before the rotation, with these rows in the place of their own."""
        uids = {row["uid"] for row in rows}
        kept = [row for row in self.before if row["uid"] not in uids]
        return self.former.shows(self.vault_before, [*kept, *rows])


@pytest.fixture
def scene(clients: ClientFactory, liar: Liar, server: Server, tmp_path: Path) -> Iterator[Scene]:
    """A scene of clients of each kind."""
    made = Scene(clients, liar, server, tmp_path)
    yield made
    made.former.close()


def values(place: Any) -> list[Any]:
    return [note.value for note in place.collection(NOTES)]


LIES: dict[str, Callable[[Scene], Lie]] = {
    "what was encrypted again is held back": lambda scene: scene.held_back(),
    "one document is held back": lambda scene: scene.with_(scene.old(scene.pay)),
    "a change under the keys of before": lambda scene: scene.held_back(
        scene.former.changed(scene.old(scene.pay), {"pay to": "XX"}, 2)
    ),
    "a later change under the keys of before": lambda scene: scene.with_(
        scene.former.changed(scene.old(scene.pay), {"pay to": "XX"}, 3)
    ),
    "a notice under the keys of before": lambda scene: scene.with_(scene.former.notice(scene.old(scene.keep), 3)),
}


@pytest.mark.both_languages
@pytest.mark.parametrize("lie", LIES)
def test_a_replica_takes_nothing_under_the_keys_of_before(scene: Scene, lie: str) -> None:
    """It has seen what was there before the rotation, and shows that still; the sync ends with a sentence."""
    scene.rotate()
    scene.liar.lie = LIES[lie](scene)
    with scene.replica() as replica:
        with pytest.raises((RolledBack, Tampered)):
            replica.sync()
        assert sorted(map(str, values(replica.vault("v")))) == sorted(map(str, [PAY, KEEP]))
        scene.liar.lie = None
        report = replica.sync()
        assert (report.conflicts, report.gaps) == ([], 0)
        assert sorted(map(str, values(replica.vault("v")))) == sorted(map(str, [PAY, KEEP]))
        assert replica.vault("v").blob() == "the blob"


@pytest.mark.both_languages
@pytest.mark.parametrize("lie", LIES)
def test_a_client_takes_nothing_under_the_keys_of_before(scene: Scene, lie: str) -> None:
    """One that has seen what was there, and one that logs in for the first time."""
    scene.rotate()
    scene.liar.lie = LIES[lie](scene)
    for client in (scene.victim, scene.fresh()):
        with pytest.raises((RolledBack, Tampered)):
            values(client.vault("v"))
    scene.liar.lie = None
    for client in (scene.victim, scene.fresh()):
        assert sorted(map(str, values(client.vault("v")))) == sorted(map(str, [PAY, KEEP]))


@pytest.mark.both_languages
def test_a_deletion_under_the_keys_of_before_deletes_nothing(scene: Scene) -> None:
    """For a replica it is a conflict, which a person decides; a client that has seen the document refuses it."""
    scene.rotate()
    scene.liar.lie = scene.with_(scene.former.tombstone(scene.old(scene.keep), 4))
    with pytest.raises(Tampered):
        values(scene.victim.vault("v"))
    with scene.replica() as replica:
        [conflict] = replica.sync().conflicts
        assert (conflict.mine.value, conflict.theirs.deleted) == (KEEP, True)
        assert KEEP in values(replica.vault("v"))


@pytest.mark.both_languages
def test_a_deletion_of_before_the_rotation_is_one(scene: Scene) -> None:
    """The trash is encrypted again: a device that was away meets the deletion as any other, and can revive it."""
    away = scene._clients.client()
    away.login(scene.email, PASSWORD)
    with scene.replica(away, "away") as replica:
        replica.sync()
    notes = scene.owner.vault("v").collection(NOTES)
    notes.delete(notes.get(scene.keep))
    scene.rotate()
    away.login(scene.email, NEW)
    assert values(away.vault("v")) == [PAY]
    with scene.replica(away, "away") as replica:
        report = replica.sync()
        assert (report.conflicts, report.gaps) == ([], 0)
        assert values(replica.vault("v")) == [PAY]
    fresh = scene.fresh()
    assert sorted(one.value for one in fresh.vault("v").trash) == [KEEP, "unwanted"]
    revived = next(one for one in fresh.vault("v").trash if one.uid == scene.keep)
    assert fresh.vault("v").collection(NOTES).replace(revived, KEEP).value == KEEP
    assert {row["uid"]: seal.read_proof(row["hmac"]).generation for row in scene.now()} == dict.fromkeys(
        (scene.pay, scene.keep, scene.gone), 2
    )


@pytest.mark.both_languages
def test_what_is_planted_after_a_rotation_is_refused_and_never_encrypted_again(scene: Scene) -> None:
    """By a device that has seen the rotation, by a fresh one, and by the next rotation."""
    assert list(scene.rotate().unseen) == []
    planted = scene.former.plant(bearer(scene.owner), "planted")
    for client in (scene.owner, scene.victim, scene.fresh()):
        with pytest.raises(Tampered):
            values(client.vault("v"))
    with scene.replica() as replica, pytest.raises(Tampered):
        replica.sync()
    [left] = scene.owner.rotate_keys(NEW).unseen
    assert (left.uid, left.value) == (planted, "planted")
    assert [one.uid for one in scene.owner.finish_rotation().unseen] == [planted]
    generations = {row["uid"]: seal.read_proof(row["hmac"]).generation for row in scene.now()}
    assert generations == {scene.pay: 3, scene.keep: 3, scene.gone: 3, planted: 1}
    again = scene._clients.client()
    again.login(scene.email, NEW)
    with pytest.raises(Tampered):
        values(again.vault("v"))
    assert [one.uid for one in again.rotate_keys(NEW).unseen] == [planted]  # a process that has read nothing


@pytest.mark.both_languages
def test_what_is_planted_during_a_rotation_is_left(scene: Scene) -> None:
    """The rotation was interrupted: the keys are new, and nothing is encrypted again. Then somebody plants."""

    def interrupt(talk: Talk) -> None:
        if talk.path.endswith("/batch"):
            talk.refuse(403, "insufficient_scope")

    scene.liar.lie = interrupt
    with pytest.raises(InsufficientScope):
        scene.victim.rotate_keys(PASSWORD, new_password=NEW)
    scene.liar.lie = None
    token = bearer(scene.victim)
    planted = scene.former.plant(token, "planted")
    [left] = scene.victim.finish_rotation().unseen
    assert left.uid == planted
    generations = {row["uid"]: seal.read_proof(row["hmac"]).generation for row in scene.former.rows(token)}
    assert (generations[scene.pay], generations[scene.keep], generations[planted]) == (2, 2, 1)
    assert [one.uid for one in scene.victim.rotate_keys(NEW).unseen] == [planted]
    assert [one.uid for one in scene.fresh().finish_rotation().unseen] == [planted]
    without = [row for row in scene.former.rows(token) if row["uid"] != planted]
    scene.liar.lie = scene.former.shows(scene.former.vault_row(token), without)
    assert sorted(map(str, values(scene.victim.vault("v")))) == sorted(map(str, [PAY, KEEP]))  # it is not missed
    scene.liar.lie = None
    assert list(scene.victim.finish_rotation(accept=[left]).unseen) == []  # a person says that it is theirs
    assert "planted" in values(scene.fresh().vault("v"))
    scene.former.plant(token, "planted later")
    with pytest.raises(Tampered):
        values(scene.fresh().vault("v"))


@pytest.mark.both_languages
def test_a_blob_under_the_keys_of_before_is_refused(scene: Scene) -> None:
    """One that was held back, and one that follows on what the server has; by a replica and by clients."""
    scene.rotate()
    honest = scene.former.vault_row(bearer(scene.owner))
    blob = {name: scene.vault_before[name] for name in ("data", "salt", "name", "version")}
    scene.liar.lie = scene.former.shows(honest | blob, scene.now())
    for client in (scene.victim, scene.fresh()):
        with pytest.raises((RolledBack, Tampered)):
            client.vault("v").blob.get()
    with scene.replica() as replica:
        with pytest.raises((RolledBack, Tampered)):
            replica.sync()
        assert replica.vault("v").blob() == "the blob"
    scene.liar.lie = None
    scene.former.plant_blob(bearer(scene.owner), "planted")
    for client in (scene.victim, scene.fresh()):
        with pytest.raises(Tampered):
            client.vault("v").blob.get()


@pytest.mark.both_languages
def test_a_blob_that_is_planted_during_a_rotation_is_left(scene: Scene) -> None:
    """Asking a second time is no belief either; a person's word is, for exactly what was shown."""

    def interrupt(talk: Talk) -> None:
        if talk.method == "PUT" and talk.path == f"/vault/{scene.former.vault}":
            talk.refuse(403, "insufficient_scope")

    scene.liar.lie = interrupt
    with pytest.raises(InsufficientScope):
        scene.victim.rotate_keys(PASSWORD, new_password=NEW)
    scene.liar.lie = None
    scene.former.plant_blob(bearer(scene.victim), "planted")
    for _ in range(2):
        [left] = scene.victim.finish_rotation().unseen
        assert left.value == "planted"
    assert list(scene.victim.finish_rotation(accept=[left]).unseen) == []
    blob = scene.fresh().vault("v").blob.get()
    assert blob is not None
    assert blob.value == "planted"


@pytest.mark.both_languages
def test_a_token_has_the_floor(scene: Scene) -> None:
    """A machine with a token that was made after the rotation believes nothing under the keys of before."""
    scene.rotate()
    vault = scene.owner.vault("v")
    tokens = [vault.token("vault"), vault.collection(NOTES).token("collection")]
    scene.former.plant(bearer(scene.owner), "planted")
    whole, part = (scene._clients.with_token(token) for token in tokens)
    with pytest.raises(Tampered):
        values(whole.vault())
    with pytest.raises(Tampered):
        list(part.collection())
