"""A real server of SFTP for the tests, in a process of its own: `python -m tests.kit.servers.sftp_server FOLDER`.

It lets in whoever has the key `client_key` of the folder, and gives them the folder `files` as their root.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # it takes long to import, and each process that runs tests reads this file
    import asyncssh


async def _serve(home: Path) -> None:
    import asyncssh

    def chrooted(channel: Any) -> asyncssh.SFTPServer:
        return asyncssh.SFTPServer(channel, chroot=str(home / "files").encode())

    listener = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[str(home / "host_key")],
        authorized_client_keys=str(home / "client_key.pub"),
        sftp_factory=chrooted,
    )
    sys.stdout.write(f"{listener.get_port()}\n")
    sys.stdout.flush()
    await listener.wait_closed()


@contextmanager
def sftp_server(home: Path) -> Iterator[int]:
    """Make keys and start it; its port. The host key is in the file `known_hosts`."""
    import asyncssh

    (home / "files").mkdir(parents=True)
    for name in ("host_key", "client_key"):
        key = asyncssh.generate_private_key("ssh-ed25519")
        key.write_private_key(str(home / name))
        key.write_public_key(str(home / f"{name}.pub"))
    with subprocess.Popen(
        [sys.executable, "-m", "tests.kit.servers.sftp_server", str(home)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    ) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            public = (home / "host_key.pub").read_text()
            (home / "known_hosts").write_text(f"[127.0.0.1]:{port} {public}")
            yield port
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
