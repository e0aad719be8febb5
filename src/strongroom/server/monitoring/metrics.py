"""Metrics: counters, gauges and histograms in the format of Prometheus. No label names a person."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from strongroom import errors
from strongroom.server.monitoring import process
from strongroom.store.commit_metrics import SECONDS, Histogram

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from strongroom.server.buffers import BufferBudget
    from strongroom.server.monitoring.shared_metrics import Samples
    from strongroom.store import Database

# Every metric: its name, its type, its help text.
FAMILIES: Final = (
    ("strongroom_requests_total", "counter", "Requests that were answered, by route and status"),
    ("strongroom_request_seconds", "histogram", "Time from the headers of a request to the end of its answer"),
    ("strongroom_refusals_total", "counter", "Requests that were refused, by the code of the refusal"),
    ("strongroom_logins_total", "counter", "Logins by what came of them: ok, failed, throttled or disabled"),
    ("strongroom_connection_refusals_total", "counter", "Connections that were refused before there was a request"),
    ("strongroom_commit_writes", "histogram", "Writes that shared one commit"),
    ("strongroom_commit_seconds", "histogram", "Time that a commit took until the database had it"),
    ("strongroom_read_batch_failures_total", "counter", "Queries for many requests at once that PostgreSQL refused"),
    ("strongroom_connections", "gauge", "Open connections"),
    ("strongroom_buffered_bytes", "gauge", "Bytes of unfinished requests and of answers that clients have not taken"),
    ("strongroom_buffer_cuts_total", "counter", "Connections that were cut because buffers were over BUFFER_BYTES"),
    ("strongroom_event_streams", "gauge", "Clients that listen for events"),
    ("strongroom_queue_depth", "gauge", "How many wait: to write, for a password to be hashed, for a list"),
    ("strongroom_database_bytes", "gauge", "Bytes that the database takes, its log included"),
    ("strongroom_deletions", "gauge", "Deleted vaults and accounts whose rows are still to be deleted"),
    ("strongroom_deletion_age_seconds", "gauge", "Time since the first of them was deleted; 0 where there is none"),
    ("strongroom_disk_free_bytes", "gauge", "Bytes that are free on the disk of the database file"),
    ("strongroom_ready", "gauge", "Whether the server can do its work: 1, or 0"),
    ("strongroom_backup_age_seconds", "gauge", "Time since the newest backup was finished"),
    ("strongroom_backup_success_timestamp_seconds", "gauge", "When the newest backup was begun"),
    ("strongroom_backup_failures_total", "counter", "Backups of the server's own that failed"),
    ("strongroom_certificate_expiry_timestamp_seconds", "gauge", "When the certificate that is served ends"),
    ("process_resident_memory_bytes", "gauge", "Resident memory of all processes"),
    ("process_cpu_seconds_total", "counter", "Processor time of all processes, in seconds"),
    ("process_open_fds", "gauge", "Open files and connections of all processes"),
    ("process_max_fds", "gauge", "How many of them the system allows, added up"),
    ("process_start_time_seconds", "gauge", "When the server began, in seconds since 1970"),
    ("strongroom_processes", "gauge", "Processes that serve on this node"),
    ("strongroom_info", "gauge", "Always 1; the labels say what runs"),
)
_KINDS: Final = {name: kind for name, kind, _ in FAMILIES}
TURNED_AWAY: Final = (400, 408, 431, 503)  # how a connection is refused before there is a request
_LOGINS: Final = {200: "ok", 401: "failed", 403: "disabled", 429: "throttled"}


class _RouteMetrics:
    """The metrics of one route."""

    __slots__ = ("latency", "method", "route", "statuses")

    def __init__(self, method: str, route: str) -> None:
        self.method = method
        self.route = route
        self.statuses: dict[int, int] = {}
        self.latency = Histogram(SECONDS)


class Metrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        self._routes: dict[tuple[str, str], _RouteMetrics] = {}
        self._before: Samples = {}
        self.refusals = dict.fromkeys(errors.codes(), 0)  # a series that appears with its first count has no increase
        self.turned_away = dict.fromkeys(TURNED_AWAY, 0)
        self.backup_failures = 0
        self.connections = 0

    def request(self, method: str, route: str, status: int, seconds: float | None) -> None:
        """Count a request; `seconds` is None for a stream, whose time is no latency."""
        route_metrics = self._routes.get((method, route))
        if route_metrics is None:
            route_metrics = self._routes[method, route] = _RouteMetrics(method, route)
        statuses = route_metrics.statuses
        statuses[status] = statuses.get(status, 0) + 1
        if seconds is None:
            return
        latency = route_metrics.latency
        latency.counts[bisect_left(SECONDS, seconds)] += 1
        latency.total += seconds

    def refusal(self, code: str) -> None:
        """Count a refusal."""
        self.refusals[code] = self.refusals.get(code, 0) + 1

    def backup_failed(self) -> None:
        """Count a backup that failed."""
        self.backup_failures += 1

    def turn_away(self, status: int) -> None:
        """Count a connection that was refused before there was a request."""
        self.turned_away[status] = self.turned_away.get(status, 0) + 1

    def continue_from(self, before: Samples) -> None:
        """Continue the counters of an earlier process: a counter never goes down while the server runs."""
        self._before = {name: dict(values) for name, values in before.items() if _KINDS.get(name) != "gauge"}

    def samples(self, db: Database, waiting: Mapping[str, int], streams: int, buffers: BufferBudget) -> Samples:
        """The samples of this process."""
        found: Samples = {
            "strongroom_requests_total": {},
            "strongroom_request_seconds": {},
            "strongroom_logins_total": dict.fromkeys((format_labels(result=result) for result in _LOGINS.values()), 0),
            "strongroom_refusals_total": {format_labels(code=code): count for code, count in self.refusals.items()},
            "strongroom_connection_refusals_total": {
                format_labels(status=status): count for status, count in self.turned_away.items()
            },
            "strongroom_commit_writes": _histogram(db.commit_metrics.writes),
            "strongroom_commit_seconds": _histogram(db.commit_metrics.seconds),
            "strongroom_read_batch_failures_total": {"": db.commit_metrics.failed_batches},
            "strongroom_connections": {"": self.connections},
            "strongroom_buffered_bytes": {"": buffers.held},
            "strongroom_buffer_cuts_total": {"": buffers.cut},
            "strongroom_event_streams": {"": streams},
            "strongroom_queue_depth": {format_labels(queue=name): count for name, count in waiting.items()},
            "strongroom_processes": {"": 1},
            "strongroom_backup_failures_total": {"": self.backup_failures},
            **{name: {"": value} for name, value in process.figures().items()},
        }
        for route_metrics in self._routes.values():
            for status, count in route_metrics.statuses.items():
                labels = format_labels(method=route_metrics.method, route=route_metrics.route, status=status)
                found["strongroom_requests_total"][labels] = count
                if route_metrics.route == "/auth/email/login" and status in _LOGINS:
                    found["strongroom_logins_total"][format_labels(result=_LOGINS[status])] = count
            found["strongroom_request_seconds"] |= _histogram(
                route_metrics.latency, method=route_metrics.method, route=route_metrics.route
            )
        return sum_samples([self._before, found])


def exposition_text(samples: Samples) -> str:
    """The samples in the text format of Prometheus."""
    lines: list[str] = []
    for name, kind, meaning in FAMILIES:
        values = samples.get(name)
        if values:
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{label} {value:.15g}" for label, value in values.items()]
    return "\n".join(lines) + "\n"


def format_labels(**labels: object) -> str:
    """Labels in the text format. Every value is the server's own, so nothing needs escaping."""
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


def _histogram(histogram: Histogram, **labels: object) -> dict[str, float]:
    """The samples of a histogram, with cumulative buckets."""
    found: dict[str, float] = {}
    running = 0
    for bound, count in zip((*histogram.bounds, None), list(histogram.counts), strict=True):
        running += count
        found["_bucket" + format_labels(**labels, le="+Inf" if bound is None else f"{bound:g}")] = running
    mine = format_labels(**labels) if labels else ""
    found["_sum" + mine] = histogram.total
    found["_count" + mine] = running
    return found


def sum_samples(parts: Iterable[Samples]) -> Samples:
    """The sums of the samples of several processes."""
    total: Samples = {}
    for samples in parts:
        for name, values in samples.items():
            into = total.setdefault(name, {})
            for label, value in values.items():
                into[label] = into.get(label, 0) + value
    return total
