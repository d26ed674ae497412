"""Metric instruments, and the switch that enables them.

Rule 1: until metrics are enabled an instrument does nothing, and nothing is imported.
Rule 2: labels are few: beyond an instrument's limit every new label is counted as ``other``.
Rule 3: no label is anybody's text, name or chat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from bot.core.errors import SettingsError
from bot.core.i18n import _

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_OTHER = "other"
_instruments: list[Counter | Histogram] = []


class _Registered:
    """The registry while metrics are enabled."""

    registry: CollectorRegistry | None = None


class _Children:
    """An instrument's series by label, bounded in number."""

    def __init__(self, labels: Sequence[str], most: int) -> None:
        self.names = tuple(labels)
        self._most = most
        self._parent: Any = None
        self._known: dict[tuple[str, ...], Any] = {}

    def bind(self, parent: Any) -> None:
        self._parent = parent
        self._known = {}

    def find(self, labels: tuple[str, ...]) -> Any:
        found = self._known.get(labels)
        if found is None:
            if len(self._known) >= self._most:
                labels = (_OTHER,) * len(labels)
            found = self._parent.labels(*labels) if self.names else self._parent
            self._known[labels] = found
        return found


class Counter:
    """A value that only grows.

    Args:
        name: The metric's name by Prometheus' conventions, with ``_total``.
        text: The metric's description.
        labels: The names of its labels.
        most: The most series.
    """

    def __init__(
        self, name: str, text: str, labels: Sequence[str] = (), *, most: int = 200
    ) -> None:
        self.name = name
        self._text = text
        self._children = _Children(labels, most)
        self._on = False
        _instruments.append(self)

    def add(self, amount: float, *labels: str) -> None:
        """Increase the counter."""
        if self._on:
            self._children.find(labels).inc(amount)

    def bind(self, registry: CollectorRegistry | None) -> None:
        """Count into a registry, or nowhere."""
        self._on = registry is not None
        if registry is None:
            self._children.bind(None)
            return
        from prometheus_client import Counter as Real

        self._children.bind(Real(self.name, self._text, self._children.names, registry=registry))
        if not self._children.names:
            # Without labels it shows a zero before the first count.
            self._children.find(())


class Histogram:
    """Durations in seconds.

    Args:
        name: The metric's name by Prometheus' conventions, with ``_seconds``.
        text: The metric's description.
        labels: The names of its labels.
        bounds: Upper bounds of its buckets.
        most: The most series, not counting buckets.
    """

    def __init__(
        self,
        name: str,
        text: str,
        labels: Sequence[str] = (),
        *,
        bounds: Sequence[float],
        most: int = 100,
    ) -> None:
        self.name = name
        self._text = text
        self._bounds = tuple(bounds)
        self._children = _Children(labels, most)
        self._on = False
        _instruments.append(self)

    def observe(self, seconds: float, *labels: str) -> None:
        """Record a duration."""
        if self._on:
            self._children.find(labels).observe(seconds)

    def bind(self, registry: CollectorRegistry | None) -> None:
        """Record into a registry, or nowhere."""
        self._on = registry is not None
        if registry is None:
            self._children.bind(None)
            return
        from prometheus_client import Histogram as Real

        names = self._children.names
        self._children.bind(
            Real(self.name, self._text, names, buckets=self._bounds, registry=registry)
        )


class PolledMetric(NamedTuple):
    """A metric whose value must be queried; see ``bot.core.telemetry.gauge_polling``.

    Attributes:
        name: The metric's name by Prometheus' conventions.
        text: The metric's description.
        labels: The names of its labels.
        kind: ``counter`` for a value that only grows while a process lives.
    """

    name: str
    text: str
    labels: tuple[str, ...] = ()
    kind: Literal["gauge", "counter"] = "gauge"


class MetricSample(NamedTuple):
    """One value of a ``PolledMetric``."""

    metric: PolledMetric
    value: float
    labels: tuple[str, ...] = ()


def enable_metrics() -> CollectorRegistry:
    """Enable every instrument; return the registry.

    Raises:
        SettingsError: The package is missing.
    """
    if _Registered.registry is not None:
        return _Registered.registry
    try:
        import prometheus_client
    except ImportError as error:
        raise SettingsError(
            _(
                "TAPEBOT_OPERATE_LISTEN needs packages that are not installed: "
                "pip install 'tapebot[operate]'"
            )
        ) from error
    # ``_created`` series would double the number of series.
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = prometheus_client.CollectorRegistry()
    prometheus_client.ProcessCollector(registry=registry)
    prometheus_client.PlatformCollector(registry=registry)
    prometheus_client.GCCollector(registry=registry)
    for instrument in _instruments:
        instrument.bind(registry)
    _Registered.registry = registry
    return registry


def disable_metrics() -> None:
    """Disable every instrument, and drop the counts."""
    _Registered.registry = None
    for instrument in _instruments:
        instrument.bind(None)
