"""What is counted, and the switch that makes it count.

Rule 1: while nothing is switched on an instrument does nothing, and nothing is imported.
Rule 2: labels are few: past an instrument's bound all that is new is counted as ``other``.
Rule 3: no label is anybody's text, name or chat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from bot.core.errors import SettingsError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_OTHER = "other"
_instruments: list[Counter | Histogram] = []


class _Registered:
    """The registry that is switched on, if one is."""

    registry: CollectorRegistry | None = None


class _Children:
    """Finds an instrument's part for some labels, and bounds how many there are."""

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
    """Something that only grows.

    Args:
        name: By Prometheus' conventions, with ``_total``.
        text: What it counts, for people.
        labels: Their names.
        most: Series that it may have.
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
        """Count so much more."""
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
            # One without labels shows a zero before it first counts.
            self._children.find(())


class Histogram:
    """How long something takes, in seconds.

    Args:
        name: By Prometheus' conventions, with ``_seconds``.
        text: What it measures, for people.
        labels: Their names.
        bounds: Upper bounds of its buckets.
        most: Series that it may have, buckets not counted.
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
        """Take in one that took so long."""
        if self._on:
            self._children.find(labels).observe(seconds)

    def bind(self, registry: CollectorRegistry | None) -> None:
        """Measure into a registry, or nowhere."""
        self._on = registry is not None
        if registry is None:
            self._children.bind(None)
            return
        from prometheus_client import Histogram as Real

        names = self._children.names
        self._children.bind(
            Real(self.name, self._text, names, buckets=self._bounds, registry=registry)
        )


class SampledMetric(NamedTuple):
    """A value that has to be asked for; see ``bot.core.telemetry.sampling``.

    Attributes:
        name: By Prometheus' conventions.
        text: What it is, for people.
        labels: Their names.
        kind: ``counter`` for what only grows while a process lives.
    """

    name: str
    text: str
    labels: tuple[str, ...] = ()
    kind: Literal["gauge", "counter"] = "gauge"


class MetricSample(NamedTuple):
    """One value of a ``Sampled``."""

    metric: SampledMetric
    value: float
    labels: tuple[str, ...] = ()


def metrics_enabled() -> bool:
    """Say whether anything counts."""
    return _Registered.registry is not None


def enable_metrics() -> CollectorRegistry:
    """Have every instrument count, from now on; return where they do.

    Raises:
        SettingsError: The package for it is missing.
    """
    if _Registered.registry is not None:
        return _Registered.registry
    try:
        import prometheus_client
    except ImportError as error:
        raise SettingsError(
            "TAPEBOT_OPERATE_LISTEN needs packages that are not installed: "
            "pip install 'tapebot[operate]'"
        ) from error
    # When each series was made doubles them, and nobody asks.
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
    """Have nothing count any more, and forget what was counted."""
    _Registered.registry = None
    for instrument in _instruments:
        instrument.bind(None)
