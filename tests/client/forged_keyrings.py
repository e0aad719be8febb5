"""Keyrings that somebody with the keys makes, and what they say they follow on."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from strongroom.client.format.keyring import Keyring
from strongroom.client.format.keyring_body import MOST_PAST
from strongroom.client.format.primitives import random


def after(made: Keyring, before: Keyring, digests: Sequence[bytes] = ()) -> Keyring:
    """`made` as a keyring later than `before`, which says that these came since; without any, as the next one."""
    digests = digests or [before.digest]
    past = (*before.past, *(digest[:16] for digest in digests))[-MOST_PAST:]
    version = before.version + len(digests)
    return msgspec.structs.replace(made, version=version, previous=digests[-1], past=past, digest=b"")


def earlier(made: Keyring, steps: int = 1) -> Keyring:
    """`made` as a keyring so many versions before, which is none of those that were."""
    version = made.version - steps
    past = tuple(random(16) for _ in range(min(version - 1, MOST_PAST)))
    return msgspec.structs.replace(made, version=version, previous=past[-1] + random(16), past=past, digest=b"")
