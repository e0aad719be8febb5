"""An honest client in a process of its own: reads, lists and writes, and says how long each request took.

    python tests/fairness/honest.py < setting.json

It imports nothing but the standard library, so that it costs the machine little. A line of its output is a request:
when it began, its seconds by the wall clock, and the seconds of processor that the server's event loop took meanwhile,
which hold on a busy machine too.
"""

from __future__ import annotations

import http.client
import json
import sys
import time
from pathlib import Path

PAUSE = 0.002  # seconds between two requests


def main() -> None:
    """Make requests until the output is closed."""
    setting = json.load(sys.stdin)
    address = (setting["address"], 0)
    connection = http.client.HTTPConnection("127.0.0.1", setting["port"], timeout=120, source_address=address)
    headers = {"authorization": f"Bearer {setting['token']}", "content-type": "application/json"}
    loop = Path(f"/proc/{setting['pid']}/task/{setting['pid']}/schedstat")
    requests = [(method, path, body.encode()) for method, path, body in setting["requests"]]
    while True:
        for method, path, body in requests:
            processor, began = _on_processor(loop), time.monotonic()
            connection.request(method, path, body or None, headers)
            response = connection.getresponse()
            response.read()
            seconds = time.monotonic() - began
            print(began, seconds, _on_processor(loop) - processor, response.status, flush=True)  # noqa: T201
            time.sleep(PAUSE)


def _on_processor(thread: Path) -> float:
    """The seconds that a thread has run."""
    return int(thread.read_bytes().split()[0]) / 1e9


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, ConnectionError, FileNotFoundError, http.client.HTTPException, KeyboardInterrupt):
        sys.exit(0)
