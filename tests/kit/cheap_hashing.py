"""Argon2id at a cost that tests can afford, for those that are not about its cost.

The product has no switch for this: a test process calls `install`, and a server process is started through this file
(`python tests/kit/cheap_hashing.py serve …`) in the place of `python -m strongroom`.
"""

from __future__ import annotations

import hashlib
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from strongroom import credentials

PROGRAM = (str(Path(__file__)),)  # what stands after the interpreter's name, in the place of -m strongroom
_MEMORY, _PASSES = 8, 1  # the least that Argon2id takes


def _argon2id(password: bytes, salt: bytes, memory: int, passes: int) -> bytes:
    """A key of all that the real one depends on."""
    salted = hashlib.sha256(b"%d %d " % (memory, passes) + salt).digest()
    return Argon2id(salt=salted, length=32, iterations=_PASSES, lanes=1, memory_cost=_MEMORY).derive(password)


_PARAMETERS = f"$argon2id$v=19$m={_MEMORY},t={_PASSES},p=1$"
_SERVER: list[tuple[Any, str, Any]] = [
    (credentials, "_MEMORY", _MEMORY),
    (credentials, "_PASSES", _PASSES),
    # The parameters, and the hash for unknown emails: by their values, since the release before has other names.
    *(
        (credentials, name, value.replace(credentials._PARAMETERS, _PARAMETERS))
        for name, value in vars(credentials).items()
        if isinstance(value, str) and value.startswith(credentials._PARAMETERS)
    ),
]


def install(*, client: bool = True) -> Callable[[], None]:
    """Make hashing cheap in this process; the function that undoes it."""
    patches = list(_SERVER)
    if client:
        from strongroom.client.format import primitives

        patches.append((primitives, "argon2id", _argon2id))
    real = [(module, name, getattr(module, name)) for module, name, _ in patches]
    for module, name, value in patches:
        setattr(module, name, value)

    def undo() -> None:
        for module, name, value in real:
            setattr(module, name, value)

    return undo


if __name__ == "__main__":
    install(client=False)
    runpy.run_module("strongroom", run_name="__main__", alter_sys=True)
