"""A variable that is no setting, but is spelt much like one, is reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strongroom.cli.configuration import Configuration
from strongroom.options import SETTINGS_FILE, TABLE
from tests.kit.network.ports import free_port
from tests.kit.programs.command_line import strongroom
from tests.kit.servers.server_process import running

SECRET = "4f1c9a7be0d25386a1f7c4d9e2b80563"
ORDINARY = """
    ANSIBLE_HOST APPDATA BACKUP_HOST BASH_ENV CARGO_HOME CI CLASSPATH COLORTERM COLUMNS COMPUTERNAME CONDA_PREFIX
    CURL_CA_BUNDLE DATABASE_HOST DATABASE_NAME DATABASE_USER DB_HOST DB_NAME DB_PASS DB_PASSWORD DB_PORT DB_USER
    DBUS_SESSION_BUS_ADDRESS DEBUG DISPLAY EDITOR GITHUB_TOKEN GIT_PAGER GOPATH GPG_KEY GROUP HISTCONTROL HISTFILE
    HISTSIZE HOME HOSTNAME HOSTTYPE HOSTS HTTP_HOST HTTP_PORT http_proxy INVOCATION_ID IP JAVA_HOME JOURNAL_STREAM
    KUBECONFIG KUBERNETES_PORT KUBERNETES_SERVICE_HOST LANG LANGUAGE LC_ALL LD_LIBRARY_PATH LESS LINES LISTEN_FDS
    LOGNAME LOG_DIR LOG_FILE LS_COLORS MACHTYPE MAIL MAINPID MANPATH MEMORY_PRESSURE_WATCH METRICS_HOST METRICS_URL
    NODE_ENV NO_COLOR NOTIFY_SOCKET OLDPWD OSTYPE OTEL_EXPORTER_OTLP_ENDPOINT OTEL_SERVICE_NAME PAGER PATH
    PGDATABASE PGHOST PGPASSWORD PGPASSFILE PGPORT PGUSER PORTS POST POSTGRES_DB POSTGRES_PASSWORD POSTGRES_USER PS1
    PUBLIC_IP PWD PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONPATH PYTHONUNBUFFERED PYTEST_CURRENT_TEST RATE
    REQUESTS_CA_BUNDLE RUNTIME_DIRECTORY SECRET_KEY SHELL SHLVL SIGN SSH_AUTH_SOCK SSH_CLIENT SSH_TTY SSL_CERT_DIR
    SSL_CERT_FILE STATE_DIRECTORY SUDO_COMMAND SUDO_UID SUDO_USER SYSTEMD_EXEC_PID TEMP TERM TLS_CERT TLS_KEY TMP
    TMPDIR TOKEN TRASH TZ UID USER USERNAME USERPROFILE UV_CACHE_DIR VERSION VIRTUAL_ENV VIRTUAL_HOST VIRTUAL_PORT
    VISUAL WATCHDOG_USEC WEB_CONCURRENCY WORKER_ID XDG_RUNTIME_DIR XDG_SESSION_ID _ host port
