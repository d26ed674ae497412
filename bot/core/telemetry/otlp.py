"""Export spans to a collector by OTLP over HTTP, configured by OpenTelemetry's variables.

It is enabled if ``OTEL_EXPORTER_OTLP_ENDPOINT`` or ``OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`` is set. A
thread sends spans in batches; what a collector does not accept in time is dropped, and a hanging
collector delays neither the program's work nor its end.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread

from bot.core.patterns import LazyPattern
from bot.core.telemetry.tracing import Span, Value, set_tracer

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span as OtelSpan
    from opentelemetry.trace import SpanKind

logger = logging.getLogger(__name__)

_FLUSH = 5.0
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PARENT = LazyPattern(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})")
_KINDS = {
    "publish": "PRODUCER",
    "turn": "CONSUMER",
    "deliver": "CONSUMER",
    "model": "CLIENT",
}


def export_enabled() -> bool:
    """Return whether the environment enables traces."""
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if os.environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none":
        return False
    return any(os.environ.get(name, "").strip() for name in _ENDPOINTS)


@asynccontextmanager
async def export_traces(role: str = "", *, seconds: float = _FLUSH) -> AsyncIterator[None]:
    """Export spans while the context is open, if the environment enables it; flush at the end.

    Args:
        role: The process's role, sent to the collector.
        seconds: The most seconds for the flush.
    """
    if not export_enabled():
        yield
        return
    try:
        provider = await anyio.to_thread.run_sync(_provider, role)
    except ImportError:
        # The variable may be meant for other programs on this machine.
        logger.warning("tracing is off: it needs pip install 'tapebot[operate]'")
        yield
        return
    set_tracer(_Tracer(provider))
    try:
        yield
    finally:
        set_tracer(None)
        with anyio.CancelScope(shield=True):
            await _shut(provider, seconds)


def _provider(role: str) -> TracerProvider:
    from importlib.metadata import version

    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    if "grpc" in os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", ""):
        logger.warning("OTEL_EXPORTER_OTLP_PROTOCOL: traces are sent over HTTP, not gRPC")
    about: dict[str, str | int] = {
        "service.version": version("tapebot"),
        "process.pid": os.getpid(),
    }
    if role:
        about["tapebot.role"] = role
    if not os.environ.get("OTEL_SERVICE_NAME", "").strip():
        about["service.name"] = "tapebot"
    # An exit that bypasses this module must not wait for a collector.
    provider = TracerProvider(resource=Resource.create(about), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


async def _shut(provider: TracerProvider, seconds: float) -> None:
    """Flush within a time limit; the daemon thread ends with the process at the latest."""
    done = anyio.Event()
    token = anyio.lowlevel.current_token()

    def shut() -> None:
        provider.shutdown()
        # The event loop may be closed by now.
        with suppress(RuntimeError):
            anyio.from_thread.run_sync(done.set, token=token)

    threading.Thread(target=shut, name="tapebot-traces", daemon=True).start()
    with anyio.move_on_after(seconds):
        await done.wait()
        return
    logger.warning("the last traces were not accepted within %g s and are dropped", seconds)


class _Span:
    """An OpenTelemetry span."""

    def __init__(self, inner: OtelSpan) -> None:
        self._inner = inner

    def set(self, **attributes: Value) -> None:
        for name, value in attributes.items():
            self._inner.set_attribute(f"tapebot.{name}", value)

    def fail(self, kind: str) -> None:
        from opentelemetry.trace import StatusCode

        # Not the error's message, which may contain somebody's text.
        self._inner.set_attribute("error.type", kind)
        self._inner.set_status(StatusCode.ERROR)

    def end(self) -> None:
        self._inner.end()


class _Tracer:
    """Creates OpenTelemetry spans; see ``bot.core.telemetry.tracing.Tracer``."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("tapebot")

    @contextmanager
    def span(self, name: str, parent: str | None, attributes: dict[str, Value]) -> Iterator[Span]:
        from opentelemetry import context, trace

        inner = self._start(name, parent, attributes)
        here = _Span(inner)
        attached = context.attach(trace.set_span_in_context(inner))
        try:
            yield here
        except Exception as error:
            here.fail(type(error).__name__)
            raise
        except BaseException:
            here.set(cancelled=True)
            raise
        finally:
            context.detach(attached)
            inner.end()

    def start_span(self, name: str, parent: str | None, attributes: dict[str, Value]) -> Span:
        return _Span(self._start(name, parent, attributes))

    def traceparent(self) -> str | None:
        from opentelemetry.trace import get_current_span

        here = get_current_span().get_span_context()
        if not here.is_valid:
            return None
        return f"00-{here.trace_id:032x}-{here.span_id:016x}-{here.trace_flags:02x}"

    def _start(self, name: str, parent: str | None, attributes: dict[str, Value]) -> OtelSpan:
        given = {f"tapebot.{key}": value for key, value in attributes.items()}
        return self._tracer.start_span(name, _context(parent), _kind(name), given)


def _kind(name: str) -> SpanKind:
    from opentelemetry.trace import SpanKind

    return SpanKind[_KINDS.get(name, "INTERNAL")]


def _context(parent: str | None) -> Context | None:
    """Return the context of a ``traceparent``; None, the current context, if it is invalid."""
    found = _PARENT.fullmatch(parent) if parent is not None else None
    if found is None:
        return None
    from opentelemetry.trace import (
        NonRecordingSpan,
        SpanContext,
        TraceFlags,
        set_span_in_context,
    )

    trace, place, flags = (int(part, 16) for part in found.groups())
    return set_span_in_context(
        NonRecordingSpan(SpanContext(trace, place, is_remote=True, trace_flags=TraceFlags(flags)))
    )
