"""CORS headers. Any origin may be allowed, because credentials are only ever in the Authorization header."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from strongroom.server.response import Header

_EXPOSED: Final = b"ETag, Retry-After, X-Request-Id"
_METHODS: Final = b"GET, HEAD, POST, PUT, DELETE, OPTIONS"
_HEADERS: Final = b"Authorization, Content-Type, If-Match, If-None-Match, Keyring-Version, Last-Event-ID, X-Request-Id"
_DAY: Final = b"86400"


class Cors:
    """The CORS headers of responses."""

    def __init__(self, origins: tuple[str, ...]) -> None:
        self._any = "*" in origins
        self._origins = {origin.encode() for origin in origins}
        self.always: list[Header] = [] if self._any else [(b"vary", b"Origin")]  # on every response, for caches

    def headers(self, origin: bytes) -> list[Header]:
        """Headers of a response to this origin; none if the origin is not allowed, so that the browser refuses it."""
        if self._any:
            return [(b"access-control-allow-origin", b"*"), (b"access-control-expose-headers", _EXPOSED)]
        if origin.rstrip(b"/") not in self._origins:
            return []
        return [(b"access-control-allow-origin", origin), (b"access-control-expose-headers", _EXPOSED)]

    def preflight(self, origin: bytes) -> list[Header]:
        """Headers of the response to a preflight request."""
        headers = self.headers(origin)
        if not headers:
            return []
        return [
            *headers,
            (b"access-control-allow-methods", _METHODS),
            (b"access-control-allow-headers", _HEADERS),
            (b"access-control-max-age", _DAY),
        ]
