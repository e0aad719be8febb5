"""`strongroom systemd`: prints a hardened systemd unit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from strongroom.cli import terminal

if TYPE_CHECKING:
    import argparse

_HIDDEN: Final = ("/root", "/home", "/run/user")
_UNIT = """\
# {path}/strongroom.service, printed by 'strongroom systemd'. To install it, as root:
#
#   useradd --system --shell /usr/sbin/nologin strongroom
#   install -d -m 0750 -o root -g strongroom /etc/strongroom
#   python3 -c 'import secrets; print(secrets.token_hex(32))' > /etc/strongroom/jwt-secret
#   echo DB_PATH=/var/lib/strongroom/vault.db > /etc/strongroom/settings
#   echo JWT_SECRET_FILE=/etc/strongroom/jwt-secret >> /etc/strongroom/settings
#   echo BACKUP_DIR=/var/lib/strongroom/backups >> /etc/strongroom/settings
#   chown root:strongroom /etc/strongroom/* && chmod 0640 /etc/strongroom/*
#   strongroom systemd > {path}/strongroom.service
#   systemctl daemon-reload && systemctl enable --now strongroom
#
# The service reads its settings from /etc/strongroom/settings only. Commands read that file too, in any folder:
#   sudo -u strongroom strongroom users list
# The service may write to /var/lib/strongroom only. For backups on another disk, 'systemctl edit strongroom' and
# add, under [Service]: ReadWritePaths=/srv/backups
# 'systemctl reload strongroom' reloads secrets and certificate.

[Unit]
Description=strongroom, a backend for end-to-end encrypted data
Wants=network-online.target
After=network-online.target postgresql.service
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
WatchdogSec=30
ExecStart={program} serve
ExecReload=/bin/kill -HUP $MAINPID
User=strongroom
Environment=STRONGROOM_SETTINGS=/etc/strongroom/settings
WorkingDirectory=/var/lib/strongroom
StateDirectory=strongroom
StateDirectoryMode=0700
RuntimeDirectory=strongroom
RuntimeDirectoryMode=0750
UMask=0077
Restart=on-failure
RestartSec=5
RestartPreventExitStatus=74
KillMode=mixed
TimeoutStartSec=infinity
TimeoutStopSec=45
LimitNOFILE=8192

NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
ProtectProc=invisible
ProcSubset=pid
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RemoveIPC=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallFilter=setpriority
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
"""


def systemd(_options: argparse.Namespace) -> int:
    """Print the unit."""
    beside = Path(sys.executable).with_name("strongroom")
    program = str(beside) if beside.exists() else f"{sys.executable} -m strongroom"
    terminal.print_line(_UNIT.format(program=program, path="/etc/systemd/system").rstrip("\n"))
    hidden = next((path for path in map(Path, _HIDDEN) if Path(sys.executable).resolve().is_relative_to(path)), None)
    if hidden is not None:
        terminal.print_error(
            f"warning: Python is installed below {hidden}, which the unit hides from the service (ProtectHome=yes): it "
            "would not start. Install strongroom in /opt/strongroom (docs/operating.md), and print the unit there."
        )
    return 0
