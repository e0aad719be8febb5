"""Where tests/web still looks for what is in tests/kit/people/credentials.py."""

from tests.kit.people.credentials import PASSWORD, unique_email

__all__ = ["PASSWORD", "unique_email"]
