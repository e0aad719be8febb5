"""Two PostgreSQL servers with synchronous replication, by the recipe of docs/operating.md."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.kit.network.ports import free_port
from tests.kit.servers.postgres import postgres

# What both servers have in their postgresql.conf, and what the primary has besides.
BOTH: Final = """
listen_addresses = '127.0.0.1'
wal_level = replica
max_wal_senders = 5
hot_standby = on
synchronous_commit = on
"""
WAITS: Final = "synchronous_standby_names = '{replica}'"


class Node:
    """One of the two."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.folder = Path(tempfile.mkdtemp(prefix=f"strongroom-{name}-"))
        self.port = free_port()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def run(self, command: str, *arguments: str) -> str:
        """One of PostgreSQL's own commands."""
        return postgres().run(command, *arguments)

    def settle(self, *lines: str) -> None:
        """Write its settings: those of both, its own, and these."""
        own = [f"port = {self.port}", f"unix_socket_directories = '{self.folder}'", f"cluster_name = '{self.name}'"]
        with (self.data / "postgresql.conf").open("a") as file:
            file.write("\n".join([BOTH, *own, *lines, ""]))

    def ctl(self, *arguments: str) -> None:
        self.run("pg_ctl", "-w", "-D", str(self.data), "-l", str(self.folder / "log"), *arguments)

    def sql(self, statement: str) -> str:
        where = f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"
        return self.run("psql", "-d", where, "-Atqc", statement).strip()


class Pair:
    """A primary and a replica, either of which may become the other."""

    def __init__(self, database: str) -> None:
        self.primary, self.replica = self.nodes = (Node("one"), Node("two"))
        for node in self.nodes:
            postgres().give(node.folder)
        self.primary.run("initdb", "--auth=trust", "--username=postgres", "-D", str(self.primary.data))
        self.primary.settle()
        self.primary.ctl("start")
        self.primary.sql(f"CREATE DATABASE {database}")
        self.url = f"postgresql://postgres@{','.join(f'127.0.0.1:{node.port}' for node in self.nodes)}/{database}"
        self.follow()

    def follow(self) -> None:
        """Make a new replica, and let the primary wait for it from now on."""
        shutil.rmtree(self.replica.data, ignore_errors=True)
        source = f"host=127.0.0.1 port={self.primary.port} user=postgres"
        self.replica.run(
            "pg_basebackup", "--write-recovery-conf", "-c", "fast", "-D", str(self.replica.data), "-d", source
        )
        self.replica.settle("synchronous_standby_names = ''")
        self.replica.ctl("start")
        self.primary.settle(WAITS.format(replica=self.replica.name))
        self.primary.ctl("reload")

    @property
    def waits(self) -> bool:
        """Whether a commit waits for the replica now."""
        return self.primary.sql("SELECT sync_state FROM pg_stat_replication") == "sync"

    def kill(self) -> None:
        """Take the primary away, as a power cut would."""
        self.primary.ctl("stop", "-m", "immediate")

    def promote(self) -> None:
        """Let the replica be the primary."""
        self.replica.ctl("promote")
        self.primary, self.replica = self.replica, self.primary

    def abandon(self) -> None:
        """Leave nothing behind."""
        for node in self.nodes:
            with suppress(Exception):
                node.ctl("stop", "-m", "immediate")
            shutil.rmtree(node.folder, ignore_errors=True)
