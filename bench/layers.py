"""The layers of a request: which one a sampled stack belongs to, and a table of their microseconds."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

POSTGRES = "PostgreSQL's processes"
LOOP = "event loop, sockets, driver"
# In the order in which a request passes them. A frame is "function (path)"; the first rule that fits names its layer.
RULES = (
    ("log and metrics", re.compile(r"/monitoring/|^Exchange\.record |^App\.log_request ")),
    ("commit", re.compile(r"^(Writer\._(commit|commit_on_thread|checkpoint|run_on_thread)|_call_on_loop) ")),
    ("session", re.compile(r"/authentication\.py|/credentials\.py|/session_check\.py|^(\w+\.)?(run_check|_passes) ")),
    ("response", re.compile(r"/server/response\.py|^Exchange\._(whole|head) |^_response |^visible_to ")),
    ("JSON", re.compile(r"strongroom/wire/|^Request\.(read_body|_require_json) ")),
    ("statements", re.compile(r"strongroom/store/|asyncpg/|strongroom/identifiers\.py")),
    (
        "route and action",
        re.compile(r"/routes/|strongroom/(actions/|rules)|server/(app|routing|timeouts|limits)\.py"),
    ),
    ("HTTP", re.compile(r"/transport/(?!runner)|/server/(request|client_address|cors|buffers)")),
)
LAYERS = ("HTTP", "JSON", "session", "route and action", "statements", "commit", "response", "log and metrics", LOOP)


def layer_of(stack: tuple[str, ...]) -> str:
    """The layer of the innermost frame that has one; statements of a session check are of that."""
    found = ""
    for frame in reversed(stack):
        layer = next((name for name, rule in RULES if rule.search(frame)), "")
        if found == "statements" and layer == "session":
            return layer
        if found and layer not in {"statements", ""}:
            return found
        found = found or layer
    return found or LOOP


def by_layer(stacks: Counter[tuple[str, ...]], cost: float) -> dict[str, float]:
    """Microseconds of each layer; together they are what the server's own process takes for a request."""
    total = sum(stacks.values())
    found: Counter[str] = Counter()
    for stack, count in stacks.items():
        found[layer_of(stack)] += count
    return {name: round(found[name] / total * cost, 1) for name in LAYERS}


def text(result: dict[str, Any]) -> str:
    """The layers as rows, what was profiled as columns."""
    titles = {"strongroom": "SQLite", "strongroom-pg": "PostgreSQL"}
    columns = result["columns"]
    head = [
        f"{one['scenario']}, {titles.get(one['target'], one['target'])}, {one['clients']} at once" for one in columns
    ]
    lines = [f"{result['date']}; {result['machine']}. CPU µs of a request by layer, sampled under load.", ""]
    lines += ["| | " + " | ".join(head) + " |", "|---|" + "---:|" * len(columns)]
    for name in (*LAYERS, POSTGRES):
        lines.append(f"| {name} | " + " | ".join(f"{one['layers'].get(name, 0):.0f}" for one in columns) + " |")
    lines.append("| **together** | " + " | ".join(f"**{one['cpu_us']:.0f}**" for one in columns) + " |")
    lines.append("| median latency | " + " | ".join(f"{one['p50_us']:.0f}" for one in columns) + " |")
    return "\n".join(lines)
