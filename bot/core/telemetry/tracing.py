"""Spans: what happened for one message, over all processes that had it in hand.

Nothing is done, and nothing imported, while no ``Tracer`` is in place; ``exporting`` puts one there. The
text of a trace's place (``traceparent`` of https://www.w3.org/TR/trace-context/) travels with messages
and answers on the bus; it never stands on a tape. Attributes hold no text, name or chat of anybody.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar, Protocol

Value = str | int | float | bool
"""An attribute's."""

_NOTED = 10_000


class Span(Protocol):
    """One piece of work in a trace."""

    def set(self, **attributes: Value) -> None:
        """Say more about it."""
        ...

    def fail(self, kind: str) -> None:
        """Say that it failed, by the kind of error."""
        ...

    def end(self) -> None:
        """Say that it is over, where it was begun by ``begin``."""
        ...


class Tracer(Protocol):
    """Makes spans."""

    def span(
        self, name: str, parent: str | None, attributes: dict[str, Value]
    ) -> AbstractContextManager[Span]:
        """Return a span that is the current one in its ``with`` block; see ``span`` below."""
        ...

    def start_span(self, name: str, parent: str | None, attributes: dict[str, Value]) -> Span:
        """Return a span that is never the current one; see ``begin`` below."""
        ...

    def traceparent(self) -> str | None:
        """Return the place of the current span."""
        ...


class _Nothing:
    """The span that does nothing."""

    def set(self, **attributes: Value) -> None:
        pass

    def fail(self, kind: str) -> None:
        pass

    def end(self) -> None:
        pass


class _Tracing:
    """What is switched on."""

    tracer: Tracer | None = None
    noted: ClassVar[OrderedDict[tuple[str, str], str]] = OrderedDict()


NOOP_SPAN: Span = _Nothing()
"""Stands for a span where there is none."""

_NOTHING_HERE = nullcontext(NOOP_SPAN)


def set_tracer(tracer: Tracer | None) -> None:
    """Make spans from now on, or none any more."""
    _Tracing.tracer = tracer
    _Tracing.noted.clear()


def tracing_enabled() -> bool:
    """Say whether spans are made."""
    return _Tracing.tracer is not None


def span(name: str, parent: str | None = None, **attributes: Value) -> AbstractContextManager[Span]:
    """Return a span around a ``with`` block; an exception ends it as failed, by its kind.

    Args:
        name: What is done, one of few.
        parent: The place in a trace under which it stands; by default the current span's.
        attributes: What it is done to, with which bounds.
    """
    tracer = _Tracing.tracer
    return _NOTHING_HERE if tracer is None else tracer.span(name, parent, attributes)


def start_span(name: str, parent: str | None = None, **attributes: Value) -> Span:
    """Return a span that ends elsewhere than it began: ``Span.end`` must be called."""
    tracer = _Tracing.tracer
    return NOOP_SPAN if tracer is None else tracer.start_span(name, parent, attributes)


def current_traceparent() -> str | None:
    """Return the place of the current span, for whoever goes on with it; None where there is none."""
    tracer = _Tracing.tracer
    return None if tracer is None else tracer.traceparent()


def save_traceparent(session: str, about: str, traceparent: str | None) -> None:
    """Keep the place of what a message or a turn was traced as, for ``noted``."""
    if traceparent is None or _Tracing.tracer is None:
        return
    noted = _Tracing.noted
    noted[(session, about)] = traceparent
    noted.move_to_end((session, about))
    if len(noted) > _NOTED:
        noted.popitem(last=False)


def find_traceparent(session: str, *about: str | None) -> str | None:
    """Return the place that was noted for the first of these messages or turns that has one."""
    found = (_Tracing.noted.get((session, one)) for one in about if one is not None)
    return next((place for place in found if place is not None), None)
