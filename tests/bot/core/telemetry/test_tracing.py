"""A message's way can be followed over processes, and nobody's words are in what is sent of it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from bot.bus import Address, Answer, Inbound, Sender
from bot.bus.instrumented import InstrumentedBus
from bot.bus.journal import AcceptedMessage, JournalState, encode_in
from bot.bus.local import LocalBus
from bot.core.errors import ModelRejected
from bot.core.telemetry import tracing
from bot.core.telemetry.otlp import export_enabled, export_traces
from bot.testing.host import session_host
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply

HOST = Path(__file__).with_name("trace_host.py")
PLACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Collector:
    """Takes spans in over OTLP."""

    def __init__(self) -> None:
        self.spans: list = []
        self.services: dict[bytes, tuple[str, str]] = {}
        self.bodies = b""

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.bodies += body
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            about = {one.key: one.value.string_value for one in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.spans.append(span)
                    self.services[span.span_id] = (about["service.name"], about["tapebot.role"])
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


async def run(what: str, folder: Path, environment: dict[str, str]) -> None:
    done = await anyio.run_process(
        [sys.executable, str(HOST), what, str(folder)],
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.slow
async def test_one_trace_goes_from_the_gateway_over_the_worker_to_the_shown_answer(tmp_path):
    async with collecting() as (collector, environment):
        environment["OTEL_SERVICE_NAME"] = "ours"
        await run("publish", tmp_path, environment)
        assert [one.name for one in collector.spans] == ["publish", "publish"]
        await run("serve", tmp_path, environment)
    traces = {one.trace_id for one in collector.spans}
    assert len(traces) == 2
    for trace in traces:
        spans = [one for one in collector.spans if one.trace_id == trace]
        assert Counter(one.name for one in spans) == {
            "publish": 1,
            "turn": 1,
            "model": 2,
            "tool": 1,
            "deliver": 1,
        }
        ids = {one.span_id: one.name for one in spans}
        above = {(one.name, ids.get(one.parent_span_id)) for one in spans}
        assert above == {
            ("publish", None),
            ("turn", "publish"),
            ("model", "turn"),
            ("tool", "turn"),
            ("deliver", "turn"),
        }
        for one in spans:
            role = "gateway" if one.name == "publish" else "worker"
            assert collector.services[one.span_id] == ("ours", role)
    for words in (b"zebra", b"Ada", b"Blue", b"4711", b"4712"):
        assert words not in collector.bodies


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


async def test_what_a_cut_off_process_left_is_no_failure(monkeypatch):
    async with collecting() as (collector, environment):
        monkeypatch.setenv(*environment.popitem())
        async with export_traces("worker", seconds=60.0):
            with anyio.move_on_after(0), tracing.span("turn"):
                await anyio.sleep_forever()
    (span,) = collector.spans
    assert span.status.code == span.status.STATUS_CODE_UNSET
    assert {one.key for one in span.attributes} == {"tapebot.cancelled"}


@pytest.mark.slow
@pytest.mark.parametrize("collector", ["hangs", "refuses"])
async def test_a_collector_that_takes_nothing_keeps_no_process_from_ending(tmp_path, collector):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if collector == "refuses":
            server.close()
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
            # Of its own accord the exporter would wait for longer than this test.
            "OTEL_EXPORTER_OTLP_TIMEOUT": "600",
        }
        with anyio.fail_after(60):
            done = await anyio.run_process(
                [sys.executable, str(HOST), "hang", str(tmp_path)],
                env={**os.environ, **environment},
                check=False,
            )
    assert done.returncode == 0, done.stderr.decode()
    assert b"not accepted within 1 s" in done.stderr


@pytest.mark.parametrize(
    ("environment", "on"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
    ids=["nothing", "endpoint", "traces-endpoint", "disabled", "none"],
)
def test_traces_are_sent_where_opentelemetrys_own_variables_say_so(monkeypatch, environment, on):
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert export_enabled() is on


def test_where_they_are_asked_for_without_the_extra_the_program_goes_on_and_says_so():
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "import anyio\n"
        "from bot.core.telemetry.otlp import export_traces\n"
        "async def main():\n"
        "    async with export_traces():\n"
        "        print('goes on')\n"
        "anyio.run(main)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "goes on\n", done.stderr
    assert "pip install 'tapebot[operate]'" in done.stderr


def message(trace: str | None) -> AcceptedMessage:
    now = datetime(2026, 2, 10, tzinfo=UTC)
    return AcceptedMessage(
        1, now, Inbound(Address("fake", "1"), "m1", Sender("7", "Ada"), "hi", now, trace=trace)
    )


def read(line: bytes) -> Inbound:
    state = JournalState()
    state.read(line.strip())
    assert not state.damaged
    return state.pending[1].inbound


def test_the_journal_keeps_the_place_in_the_trace_and_reads_lines_that_have_none():
    assert read(encode_in(message(PLACE))).trace == PLACE
    old = encode_in(message(None))
    assert b"trace" not in old
    assert read(old).trace is None


def test_the_same_message_is_the_same_wherever_it_is_traced():
    one = message(None).inbound
    assert one == replace(one, trace=PLACE)


async def test_a_place_that_is_none_begins_a_trace_of_its_own(monkeypatch):
    async with collecting() as (collector, environment):
        monkeypatch.setenv(*environment.popitem())
        async with export_traces("worker", seconds=60.0):
            for place in (None, "", "zebra", f"{PLACE}-more", PLACE.replace("0af7", "zzzz"), PLACE):
                with tracing.span("turn", place):
                    pass
    assert [one.parent_span_id.hex() for one in collector.spans] == [
        "",
        "",
        "",
        "",
        "",
        "b7ad6b7169203331",
    ]


async def test_what_is_noted_is_bounded(monkeypatch):
    async with collecting() as (_, environment):
        monkeypatch.setenv(*environment.popitem())
        async with export_traces("worker", seconds=60.0):
            for number in range(10_001):
                tracing.save_traceparent("fake:1", f"m{number}", PLACE)
            assert tracing.find_traceparent("fake:1", "m0") is None
            assert tracing.find_traceparent("fake:1", None, "m0", "m10000") == PLACE
        assert tracing.find_traceparent("fake:1", "m10000") is None


async def test_an_answer_shown_elsewhere_goes_on_in_the_trace_of_its_command(tmp_path, monkeypatch):
    async with collecting() as (collector, environment):
        monkeypatch.setenv(*environment.popitem())
        async with export_traces("worker", seconds=60.0):
            bus = InstrumentedBus(LocalBus(tmp_path / "bus", max_queued_messages=9, sync=False))
            desk = Address("web", "desk.1")
            asked = replace(message(None).inbound, text="/memory", answer_to=desk)
            await bus.channel("web").publish(asked)
            taken = await (await bus.claim()).receive()
            await bus.send(Answer(desk, "a1", "done", asked.id, report_to=asked.session))
            shown = await bus.channel("web").receive()
            assert shown.trace == taken.inbound.trace
            await bus.aclose()
    assert len({one.trace_id for one in collector.spans}) == 1


async def test_a_turn_that_a_kill_cut_off_goes_on_in_the_same_trace(tmp_path, monkeypatch):
    async with collecting() as (collector, environment):
        monkeypatch.setenv(*environment.popitem())
        held = PausedStep(text_reply("never said"))
        async with export_traces("worker", seconds=60.0):
            async with session_host(tmp_path, ScriptedModel([held]), over=InstrumentedBus) as host:
                await host.channel.send("Which colour is the zebra?")
                await held.entered.wait()
            model = ScriptedModel([text_reply("blue")])
            async with session_host(tmp_path, model, over=InstrumentedBus) as host:
                await host.wait_until(lambda: bool(host.channel.answers))
    assert len({one.trace_id for one in collector.spans}) == 1
    assert Counter(one.name for one in collector.spans) == {"publish": 1, "turn": 2, "deliver": 1}
