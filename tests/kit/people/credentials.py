"""What people of the tests register with."""

from __future__ import annotations

import itertools
import uuid

PASSWORD = "correct horse battery staple"
_numbers = itertools.count(1)


def unique_email() -> str:
    """An email address that nobody has registered."""
    return f"person-{next(_numbers)}-{uuid.uuid4().hex[:8]}@example.com"
