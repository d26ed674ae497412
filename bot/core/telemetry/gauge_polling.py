"""Query metric values in the background, so that a scrape runs no query.

Values that cannot be read are left out of a scrape, so that nobody takes an old value for a current
one.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from bot.core.telemetry.instruments import MetricSample, PolledMetric
from bot.core.telemetry.metrics import SAMPLE_FAILURES

if TYPE_CHECKING:
    from prometheus_client.core import Metric

logger = logging.getLogger(__name__)

EVERY = 5.0
"""Seconds between two queries of a source."""

_PATIENCE = 4.0

Read = Callable[[], Awaitable[Iterable[MetricSample]]]
"""Returns the samples of a source."""


@dataclass(slots=True)
class _Source:
    name: str
    read: Read
    every: float
    readings: Sequence[MetricSample] = ()
    read_at: float = field(default=float("-inf"))
    failing: bool = False


class GaugePoller:
    """Queries sources and keeps their values until the next query; a Prometheus collector."""

    def __init__(self) -> None:
        self._sources: list[_Source] = []

    def add(self, name: str, read: Read, every: float = EVERY) -> None:
        """Add a source; it is queried once ``run`` starts.

        Args:
            name: The source's name, for people and as a label.
            read: Returns the samples; it fails after four seconds.
            every: Seconds between two queries.
        """
        self._sources.append(_Source(name, read, every))

    async def run(self) -> None:
        """Query the sources until cancelled; a source that hangs delays no other."""
        async with anyio.create_task_group() as tasks:
            for source in self._sources:
                tasks.start_soon(self._follow, source)

    def collect(self) -> Iterable[Metric]:
        """Return the current values for a scrape, without outdated ones."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        families: dict[PolledMetric, CounterMetricFamily | GaugeMetricFamily] = {}
        now = anyio.current_time()
        for source in self._sources:
            if now - source.read_at > 2 * source.every + _PATIENCE:
                continue
            for of, value, labels in source.readings:
                if of not in families:
                    kind = CounterMetricFamily if of.kind == "counter" else GaugeMetricFamily
                    families[of] = kind(of.name, of.text, labels=of.labels)
                families[of].add_metric([str(one) for one in labels], value)
        return families.values()

    async def _follow(self, source: _Source) -> None:
        while True:
            await self._ask(source)
            await anyio.sleep(source.every)

    async def _ask(self, source: _Source) -> None:
        try:
            with anyio.fail_after(_PATIENCE):
                source.readings = tuple(await source.read())
        except Exception as error:  # noqa: BLE001 (whatever one source raises, the others go on)
            source.readings = ()
            SAMPLE_FAILURES.add(1, source.name)
            if not source.failing:
                logger.warning("no metrics of the %s for now: %r", source.name, error)
            source.failing = True
        else:
            source.failing = False
            source.read_at = anyio.current_time()
