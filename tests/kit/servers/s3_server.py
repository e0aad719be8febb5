"""A real server that speaks S3 for the tests: s3rver, installed into .venv/s3 with npm."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from obstore.store import S3Store

from tests.kit.network.ports import free_port
from tests.kit.requirements import skip_or_fail
from tests.kit.waiting import until

PROGRAM = Path(sys.prefix) / "s3" / "node_modules" / ".bin" / "s3rver"


@contextmanager
def s3_server(home: Path) -> Iterator[dict[str, str]]:
    """Start it with a bucket named vault; the settings that reach it."""
    if not PROGRAM.exists():
        skip_or_fail("s3rver is not installed. `make .venv/s3/.done` installs it with npm.")
    home.mkdir()
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with (
        (home / "log").open("wb") as log,
        subprocess.Popen(
            [PROGRAM, "--directory", home / "data", "--port", str(port), "--configure-bucket", "vault"],
            stdout=log,
            stderr=log,
        ) as process,
    ):
        try:
            until(lambda: _answers(address), "the server of S3", 60)
            yield {"AWS_ACCESS_KEY_ID": "S3RVER", "AWS_SECRET_ACCESS_KEY": "S3RVER", "AWS_ENDPOINT_URL": address}
        finally:
            process.kill()


def _answers(address: str) -> bool:
    try:
        httpx2.get(address, timeout=1)
    except httpx2.TransportError:
        return False
    return True


def client(settings: dict[str, str], prefix: str) -> Any:
    """A client of it, beside the one that is tested."""
    return S3Store(
        "vault",
        prefix=prefix,
        config={
            "access_key_id": settings["AWS_ACCESS_KEY_ID"],
            "secret_access_key": settings["AWS_SECRET_ACCESS_KEY"],
            "endpoint": settings["AWS_ENDPOINT_URL"],
            "region": "us-east-1",
        },
        client_options={"allow_http": True},
    )
