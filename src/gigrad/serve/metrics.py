"""Counts and durations in the text format of Prometheus, version 0.0.4.

Written out here, since the format is a dozen lines and its client package keeps registries of its own. Everything is
counted on the event loop, so that no lock is needed; every label has a fixed set of values, so that nothing grows.
"""

from __future__ import annotations

import bisect
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from .problems import Problem

_Sample = tuple[Mapping[str, str], float]

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of durations, in seconds: a record takes some milliseconds."""


class Metrics:
    """Counters and histograms of a service since its start."""

    def __init__(self, name: str, version: str) -> None:
        self.model = {"name": name, "version": version}
        self.began = time.time()
        self.requests: Counter[tuple[str, int]] = Counter()
        self.refusals: Counter[str] = Counter()
        self.rows: Counter[str] = Counter()
        self._durations: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._seconds: dict[str, float] = defaultdict(float)

    def count(self, endpoint: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self.requests[endpoint, status] += 1
        self._durations[endpoint][bisect.bisect_left(BUCKETS, seconds)] += 1
        self._seconds[endpoint] += seconds

    def refuse(self, endpoint: str, problem: Problem, seconds: float) -> None:
        """Count a request that was refused."""
        self.refusals[problem.code] += 1
        self.count(endpoint, problem.status, seconds)

    def text(self, waiting: int, limit: int) -> str:
        """All metrics as text; `waiting` requests are computed or queued, of at most `limit`."""
        lines = [
            *_family("gigrad_requests_total", "counter", "Requests answered", (
                ({"endpoint": e, "status": str(s)}, n) for (e, s), n in sorted(self.requests.items()))),
            *_family("gigrad_refusals_total", "counter", "Requests refused, by the code of the refusal", (
                ({"code": code}, n) for code, n in sorted(self.refusals.items()))),
            *_family("gigrad_rows_total", "counter", "Records explained", (
                ({"endpoint": e}, n) for e, n in sorted(self.rows.items()))),
            *_family("gigrad_request_seconds", "histogram", "Time from the head of a request to its answer", ()),
            *self._histograms(),
            *_family("gigrad_requests_in_progress", "gauge", "Requests computed or waiting", [({}, waiting)]),
            *_family("gigrad_requests_in_progress_limit", "gauge", "How many there may be", [({}, limit)]),
            *_family("gigrad_model_info", "gauge", "The explainer that is served", [(self.model, 1)]),
            *_family("process_start_time_seconds", "gauge", "When the server was started", [({}, self.began)]),
            *_family("process_resident_memory_bytes", "gauge", "Memory of the process", [({}, resident())]),
        ]  # fmt: skip
        return "\n".join(lines) + "\n"

    def _histograms(self) -> Iterator[str]:
        """The lines of the histograms of durations."""
        name = "gigrad_request_seconds"
        for endpoint, counts in sorted(self._durations.items()):
            total = 0
            for bound, n in zip((*map(repr, BUCKETS), "+Inf"), counts, strict=True):
                total += n
                yield _line(f"{name}_bucket", {"endpoint": endpoint, "le": bound}, total)
            yield _line(f"{name}_sum", {"endpoint": endpoint}, self._seconds[endpoint])
            yield _line(f"{name}_count", {"endpoint": endpoint}, total)


def resident() -> int:
    """The memory of this process in bytes; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def _family(name: str, kind: str, help: str, samples: Iterable[_Sample]) -> Iterator[str]:
    """The lines of one metric, in Prometheus's text format."""
    yield f"# HELP {name} {help}."
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        yield _line(name, labels, value)


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    quoted = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{quoted}}} {value!r}" if quoted else f"{name} {value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
