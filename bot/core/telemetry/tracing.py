"""Tracing: spans of the work for one message, across processes.

Until ``set_tracer`` installs a ``Tracer`` nothing happens and nothing is imported;
``otlp.export_traces`` installs one. A span's ``traceparent`` (https://www.w3.org/TR/trace-context/)
travels with messages and answers on the bus and is never on a tape. Attributes contain nobody's
text, name or chat.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar, Protocol

Value = str | int | float | bool
"""A span attribute's value."""

_NOTED = 10_000


class Span(Protocol):
    """One operation in a trace."""

    def set(self, **attributes: Value) -> None:
        """Set attributes."""
        ...

    def fail(self, kind: str) -> None:
        """Mark it as failed, with the type of error."""
        ...

    def end(self) -> None:
        """End a span that ``start_span`` started."""
        ...


class Tracer(Protocol):
    """Creates spans."""

    def span(
        self, name: str, parent: str | None, attributes: dict[str, Value]
    ) -> AbstractContextManager[Span]:
        """Return a span that is current in its ``with`` block; see ``span`` below."""
        ...

    def start_span(self, name: str, parent: str | None, attributes: dict[str, Value]) -> Span:
        """Return a span that is never the current one; see ``start_span`` below."""
        ...

    def traceparent(self) -> str | None:
        """Return the ``traceparent`` of the current span."""
        ...


class _Nothing:
    """A span that does nothing."""

    def set(self, **attributes: Value) -> None:
        pass

    def fail(self, kind: str) -> None:
        pass

    def end(self) -> None:
        pass


class _Tracing:
    """The installed tracer, and the saved traceparents."""

    tracer: Tracer | None = None
    noted: ClassVar[OrderedDict[tuple[str, str], str]] = OrderedDict()


NOOP_SPAN: Span = _Nothing()
"""The span while no tracer is installed."""

_NOTHING_HERE = nullcontext(NOOP_SPAN)


def set_tracer(tracer: Tracer | None) -> None:
    """Install a tracer, or with None disable tracing."""
    _Tracing.tracer = tracer
    _Tracing.noted.clear()


def span(name: str, parent: str | None = None, **attributes: Value) -> AbstractContextManager[Span]:
    """Return a span for a ``with`` block; an exception marks it as failed, with its type.

    Args:
        name: The operation, one of few names.
        parent: The ``traceparent`` of the parent span; by default the current span's.
        attributes: The span's attributes.
    """
    tracer = _Tracing.tracer
    return _NOTHING_HERE if tracer is None else tracer.span(name, parent, attributes)


def start_span(name: str, parent: str | None = None, **attributes: Value) -> Span:
    """Start a span that ends elsewhere: ``Span.end`` must be called."""
    tracer = _Tracing.tracer
    return NOOP_SPAN if tracer is None else tracer.start_span(name, parent, attributes)


def current_traceparent() -> str | None:
    """Return the current span's ``traceparent``, to continue the trace; None without a span."""
    tracer = _Tracing.tracer
    return None if tracer is None else tracer.traceparent()


def save_traceparent(session: str, about: str, traceparent: str | None) -> None:
    """Save the ``traceparent`` of a message or turn, for ``find_traceparent``."""
    if traceparent is None or _Tracing.tracer is None:
        return
    noted = _Tracing.noted
    noted[(session, about)] = traceparent
    noted.move_to_end((session, about))
    if len(noted) > _NOTED:
        noted.popitem(last=False)


def find_traceparent(session: str, *about: str | None) -> str | None:
    """Return the ``traceparent`` saved for the first of these messages or turns that has one."""
    found = (_Tracing.noted.get((session, one)) for one in about if one is not None)
    return next((traceparent for traceparent in found if traceparent is not None), None)
