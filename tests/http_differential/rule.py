"""The rule: the server may be stricter than the reference, never looser."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tests.http_differential.outcome import OUR_ID, FinalAnswer, Outcome
from tests.http_differential.recording import echoed
from tests.http_differential.reference import Reading, Seen

_SANE_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def judge(reading: Reading, ours: Outcome) -> list[str]:
    """What is wrong with our answers, held against the reference. We may be stricter than it, never looser."""
    wrong: list[str] = []
    known = {seen.request_id for seen in reading.requests}
    if ours.unreadable and (not ours.closed or b"HTTP/1.1 " in ours.unreadable[1:]):  # but an answer may be cut
        wrong.append(f"sent what is no answer: {ours.unreadable[-80:]!r}")
    for at, (method, target, request_id) in enumerate(ours.carried_out):
        if at >= len(reading.requests):
            wrong.append(f"carried out {method} {target} ({request_id}), of which the reference knows nothing")
            break
        wrong += _compared(f"carried out request {at}", reading.requests[at], method, target, request_id)
    finals = ours.finals
    if any(answer.request_id is None for answer in ours.answers[:-1]):
        wrong.append("answered after a refusal by the connection")
    if ours.answers and ours.answers[-1].request_id is None:
        if not (ours.answers[-1].closes and ours.closed):
            wrong.append("refused, and did not close")
        if any(request_id in ours.had_body for _, _, request_id in ours.carried_out[len(finals) :]):
            wrong.append("refused in the place of an answer to what was carried out")
    if len(finals) > len(reading.requests):
        wrong.append(f"{len(finals)} answers for {len(reading.requests)} requests")
    for at, (answer, seen) in enumerate(zip(finals, reading.requests, strict=False)):
        wrong += _answered(at, answer, seen, known, last=at == len(finals) - 1, closed=ours.closed)
    announced = not finals or finals[-1].closes or finals[-1] is not ours.answers[-1] or bool(ours.unreadable)
    if ours.closed and not announced and _before_its_end(reading, finals):
        wrong.append("answered before the end of a body, kept the connection, and closed it after that")
    following = reading.requests[len(finals) : len(finals) + 1]
    if ours.continued > sum(seen.expects for seen in following):
        wrong.append(f"{ours.continued} times 100 Continue that nobody waits for")
    if reading.end != "open" and not ours.closed:
        wrong.append(f"left open where the reference is {reading.end} ({reading.why})")
    complete = sum(seen.end is not None for seen in reading.requests)
    if not ours.closed and len(finals) < complete:
        wrong.append(f"open, and owes {complete - len(finals)} answers")
    return wrong


def _compared(what: str, seen: Seen, method: str, target: str, request_id: str) -> Iterator[str]:
    if method != seen.method:
        yield f"{what} as {method}, and the reference reads {seen.method}"
    if seen.target.startswith("/") and "#" not in seen.target and target.rstrip("?") != seen.target.rstrip("?"):
        yield f"{what} to {target}, and the reference reads {seen.target}"
    if _SANE_ID.fullmatch(seen.request_id):
        if request_id != seen.request_id:
            yield f"{what} with the id {request_id}, and the reference reads {seen.request_id}"
    elif not OUR_ID.fullmatch(request_id):
        yield f"{what} with the id {request_id}, and the reference reads {seen.request_id!r}"


def _answered(at: int, answer: FinalAnswer, seen: Seen, known: set[str], *, last: bool, closed: bool) -> Iterator[str]:
    request_id = answer.request_id or ""
    if request_id != seen.request_id and (request_id in known or not OUR_ID.fullmatch(request_id)):
        yield f"answer {at} has the id {request_id}, and the reference reads {seen.request_id!r}"
    if answer.closes and not (last and closed):
        yield f"answer {at} says that it closes, and the connection goes on"
    if answer.continued > int(seen.expects):
        yield f"answer {at} comes after {answer.continued} times 100 Continue"
    path = seen.target.partition("?")[0]
    if answer.status == 200 and path in {"/echo", "/slow"} and seen.method not in {"HEAD", "CONNECT"}:
        if seen.end is None:
            yield f"answer {at} is to a body that the reference still waits for"
        elif answer.body != echoed(seen.body):
            yield f"answer {at} is to the body {answer.body!r}, and the reference reads {seen.body!r}"
    unread = seen.end is None or answer.fed < seen.end
    if seen.expects and unread and not answer.continued and not (last and closed):
        yield f"answer {at} came before a body that was never asked for, and the connection goes on"


def agree(reading: Reading, first: Outcome, other: Outcome) -> str | None:
    """What differs where one stream was cut in two ways.

    A connection that ended may have ended earlier. It may end in one way and stay open in another only by an answer
    that came before the end of a body and said that it closes: whether it did so depends on when the body came.
    """
    one: list[Any]
    two: list[Any]
    for what, one, two in (("carried out", first.done, other.done), ("answered", first.told, other.told)):
        shorter, longer = sorted((one, two), key=len)
        if longer[: len(shorter)] != shorter:
            return f"{what} {one} cut in one way, {two} in another"
        sooner = first if shorter is one else other
        early = sooner.closed and bool(sooner.finals) and sooner.finals[-1].closes
        ended = (first.closed and other.closed) or (early and _before_its_end(reading, sooner.finals))
        if len(shorter) < len(longer) and not ended:
            return f"{what} {one} cut in one way, {two} in another, and a connection is still open"
    return None


def _before_its_end(reading: Reading, finals: Sequence[FinalAnswer]) -> bool:
    """Whether the last answer came before the end of the body of its request."""
    if not finals or len(finals) > len(reading.requests):
        return False
    end = reading.requests[len(finals) - 1].end
    return end is None or finals[-1].fed < end
