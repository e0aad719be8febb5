"""Where tests/web still looks for what is in tests/kit/network/tls.py."""

from tests.kit.network.tls import Authority

__all__ = ["Authority"]
