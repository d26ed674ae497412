"""A message's way can be followed over processes, and nobody's words are in what is sent of it."""

from __future__ import annotations

import os
import socket
import sys
from collections import Counter
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread
import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from bot.bus.instrumented import InstrumentedBus
from bot.core.errors import ModelRejected
from bot.core.telemetry import tracing
from bot.core.telemetry.otlp import export_traces
from bot.llm.instrumented import instrumented
from bot.testing.host import session_host
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply, tool_call_reply

ENDS = """
import anyio
from bot.core.telemetry.otlp import export_traces
from bot.core.telemetry.tracing import span

async def main():
    async with export_traces(seconds=1.0):
        with span("turn"):
            pass

anyio.run(main)
"""
"""A process that has made a span and ends."""


class Observed(ScriptedModel):
    complete = instrumented(ScriptedModel.complete)


class Collector:
    def __init__(self) -> None:
        self.spans: list = []
        self.bodies = b""

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.bodies += body
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)
        return web.Response(content_type="application/x-protobuf")


@asynccontextmanager
async def collecting():
    """Yield a collector and the environment that sends to it."""
    collector = Collector()
    app = web.Application()
    app.router.add_post("/v1/traces", collector.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield collector, {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}"}
    finally:
        await runner.cleanup()


async def test_of_a_failure_only_its_kind_is_sent(monkeypatch):
    async with collecting() as (collector, environment):
        monkeypatch.setenv(*environment.popitem())
        async with export_traces("worker", seconds=60.0):
            with pytest.raises(ModelRejected), tracing.span("turn"):
                raise ModelRejected("Ada's zebra")
    (span,) = collector.spans
    assert span.status.code == span.status.STATUS_CODE_ERROR
    assert [one.value.string_value for one in span.attributes] == ["ModelRejected"]
    assert b"zebra" not in collector.bodies


@pytest.mark.slow
async def test_a_collector_that_takes_nothing_keeps_no_process_from_ending():
    with socket.create_server(("127.0.0.1", 0)) as server:
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.getsockname()[1]}",
            # Of its own accord the exporter would wait for longer than this test.
            "OTEL_EXPORTER_OTLP_TIMEOUT": "600",
        }
        with anyio.fail_after(60):
            done = await anyio.run_process(
                [sys.executable, "-c", ENDS], env={**os.environ, **environment}, check=False
            )
    assert done.returncode == 0, done.stderr.decode()
    assert b"not accepted within 1 s" in done.stderr


async def test_a_turn_that_a_kill_cut_off_goes_on_in_the_same_trace(tmp_path, monkeypatch):
    async with collecting() as (collector, environment):
        monkeypatch.setenv(*environment.popitem())
        held = PausedStep(text_reply("never said"))
        async with export_traces("worker", seconds=60.0):
            async with session_host(tmp_path, Observed([held]), over=InstrumentedBus) as host:
                await host.channel.send("Which colour is the zebra?")
                await held.entered.wait()
            model = Observed([tool_call_reply(("memory_show", {})), text_reply("Blue, dear Ada.")])
            async with session_host(tmp_path, model, over=InstrumentedBus) as host:
                await host.channel.wait_until(lambda: bool(host.channel.answers))
                await host.wait_for_pending(0)
    assert len({one.trace_id for one in collector.spans}) == 1
    ids = {one.span_id: one.name for one in collector.spans}
    above = Counter((one.name, ids.get(one.parent_span_id)) for one in collector.spans)
    assert above == {
        ("publish", None): 1,
        ("turn", "publish"): 2,
        ("model", "turn"): 3,
        ("tool", "turn"): 1,
        ("deliver", "turn"): 1,
    }
    for words in (b"zebra", b"Ada", b"Blue"):
        assert words not in collector.bodies
