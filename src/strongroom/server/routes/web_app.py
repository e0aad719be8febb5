"""The files of the web app, below /app. They are no part of the API, and not in its description."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from strongroom.server.request import Access, Endpoint, Request
from strongroom.server.response import Response
from strongroom.server.web.app_files import REVALIDATED, SECURITY_HEADERS
from strongroom.web_release import PREFIX

if TYPE_CHECKING:
    from strongroom.server.web.app_files import AppFile, AppFiles

_MISSING: Final = f"The web app has no such file. It starts at {PREFIX}.\n".encode()
_ZERO: Final = re.compile(r"q=0(\.0*)?")


def endpoints(files: AppFiles) -> tuple[Endpoint, ...]:
    """The endpoints that serve these files."""

    async def get(request: Request) -> Response:
        """A file of the web app; a folder without its slash is redirected to."""
        found = files.find(request.path)
        if found is not None:
            return _respond(request, found)
        if files.find(request.path + b"/") is not None:
            return Response(status=308, headers=[(b"location", request.path + b"/")])
        headers = ((b"cache-control", REVALIDATED), *SECURITY_HEADERS)
        return Response(_MISSING, 404, headers=headers, content_type=b"text/plain; charset=utf-8")

    return tuple(
        Endpoint(method="GET", path=path, handler=get, summary="A file of the web app", access=Access.PUBLIC)
        for path in ("/app", "/app/{name*}")
    )


def _respond(request: Request, file: AppFile) -> Response:
    """The file, or 304 if the client has it; compressed if the client takes that. Ranges are not served."""
    zipped = _takes_gzip(request.header(b"accept-encoding") or "")
    etag = f"{file.etag}-gzip" if zipped else file.etag
    if request.not_modified(etag):
        return Response(status=304, headers=file.headers, etag=etag)
    if not zipped:
        return Response(file.content, headers=file.headers, content_type=file.content_type, etag=etag)
    headers = (*file.headers, (b"content-encoding", b"gzip"))
    return Response(file.compressed(), headers=headers, content_type=file.content_type, etag=etag)


def _takes_gzip(header: str) -> bool:
    """Whether Accept-Encoding allows gzip: by its name, or by *; q=0 forbids."""
    found: dict[str, bool] = {}
    for part in header.lower().split(","):
        coding, *parameters = (piece.strip() for piece in part.split(";"))
        found[coding] = not any(_ZERO.fullmatch(one.replace(" ", "")) for one in parameters)
    return found.get("gzip", found.get("*", False))
