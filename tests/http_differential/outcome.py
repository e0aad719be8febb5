"""What a connection made of a stream: its answers, and what reached the application."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

OUR_ID: Final = re.compile(r"[0-9a-f]{16}-[0-9a-f]+")  # what the server gives a request that brings none


@dataclass
class FinalAnswer:
    """One final answer that we sent."""

    status: int
    request_id: str | None  # None where the connection itself refuses
    body: bytes
    closes: bool
    fed: int  # how much of the stream was delivered by then
    continued: int  # how many "100 Continue" came before it


@dataclass
class Outcome:
    """What our connection made of a stream."""

    answers: list[FinalAnswer]
    carried_out: list[tuple[str, str, str]]  # method, target and id of every request that reached the application
    had_body: set[str]  # ids of those that had all of the body that they asked for
    closed: bool
    unreadable: bytes  # what was sent and is no answer
    continued: int  # how many "100 Continue" came after the last answer
    size: int = 0  # bytes that were sent

    @property
    def done(self) -> list[tuple[str, str, str]]:
        """What was carried out."""
        return [(method, target, _given(request_id)) for method, target, request_id in self.carried_out]

    @property
    def told(self) -> list[tuple[int, str]]:
        """The answers by status and id, without a refusal by the connection, in whose place a cut may stand."""
        return [(one.status, _given(one.request_id or "")) for one in self.finals]

    @property
    def finals(self) -> list[FinalAnswer]:
        """The answers to requests, without a refusal by the connection."""
        return [one for one in self.answers if one.request_id is not None]


def _given(request_id: str) -> str:
    """The id that the client gave; none where the server made one."""
    return "" if OUR_ID.fullmatch(request_id) else request_id


def read_answers(writes: Sequence[tuple[int, bytes]], methods: Sequence[str]) -> tuple[list[FinalAnswer], bytes, int]:
    """The answers in what was written, what is left and is none, and how many 100 Continue came last."""
    raw = b"".join(piece for _, piece in writes)
    answers: list[FinalAnswer] = []
    at, continued = 0, 0
    while at < len(raw):
        end = raw.find(b"\r\n\r\n", at)
        match = re.match(rb"HTTP/1\.1 (\d{3}) ", raw[at : at + 13])
        if end < 0 or match is None:
            return answers, raw[at:], continued
        begun, status = at, int(match[1])
        lines = raw[at:end].decode("latin-1").split("\r\n")[1:]
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        at = end + 4
        if status == 100:
            continued += 1
            continue
        bare = len(answers) < len(methods) and methods[len(answers)] == "HEAD" and "x-request-id" in headers
        if bare or status in {204, 304}:
            body: bytes | None = b""
        elif headers.get("transfer-encoding") == "chunked":
            body, at = _unchunked(raw, at)
        elif "content-length" in headers:
            length = int(headers["content-length"])
            body, at = raw[at : at + length], at + length
        else:
            body, at = raw[at:], len(raw)
        if body is None or at > len(raw):
            return answers, raw[begun:], continued
        answers.append(
            FinalAnswer(
                status,
                headers.get("x-request-id"),
                body,
                headers.get("connection") == "close",
                _fed_at(writes, begun),
                continued,
            )
        )
        continued = 0
    return answers, b"", continued


def _fed_at(writes: Sequence[tuple[int, bytes]], offset: int) -> int:
    for fed, piece in writes:
        if offset < len(piece):
            return fed
        offset -= len(piece)
    return 0


def _unchunked(raw: bytes, at: int) -> tuple[bytes | None, int]:
    body = b""
    while match := re.compile(rb"([0-9a-f]+)\r\n").match(raw, at):
        length = int(match[1], 16)
        body += raw[match.end() : match.end() + length]
        at = match.end() + length + 2
        if not length:
            return body, at
    return None, at
