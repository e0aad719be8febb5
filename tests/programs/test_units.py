"""The units on the page about programs are ones that systemd takes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.kit.requirements import needs

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"


@needs("systemd-analyze")
def test_systemd_takes_the_units_of_the_page(tmp_path: Path) -> None:
    """It knows every line; the programs, which are not installed here, are replaced by one that is there."""
    found = re.findall(r"```ini\n# /etc/systemd/system/(\S+)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert [name for name, _ in found] == ["app-secrets.service", "app.service"]
    for name, text in found:
        (tmp_path / name).write_text(re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", text))
    assert verified(tmp_path) == []
    first = tmp_path / "app-secrets.service"
    first.write_text(first.read_text().replace("LoadCredentialEncrypted", "LoadCredentialSealed"))
    assert "Unknown key" in verified(tmp_path)[0]


def verified(folder: Path) -> list[str]:
    """What systemd says of the units in a folder."""
    units = sorted(folder.glob("*.service"))
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    return [line for line in done.stderr.splitlines() if str(folder) in line or "app" in line]
