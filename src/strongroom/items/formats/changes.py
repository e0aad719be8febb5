"""What a foreign item has besides what our writer makes of it: kept with the item, and put back on the way out.

    made = write(read(original))
    applied(made, changes(made, original)) == original

A change says what was made then. Where the item was edited since, something else is made there, and the change does not
apply: no old value comes back.
"""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any, TypeAlias

Change: TypeAlias = dict[str, Any]  # "at": the path; "from": what was made there; "to": what the original has


def changes(made: Any, original: Any) -> list[Change]:
    """How the original differs from what is made."""
    found: list[Change] = []
    _compare(made, original, [], found)
    return sorted(found, key=lambda change: [str(step) for step in change["at"]])


def _compare(made: Any, original: Any, at: list[str | int], found: list[Change]) -> None:
    if isinstance(made, dict) and isinstance(original, dict):
        for name, value in original.items():
            if name in made:
                _compare(made[name], value, [*at, name], found)
            else:
                found.append({"at": [*at, name], "to": value})
        found.extend({"at": [*at, name], "from": made[name]} for name in made if name not in original)
    elif isinstance(made, list) and isinstance(original, list) and len(made) == len(original):
        for number, (one, other) in enumerate(zip(made, original, strict=True)):
            _compare(one, other, [*at, number], found)
    elif type(made) is not type(original) or made != original:
        found.append({"at": at, "from": made, "to": original})


def applied(made: Any, kept: list[Change]) -> Any:
    """What is made now, with the changes that still apply."""
    whole = {"": copy.deepcopy(made)}
    for change in kept:
        steps: list[Any] = ["", *change["at"]]
        path, last = steps[:-1], steps[-1]
        place: Any = whole
        for step in path:
            place = _step(place, step)
        if isinstance(place, dict):
            if "from" in change and (last not in place or place[last] != change["from"]):
                continue
            if "to" not in change:
                del place[last]
            elif "from" in change or last not in place:
                place[last] = copy.deepcopy(change["to"])
        elif isinstance(place, list) and {"from", "to"} <= change.keys() and _equals(place, last, change["from"]):
            place[last] = copy.deepcopy(change["to"])
    return whole[""]


def _equals(place: list[Any], at: Any, value: Any) -> bool:
    return isinstance(at, int) and 0 <= at < len(place) and place[at] == value


def _step(place: Any, step: str | int) -> Any:
    if isinstance(place, dict):
        return place.get(step)
    if isinstance(place, list) and isinstance(step, int) and 0 <= step < len(place):
        return place[step]
    return None


def by_name(listed: Any, member: str) -> Any:
    """A list of objects as one object, by a member of each and a number: one that is gone does not move the others."""
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        return listed
    found: dict[str, Any] = {}
    numbers: Counter[str] = Counter()
    for one in listed:
        name = str(one.get(member))
        numbers[name] += 1
        found[f"{name}#{numbers[name]}"] = one
    return found


def in_order(named: Any) -> Any:
    """The list again."""
    return [*named.values()] if isinstance(named, dict) else named


def well_formed(kept: Any) -> bool:
    """Whether changes are such: a document may hold anything."""
    return isinstance(kept, list) and all(
        isinstance(one, dict)
        and isinstance(one.get("at"), list)
        and all(isinstance(step, str | int) for step in one["at"])
        for one in kept
    )
