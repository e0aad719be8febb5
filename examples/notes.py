"""Notes on two devices, offline and back. Run it as: python examples/notes.py http://127.0.0.1:3000.

Everything that a small app does with strongroom.client, from top to bottom. It registers a new account each time.
"""

from __future__ import annotations

import secrets
import sys
import tempfile
from pathlib import Path

from strongroom.client import Client, Conflict, DocumentConflict, InsufficientScope, Resolution, keep_mine, merged


def merge(conflict: Conflict) -> Resolution:
    """Decide a conflict: lines that both devices added are kept, in the order of the other one first."""
    mine, theirs = conflict.mine, conflict.theirs
    if mine.deleted or theirs.deleted or conflict.base is None:
        return keep_mine(conflict)
    known = set(theirs.value["lines"])
    return merged({**theirs.value, "lines": theirs.value["lines"] + [x for x in mine.value["lines"] if x not in known]})


def main(url: str) -> None:
    """The story."""
    email, password = f"ada-{secrets.token_hex(4)}@example.com", "correct horse battery staple"
    with Client(url) as laptop, Client(url) as phone, tempfile.TemporaryDirectory() as folder:
        # An account. The server sees neither the password nor a key.
        laptop.register(email, password)
        print("Print this and keep it:", laptop.make_recovery_key(password)[:8] + "…")

        # A vault, a collection, a document: sealed before they leave, names included.
        notes = laptop.vault("personal", create=True).collection("notes")
        note = notes.create({"title": "Shopping", "lines": ["tea"]})
        photo = laptop.vault("personal").collection("photos").create(b"\x89PNG and so on")
        print("Kept:", note.value["title"], "and", len(photo.value), "bytes")

        # Another device. Whoever writes on top of something that it has not seen is told.
        phone.login(email, password)
        seen = phone.vault("personal").collection("notes").get(note.uid)
        note = notes.replace(note, {"title": "Shopping", "lines": ["tea", "milk"]})
        try:
            phone.vault("personal").collection("notes").replace(seen, {"title": "Shopping", "lines": []})
        except DocumentConflict as conflict:
            print("The phone has to look again:", conflict)

        # Both go offline, and write. What they write is on their disks, sealed.
        with laptop.open_replica(Path(folder) / "laptop") as here, phone.open_replica(Path(folder) / "phone") as there:
            for replica in (here, there):
                replica.sync()
                page = replica.vault("personal").collection("notes")
                found = page.get(note.uid)
                line = "bread" if replica is here else "jam"
                page.replace(found, {**found.value, "lines": [*found.value["lines"], line]})
            print("Waiting to be sent:", here.pending + there.pending)

            # Back online. The second one to sync meets a conflict, and decides it.
            here.sync()
            report = there.sync(merge)
            here.sync()
            print("Sent by the phone:", report.pushed, "and undecided:", len(report.conflicts))
            print("Everywhere:", here.vault("personal").collection("notes").get(note.uid).value["lines"])

        # An agent that may read one collection, and nothing else.
        token = notes.token("reading agent", permissions=["read"])
        with Client.with_token(url, token) as agent:
            print("The agent reads:", [found.value["title"] for found in agent.collection()])
            try:
                agent.collection().create("graffiti")
            except InsufficientScope:
                print("The agent cannot write.")

        # Deleted is deleted, on every device; until the server empties its trash, it can come back.
        notes.delete(notes.get(note.uid))
        print("Left:", len(list(notes)))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:3000")
