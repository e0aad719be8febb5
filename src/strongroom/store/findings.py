"""Findings: results of the checks of `strongroom doctor`, from the database and from the server's files."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Verdict(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


class Finding(Struct, frozen=True, omit_defaults=True):
    """The result of one check, as `strongroom doctor` prints it; with `--json`, these fields are the output."""

    check: str
    verdict: Verdict
    says: str
    todo: str = ""  # what to do about it


def ok(check: str, says: str) -> Finding:
    """A finding that needs no action."""
    return Finding(check, Verdict.OK, says)


def warning(check: str, says: str, todo: str) -> Finding:
    """A finding about what may become a fault."""
    return Finding(check, Verdict.WARNING, says, todo)


def fault(check: str, says: str, todo: str) -> Finding:
    """A finding about what is wrong."""
    return Finding(check, Verdict.FAULT, says, todo)


def plural(count: int, noun: str) -> str:
    """A count and its noun, in the singular or the plural."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
