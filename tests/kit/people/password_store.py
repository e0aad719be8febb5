"""A password store of `pass`, whose entries the real gpg encrypts for a key of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from tests.kit.requirements import needs

needs_gpg: Final = needs("gpg")


class PasswordStore:
    """A store below a folder. Commands that read it need its `environment`."""

    def __init__(self, folder: Path) -> None:
        self._home, self.path = folder / "gnupg", folder / "store"
        self._home.mkdir(mode=0o700)
        self.path.mkdir()
        self.environment = {"GNUPGHOME": str(self._home)}
        self._gpg("--passphrase", "", "--quick-generate-key", "ada@example.com", "default", "default", "never")

    def _gpg(self, *words: str, stdin: str = "") -> None:
        command = ["gpg", "--batch", "--quiet", "--homedir", str(self._home), *words]
        subprocess.run(command, input=stdin.encode(), check=True, capture_output=True)

    def add(self, path: Path, text: str) -> None:
        """Encrypt a text to a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        to = ("--trust-model", "always", "--encrypt", "--recipient", "ada@example.com", "--output", str(path))
        self._gpg(*to, stdin=text)

    def close(self) -> None:
        """End the processes of gpg."""
        command = ["gpgconf", "--homedir", str(self._home), "--kill", "all"]
        subprocess.run(command, check=False, capture_output=True)
