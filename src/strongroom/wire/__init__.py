"""JSON bodies of requests, responses, events and export lines, shared by server and client."""

from __future__ import annotations

import msgspec

from strongroom.wire import events, export_file, export_lines, requests, responses, webauthn
from strongroom.wire.decode import decode, decode_in_steps, says

__all__ = [
    "decode",
    "decode_in_steps",
    "encode",
    "encode_lines",
    "events",
    "export_file",
    "export_lines",
    "requests",
    "responses",
    "says",
    "webauthn",
]

encode = msgspec.json.Encoder().encode
encode_lines = msgspec.json.Encoder().encode_lines
