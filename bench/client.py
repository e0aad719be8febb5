"""`python -m bench.client`: what the client costs. Sealing and opening, a first sync, local creates, an import.

What a sync is compared with is the same server listing the same documents for a reader that throws the bytes away.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from bench import result_files
from bench.figures import client_text
from bench.progress import show_progress
from bench.streams import Place
from strongroom import identifiers, model
from strongroom.client import Client
from strongroom.client.format import keys, names, primitives, seal

VALUE = {"title": "A note", "text": "x" * 1_000}
BATCH = 1_000
PAGE = 2_000
PASSWORD = "correct horse battery staple"


def best(work: Callable[[], Any], number: int = 400, repeat: int = 25) -> float:
    """Microseconds of CPU that something takes, when nothing disturbs it."""
    found = []
    for _ in range(repeat):
        began = time.process_time()
        for _ in range(number):
            work()
        found.append((time.process_time() - began) / number)
    return min(found) * 1e6


def sealing() -> dict[str, float]:
    """Seal and open one document of about 1 KB, and what the primitives in it take by themselves."""
    uid = identifiers.new_uid(0)
    vault = keys.VaultKeys.build(os.urandom(keys.ACCOUNT), uid, [(1, os.urandom(32))])
    place = names.collection_keys(vault, "notes", sealed=True)
    sealed = seal.seal_document(place, uid, 1, VALUE)
    row = model.Document(uid, place.vault, place.wire, sealed.data, sealed.hmac, 1, 0, 0, None)
    text = json.dumps(VALUE).encode()
    key, salt, info = os.urandom(32), os.urandom(32), b"info"
    boxed = primitives.encrypt(key, text, info)
    derive = best(lambda: primitives.hkdf(key, salt, info, 64))
    encrypt = best(lambda: primitives.encrypt(key, text, info))
    decrypt = best(lambda: primitives.decrypt(key, boxed, info))
    prove = best(lambda: primitives.hmac_sha256(key, primitives.sha256(boxed)))
    spent = {
        "seal_us": best(lambda: seal.seal_document(place, uid, 1, VALUE)),
        "open_us": best(lambda: seal.open_document(place, row)),
    }
    # Sealing opens again what is about to be sent, so its cipher is both ways.
    spent["seal_beyond_us"] = spent["seal_us"] - encrypt - decrypt - 2 * derive - prove
    spent["open_beyond_us"] = spent["open_us"] - decrypt - derive - prove
    return spent


def _bearer(client: Client) -> dict[str, str]:
    token = client._core.session._access  # noqa: SLF001
    return {"authorization": f"Bearer {token}", "accept-encoding": "identity"}


def fill(client: Client, url: str, count: int) -> str:
    """A vault with so many sealed documents; its uid."""
    vault = client.vault("large", create=True)
    place = vault.collection("notes")._scope.write_keys()  # noqa: SLF001
    bearer = _bearer(client)
    with httpx2.Client(timeout=60) as http:
        for first in range(0, count, BATCH):
            show_progress(f"fill: {first:,} of {count:,}")
            operations = []
            for number in range(first, min(first + BATCH, count)):
                uid = identifiers.new_uid(time.time_ns() // 1_000_000)
                sealed = seal.seal_document(place, uid, 1, {**VALUE, "number": number})
                one = {"op": "create", "uid": uid, "collection": place.wire}
                operations.append({**one, "data": sealed.data, "hmac": sealed.hmac})
            answer = http.post(f"{url}/vaults/{vault.uid}/batch", json={"operations": operations}, headers=bearer)
            assert answer.status_code == 200, answer.text[:300]
    return vault.uid


def listed(client: Client, url: str, vault: str, count: int) -> float:
    """Seconds that the server takes to list everything in pages, for a reader that looks only at where to go on."""
    bearer = _bearer(client)
    found, since, began = 0, 0, time.perf_counter()
    with httpx2.Client(timeout=60) as http:
        while True:
            path = f"/vaults/{vault}/documents?since={since}&limit={PAGE}&includeDeleted=false"
            body = http.get(url + path, headers=bearer).content
            found += body.count(b'"vaultUid"')
            tail = json.loads("{" + body[body.rindex(b"],") + 2 :].decode())
            since = tail["next"]
            if not tail["hasMore"]:
                break
    assert found == count, found
    return time.perf_counter() - began


_SYNC = """
import re, sys, time
from pathlib import Path
from strongroom.client import Client
def held(name):
    return int(re.search(name + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
url, path, email, password, count = sys.argv[1:]
with Client(url) as client:
    client.login(email, password)
    with client.open_replica(path) as replica:
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts anew: a login takes 64 MiB for a moment
        before = held("VmRSS")
        began, worked = time.perf_counter(), time.process_time()
        report = replica.sync()
        print(time.perf_counter() - began, held("VmHWM") - before, time.process_time() - worked)
        assert report.pulled == int(count), report
"""


def syncing(count: int, rounds: int) -> dict[str, float]:
    """A first sync beside a bare list of the same documents, in turn."""
    with Place.new("sqlite") as place, place.serving() as (_, port), Client(f"http://127.0.0.1:{port}") as client:
        url, email = f"http://127.0.0.1:{port}", "bench@example.com"
        client.register(email, PASSWORD)
        vault = fill(client, url, count)
        lists, syncs, grown, worked = [], [], [], []
        for round_ in range(rounds):
            show_progress(f"sync, round {round_ + 1} of {rounds}")
            lists.append(listed(client, url, vault, count))
            command = [
                sys.executable,
                "-c",
                _SYNC,
                url,
                str(place.folder / f"replica{round_}"),
                email,
                PASSWORD,
                str(count),
            ]
            told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            syncs.append(float(told[0]))
            grown.append(int(told[1]) / 1024)
            worked.append(float(told[2]))
    quick, whole = statistics.median(lists), statistics.median(syncs)
    return {
        "list_per_s": count / quick,
        "sync_per_s": count / whole,
        "sync_ratio": quick / whole,
        "sync_cpu_us": min(worked) / count * 1e6,
        "sync_mib": max(grown),
    }


def creating(count: int) -> dict[str, float]:
    """Creates in a replica, one by one and many in one call. The file is in the folder for temporary files."""
    with Place.new("sqlite") as place, place.serving() as (_, port), Client(f"http://127.0.0.1:{port}") as client:
        client.register("bench@example.com", PASSWORD)
        client.vault("offline", create=True)
        with client.open_replica(place.folder / "replica") as replica:
            replica.sync()
            notes = replica.vault("offline").collection("notes")
            show_progress(f"create {count:,}, one by one and at once")
            began, worked = time.perf_counter(), time.process_time()
            for number in range(count):
                notes.create({**VALUE, "number": number})
            one_by_one, one_by_one_cpu = time.perf_counter() - began, time.process_time() - worked
            began, worked = time.perf_counter(), time.process_time()
            notes.create_many({**VALUE, "number": number} for number in range(count))
            at_once, at_once_cpu = time.perf_counter() - began, time.process_time() - worked
            assert replica.pending == 2 * count
    return {
        "creates_per_s": count / one_by_one,
        "create_cpu_us": one_by_one_cpu / count * 1e6,
        "create_many_per_s": count / at_once,
        "create_many_cpu_us": at_once_cpu / count * 1e6,
    }


def importing() -> dict[str, float]:
    """How long a process takes to have the client at hand, beyond Python itself."""
    found = []
    for _ in range(7):
        timed = "import time; began = time.perf_counter(); import strongroom.client; print(time.perf_counter() - began)"
        found.append(float(subprocess.run([sys.executable, "-c", timed], check=True, capture_output=True).stdout))
    return {"import_s": min(found)}


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(prog="python -m bench.client", description=__doc__)
    parser.add_argument("--documents", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--creates", type=int, default=10_000)
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    options = parser.parse_args()
    found = sealing() | importing() | creating(options.creates) | syncing(options.documents, options.rounds)
    result = {**result_files.circumstances(), "documents": options.documents, "found": found}
    if options.json is not None:
        options.json.write_text(result_files.text(result))
    sys.stdout.write(client_text(result) + "\n")


if __name__ == "__main__":
    main()