""".split()  # noqa: SIM905 - easier to read and to add to
MEANT = {
    "SIGNUP": "SIGNUPS",
    "SIGN_UPS": "SIGNUPS",
    "SINGUPS": "SIGNUPS",
    "signups": "SIGNUPS",
    "LOGLEVEL": "LOG_LEVEL",
    "DBPATH": "DB_PATH",
    "db_path": "DB_PATH",
    "DATABASE_URI": "DATABASE_URL",
    "TRUSTED_PROXY": "TRUSTED_PROXIES",
    "CORS_ORIGIN": "CORS_ORIGINS",
    "JWT_SECRETS": "JWT_SECRET",
    "JWT_SECRET_FILES": "JWT_SECRET_FILE",
    "JWT_ACCESS_EXPIRES": "JWT_ACCESS_EXPIRY",
    "BACKUP_PASSPHRASEFILE": "BACKUP_PASSPHRASE_FILE",
    "QUOTA_BYTE": "QUOTA_BYTES",
    "STRONGROOM_SETTING": "STRONGROOM_SETTINGS",
    "STRONGROOM_DB_PATH": "DB_PATH",
    "STRONGROOM_PORT": "PORT",
}


def warned(environment: dict[str, str]) -> list[str]:
    return Configuration({}, environment, "/dev/null").warnings


def test_ordinary_names_are_nobodys_business() -> None:
    """Nor are the settings, the files of secrets, or what Kubernetes tells of a service called strongroom."""
    known = [name for option in TABLE for name in (option.variable, option.file_variable) if name]
    for name in (*ORDINARY, *known, SETTINGS_FILE):
        assert warned({name: "x"}) == [], name
    injected = ("STRONGROOM_PORT", "STRONGROOM_PORT_3000_TCP", "STRONGROOM_SERVICE_HOST", "METRICS_PORT_9090_TCP")
    assert warned(dict.fromkeys(injected, "tcp://10.0.0.1:3000")) == []
    assert warned({"STRONGROOM_SERVICE_HOST": "10.0.0.1", "STRONGROOM_PORT_3000_TCP_PORT": "3000"}) == []


@pytest.mark.parametrize(("name", "meant"), MEANT.items())
def test_a_near_miss_is_named(name: str, meant: str) -> None:
    """With the setting that it is like."""
    assert warned({name: "closed"}) == [f"{name} is not a setting; did you mean {meant}?"]


def test_what_is_odd_about_a_settings_file(tmp_path: Path) -> None:
    """There every name is meant as a setting; names given twice, and lines that are none, are told too."""
    file = tmp_path / "settings"
    file.write_text("PORT=1\nSIGNUP=closed\nCOLOUR=red\nTLS_CERT=x\nPORT=2\nthis is no line\nport=3\nSIGNUPS=closed\n")
    configured = Configuration({}, {}, str(file))
    assert configured.warnings == [
        f"SIGNUP in {file} is not a setting; did you mean SIGNUPS?",
        f"COLOUR in {file} is not a setting, and is ignored.",
        f"TLS_CERT in {file} is not a setting; did you mean TLS_CERT_FILE?",
        f"PORT is set more than once in {file}; the last one counts.",
        f"line 6 of {file} is not NAME=value, and is ignored.",
        f"port in {file} is not a setting; did you mean PORT?",
    ]
    assert configured.values["PORT"].text == "2"


@pytest.mark.parametrize("place", ["environment", "file"])
def test_serve_config_and_doctor_tell_it(tmp_path: Path, place: str) -> None:
    """Each once, on standard error or as a finding; nothing stops because of it, and no value is shown."""
    settings = {"JWT_SECRET": SECRET, "DB_PATH": str(tmp_path / "vault.db"), "PORT": str(free_port())}
    if place == "file":
        (tmp_path / ".env").write_text("SIGNUP=hunter2\n")
        (tmp_path / ".env").chmod(0o600)
    else:
        settings["SIGNUP"] = "hunter2"
    said = "SIGNUP is not a setting" if place == "environment" else "SIGNUP in .env is not a setting"
    said += "; did you mean SIGNUPS?"
    assert strongroom(tmp_path, "db", "migrate", **settings).returncode == 0
    done = strongroom(tmp_path, "config", **settings)
    assert (done.returncode, done.stderr) == (0, f"strongroom: warning: {said}\n")
    told = json.loads(strongroom(tmp_path, "config", "--json", **settings).stdout)
    assert told["warnings"] == [said]
    examined = strongroom(tmp_path, "doctor", "--json", **settings)
    assert examined.returncode == 0
    found = [one for one in json.loads(examined.stdout)["findings"] if one["check"] == "settings"]
    assert [(one["verdict"], one["says"]) for one in found] == [("warning", said)]
    with running(tmp_path, **settings):
        text = (tmp_path / "stderr").read_text()
    assert text.count(f"strongroom: warning: {said}\n") == 1
    assert "hunter2" not in done.stdout + done.stderr + examined.stdout + text
