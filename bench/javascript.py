"""`python -m bench.javascript`: what the JavaScript client costs in Node.js and in Chromium, beside the Python client.

An unlock is real Argon2id and the keys of the account. A first sync puts all documents, encrypted, on this device.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.client import PASSWORD, fill, sealing
from bench.progress import show_progress
from bench.streams import Place
from strongroom.client import Client
from tests.kit.browsers.chromium import chromium
from tests.kit.clients.javascript import bundles, run, served

_PYTHON = """
import json, re, sys, time
from pathlib import Path
from strongroom.client import Client
def held(name):
    return int(re.search(name + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
def timed(work):
    began = time.perf_counter()
    return work(), (time.perf_counter() - began) * 1000
url, email, password, path, count = sys.argv[1:]
Path("/proc/self/clear_refs").write_text("5")  # the peak counts anew
before = held("VmRSS")
with Client(url) as client:
    client.login(email, password)
    with client.open_replica(path) as replica:
        report, sync = timed(replica.sync)
        assert report.pulled == int(count), report
        found, read = timed(lambda: sum(1 for _ in replica.vault("large")))
        assert found == int(count)
with Client(url) as client:
    _, unlock = timed(lambda: client.unlock(path, password))
print(json.dumps({"sync": sync, "read": read, "unlock": unlock, "peak": held("VmHWM") - before}))
"""


def in_python(url: str, email: str, folder: Path, count: int) -> dict[str, float]:
    """Figures of the Python client."""
    command = [sys.executable, "-c", _PYTHON, url, email, PASSWORD, str(folder / "python"), str(count)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    sealed = sealing()
    return {"seal": sealed["seal_us"], "open": sealed["open_us"], **json.loads(told)}


def in_node(url: str, email: str, folder: Path, count: int) -> dict[str, float]:
    """Figures of the JavaScript client in Node.js."""
    program = str(bundles() / "figures.program.js")
    told: dict[str, float] = json.loads(run("node", program, url, email, PASSWORD, str(folder / "node"), str(count)))
    return told


def in_chromium(url: str, email: str, folder: Path, count: int) -> dict[str, float]:
    """Figures of the JavaScript client in Chromium; the memory is that of the page's process, at the most."""
    with served() as pages, chromium(folder) as page:
        page.open(f"{pages}/empty.html")
        call = f'import("{pages}/figures.page.js").then((it) => it.'
        before = max(_renderers(folder))
        sealed = page.run(f"{call}sealing())")
        args = ", ".join(json.dumps(arg) for arg in (url.replace("127.0.0.1", "localhost"), email, PASSWORD, count))
        page.run(
            f"{call}syncing({args})).then((it) => (globalThis.found = it), (it) => (globalThis.found = String(it))), 0"
        )
        while (found := page.run("globalThis.found")) is None:
            time.sleep(0.2)
        assert isinstance(found, dict), found
        return {**sealed, **found, "peak": max(_renderers(folder)) - before}


def _renderers(folder: Path) -> list[int]:
    """The peaks of the processes of pages of this browser, in KB."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode("utf-8", "replace")
            if "--type=renderer" in command and str(folder) in command:
                status = (process / "status").read_text()
                found.append(int(status.split("VmHWM:")[1].split()[0]))
        except (OSError, IndexError):
            continue
    return found or [0]


ROWS = (
    ("unlock without a server", "unlock", "ms", 1),
    ("seal a document of 1 KB", "seal", "µs", 1),
    ("open a document of 1 KB", "open", "µs", 1),
    ("first sync", "sync", "s", 1000),
    ("read and open all from the device", "read", "s", 1000),
    ("memory at the most, beyond the start", "peak", "MB", 1000),
)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=10_000)
    count = parser.parse_args().documents
    columns: dict[str, Any] = {"Python": in_python, "Node.js": in_node, "Chromium": in_chromium}
    with Place.new("sqlite") as place, place.serving() as (_, port):
        url, email = f"http://127.0.0.1:{port}", "bench@example.com"
        with Client(url) as client:
            client.register(email, PASSWORD)
            fill(client, url, count)
        figures = {}
        for name, measure in columns.items():
            show_progress(f"in {name}")
            with tempfile.TemporaryDirectory() as folder:
                figures[name] = measure(url, email, Path(folder), count)
    print(f"{f'{count:,} documents':38}" + "".join(f"{name:>12}" for name in columns))
    for title, key, unit, scale in ROWS:
        cells = "".join(f"{f'{figures[name][key] / scale:,.1f} {unit}':>12}" for name in columns)
        print(f"{title:38}{cells}")


if __name__ == "__main__":
    main()
