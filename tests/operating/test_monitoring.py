"""What monitoring is shown: the process, its certificate, its backups, its release; and alert rules that use it."""

from __future__ import annotations

import re
import signal
import sys
import time
from pathlib import Path

import httpx2
import pytest
import yaml

from strongroom import __version__, errors
from strongroom.server.monitoring.metrics import FAMILIES
from strongroom.store.queries import schema
from tests.kit.programs import processes
from tests.kit.project import ROOT
from tests.kit.requirements import needed
from tests.kit.servers.certificate import certificate
from tests.kit.servers.metrics import figures
from tests.kit.servers.server_process import running
from tests.kit.waiting import until

TOKEN = "a-token-for-the-figures"
SECRET = {"JWT_SECRET": "x" * 32, "METRICS_TOKEN": TOKEN}
RULES = ROOT / "deploy" / "alerts.yaml"
WORKERS = pytest.mark.parametrize("workers", ["1", "2"])


def told(url: str) -> dict[str, float]:
    answer = httpx2.get(f"{url}/metrics", headers={"authorization": f"Bearer {TOKEN}"}, verify=False, timeout=30)
    assert answer.status_code == 200
    return figures(answer.text)


@WORKERS
def test_the_process_is_told_of_under_the_usual_names(tmp_path: Path, workers: str) -> None:
    """Memory, files and their limit, processor time, start; of all workers together."""
    began = time.time()
    with running(tmp_path, WORKERS=workers, **SECRET) as (_, url):
        until(lambda: told(url)["strongroom_processes"] == int(workers), "the figures of all workers")
        found = told(url)
        assert 20e6 * int(workers) < found["process_resident_memory_bytes"] < 1e9
        assert 0 < found["process_cpu_seconds_total"] < 600
        assert 5 < found["process_open_fds"] < found["process_max_fds"]
        assert began - 2 < found["process_start_time_seconds"] < time.time() + 1


def test_every_code_has_its_series_from_the_start(tmp_path: Path) -> None:
    """A series that appears with its first count shows no increase, and no rule fires."""
    with running(tmp_path, **SECRET) as (_, url):
        found = told(url)
        for code in errors.codes():
            assert found[f'strongroom_refusals_total{{code="{code}"}}'] == 0
        for status in (400, 408, 431, 503):
            assert found[f'strongroom_connection_refusals_total{{status="{status}"}}'] == 0
        assert found["strongroom_backup_failures_total"] == 0
        httpx2.get(f"{url}/nowhere")
        assert told(url)['strongroom_refusals_total{code="not_found"}'] == 1


def test_a_backup_that_fails_is_counted_and_one_that_does_not_is_dated(tmp_path: Path) -> None:
    """The folder cannot be made at first: a file is in its place."""
    folder = tmp_path / "backups"
    folder.write_text("in the way")
    with running(tmp_path, BACKUP_DIR=str(folder), BACKUP_EVERY="1s", **SECRET) as (_, url):
        until(lambda: told(url)["strongroom_backup_failures_total"] >= 1, "a failed backup")
        assert "strongroom_backup_success_timestamp_seconds" not in told(url)
        folder.unlink()
        until(lambda: "strongroom_backup_success_timestamp_seconds" in told(url), "a backup")
        assert abs(told(url)["strongroom_backup_success_timestamp_seconds"] - time.time()) < 60


@WORKERS
def test_the_end_of_the_certificate_is_that_of_the_one_that_is_served(tmp_path: Path, workers: str) -> None:
    """A renewed file counts from SIGHUP on."""
    name = "strongroom_certificate_expiry_timestamp_seconds"
    certificate(tmp_path, "one", days=1)
    files = {"TLS_CERT_FILE": str(tmp_path / "cert.pem"), "TLS_KEY_FILE": str(tmp_path / "key.pem")}
    with running(tmp_path, WORKERS=workers, **files, **SECRET) as (process, url):
        assert abs(told(url)[name] - time.time() - 86_400) < 120
        certificate(tmp_path, "two", days=9)
        assert abs(told(url)[name] - time.time() - 86_400) < 120
        process.send_signal(signal.SIGHUP)
        for _ in range(5):
            until(lambda: abs(told(url)[name] - time.time() - 9 * 86_400) < 120, "the new certificate's end")


def test_releases_can_be_told_apart(tmp_path: Path) -> None:
    """By the command, at /health and in the figures."""
    shown = processes.run([sys.executable, "-m", "strongroom", "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout == f"strongroom {__version__} (schema {schema.newest()})\n"
    with running(tmp_path, **SECRET) as (_, url):
        health = httpx2.get(f"{url}/health").json()
        assert (health["version"], health["schema"]) == (__version__, schema.newest())
        labels = f'version="{__version__}",schema="{schema.newest()}",engine="sqlite",variant="both"'
        assert told(url)[f"strongroom_info{{{labels}}}"] == 1


def test_the_rules_name_figures_that_exist() -> None:
    """Every rule has a name, an expression that balances, a time, and words for whoever is woken by it."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules) >= 10
    known = {name for name, _, _ in FAMILIES}
    known |= {
        f"{name}_{end}" for name, kind, _ in FAMILIES if kind == "histogram" for end in ("bucket", "sum", "count")
    }
    for rule in rules:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert rule["annotations"]["summary"].endswith(".")
        expression = rule["expr"]
        named = set(re.findall(r"\b(?:strongroom|process)_\w+", expression))
        assert named, expression
        assert named <= known, expression
        for opening, closing in ("()", "[]", "{}"):
            assert expression.count(opening) == expression.count(closing)
        for code in re.findall(r'code="(\w+)"', expression):
            assert code in errors.codes()


def test_prometheus_takes_the_rules() -> None:
    """Its own tool reads them."""
    tool = str(needed("promtool"))
    done = processes.run([tool, "check", "rules", str(RULES)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
