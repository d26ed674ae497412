"""Whoever operates the program is told the truth: what happened, whether it lives, can work now."""

from __future__ import annotations

import socket
import subprocess
import sys

import anyio
import httpx
import pytest
from operations_client import Series, running
from pydantic import BaseModel
from waiting import until

from bot.agent.tools.registry import Tool, ToolOutcome
from bot.bus import Address
from bot.bus.instrumented import InstrumentedBus
from bot.core.errors import (
    DatabaseUnavailable,
    ModelRejected,
    SessionLost,
    SettingsError,
    VersionConflict,
)
from bot.core.telemetry import instruments, metrics
from bot.core.telemetry.instruments import MetricSample, PolledMetric
from bot.core.telemetry.monitoring import MonitoringServer
from bot.llm.instrumented import instrumented
from bot.memory.records.event_names import (
    HISTORY_EVENT,
)
from bot.memory.session.state.session_fold import CONSOLIDATION_FAILED_EVENT
from bot.testing.fake_channel import FakeChannel
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import (
    PausedStep,
    ScriptedModel,
    consolidation_reply,
    text_reply,
    tool_call_reply,
)

SECRET = "sk-test-0123456789abcdef"


class Observed(ScriptedModel):
    complete = instrumented(ScriptedModel.complete)


class NoArguments(BaseModel):
    pass


async def _look(_, __) -> ToolOutcome:
    await anyio.lowlevel.checkpoint()
    return ToolOutcome("looked")


LOOK = Tool("look", "Looks.", NoArguments, _look, effect="reads_own")


@pytest.fixture
def operations():
    made = MonitoringServer("both")
    made.set_unready(None)
    yield made
    instruments.disable_metrics()


async def test_a_scrape_shows_the_turns_calls_tokens_and_tools_of_what_was_asked(
    operations, tmp_path
):
    model = Observed(
        [tool_call_reply(("look", {}), ("made_up_by_the_model", {})), text_reply("Blue, dear Ada.")]
    )
    async with (
        session_host(tmp_path, model, tools=[LOOK], over=InstrumentedBus) as host,
        running(operations) as client,
    ):
        inbound = await host.channel.send(
            "Which colour is the zebra?", chat="chat4711", message_id="m1"
        )
        await host.channel.wait_for_answer(inbound)
        await host.channel.send("Which colour is the zebra?", chat="chat4711", message_id="m1")
        await host.channel.ask("once more", chat="chat4712")
        text, found = await client.text(), await client.series()
    assert found["tapebot_turn_seconds_count", "ok"] == 1
    assert found["tapebot_turn_seconds_count", "error"] == 1
    assert found["tapebot_model_call_seconds_count", "scripted", "ok"] == 2
    assert found["tapebot_model_call_seconds_count", "scripted", "ModelRejected"] == 1
    assert found["tapebot_errors_total", "turn", "ModelRejected"] == 1
    assert found["tapebot_model_tokens_total", "scripted", "turn", "input"] == 20
    assert found["tapebot_model_tokens_total", "scripted", "turn", "cached"] == 8
    assert found["tapebot_model_tokens_total", "scripted", "turn", "output"] == 10
    assert found["tapebot_model_cost_dollars_total", "scripted", "turn"] == pytest.approx(0.002)
    assert found["tapebot_tool_call_seconds_count", "look", "ok"] == 1
    assert found["tapebot_tool_call_seconds_count", "unknown", "error"] == 1
    assert found["tapebot_inbound_published_total", "fake", "accepted"] == 2
    assert found["tapebot_inbound_published_total", "fake", "duplicate"] == 1
    assert found["tapebot_delivery_seconds_count", "fake", "delivered"] == 2
    assert found["tapebot_inbound_redelivered_total",] == 0
    assert found["process_start_time_seconds",] > 1e9
    for words in ("chat4711", "chat4712", "zebra", "Blue", "Ada", "made_up"):
        assert words not in text


async def test_an_answer_shown_elsewhere_than_in_its_chat_is_timed_to_its_last_word(
    operations, tmp_path
):
    async with (
        session_host(tmp_path, Observed(), over=InstrumentedBus) as host,
        running(operations) as client,
    ):
        desk = FakeChannel(InstrumentedBus(host.bus).channel("web"), "web")
        asked = await host.channel.send("/status", via=Address("web", "desk.1"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(desk.run)
            await desk.wait_for_answer(asked)
            await host.wait_for_pending(0)
            tasks.cancel_scope.cancel()
        assert (await client.series())["tapebot_delivery_seconds_count", "web", "delivered"] == 1


async def test_a_message_that_a_kill_left_is_counted_as_redelivered(operations, tmp_path):
    async with session_host(tmp_path, Observed(), over=InstrumentedBus) as host:
        host.channel.reports = False
        await host.channel.ask("hello")
    async with (
        session_host(tmp_path, Observed(), over=InstrumentedBus) as host,
        running(operations) as client,
    ):
        await host.wait_until(lambda: bool(host.channel.answers))
        assert (await client.series())["tapebot_inbound_redelivered_total",] == 1


async def test_the_bus_and_the_sessions_are_seen_in_numbers(operations, tmp_path):
    async with session_host(tmp_path, Observed([text_reply("one")]), over=InstrumentedBus) as host:
        bus = InstrumentedBus(host.bus)
        operations.sample("bus", bus.metric_samples)
        operations.sample("sessions", host.supervisor.metric_samples)
        host.channel.reports = False
        await host.channel.ask("hello")
        async with running(operations) as client:
            # What has to be asked for is there once it was.
            found = await client.until_series(
                "tapebot_inbound_messages", "tapebot_sessions_held", "tapebot_undelivered_answers"
            )
    assert found["tapebot_inbound_messages", "0"] == 1
    assert found["tapebot_sessions_held",] == 1
    assert found["tapebot_sessions_failing",] == 0
    assert found["tapebot_undelivered_answers",] == 0
    assert found["tapebot_consolidation_lag_seconds",] == 0


async def test_late_writers_are_counted_also_where_they_fail_in_a_group(operations):
    late = VersionConflict("fake:1", expected=1, actual=2)
    metrics.count_error("session", ExceptionGroup("", [late, SessionLost("gone")]))
    async with running(operations) as client:
        found = await client.series()
    assert found["tapebot_fenced_writes_total", "VersionConflict"] == 1
    assert found["tapebot_fenced_writes_total", "SessionLost"] == 1
    assert found["tapebot_errors_total", "session", "SessionLost"] == 1


async def test_no_label_makes_more_series_than_its_bound(operations):
    for number in range(1_000):
        metrics.MODEL_UNPRICED.add(1, f"model-{number}")
    async with running(operations) as client:
        found = await client.series()
    of = [key for key in found if key[0] == "tapebot_model_calls_unpriced_total"]
    assert len(of) == 201
    assert found["tapebot_model_calls_unpriced_total", "other"] == 800


async def test_what_cannot_be_asked_for_is_left_out_until_it_can(operations):
    depth = PolledMetric("tapebot_test_depth", "Depth.", ("queue",))
    well = True

    async def ask() -> list[MetricSample]:
        await anyio.lowlevel.checkpoint()
        if not well:
            raise DatabaseUnavailable("the database is away")
        return [MetricSample(depth, 3, ("a",))]

    operations.sample("queues", ask, every=0.02)
    async with running(operations) as client:

        async def without() -> Series | None:
            found = await client.series()
            return None if ("tapebot_test_depth", "a") in found else found

        known = await client.until_series(("tapebot_test_depth", "a"))
        assert known["tapebot_test_depth", "a"] == 3
        well = False
        assert (await until(without))["tapebot_sample_failures_total", "queues"] >= 1
        well = True
        await client.until_series(("tapebot_test_depth", "a"))


@pytest.mark.slow
async def test_health_is_red_while_a_check_hangs_raises_or_says_no_and_green_again(operations):
    state = "well"

    async def ask() -> str | None:
        await anyio.lowlevel.checkpoint()
        if state == "hangs":
            await anyio.sleep_forever()
        if state == "raises":
            raise DatabaseUnavailable("the database at db.example is away")
        if state == "breaks":
            raise RuntimeError(f"key {SECRET} of Ada")
        return None if state == "well" else state

    operations.check("database", ask, alive=True, seconds=0.1)
    expected = {
        "hangs": "it did not answer within 0.1 s",
        "raises": "the database at db.example is away",
        "breaks": "RuntimeError",
        f"it says no: {SECRET}": "it says no: [redacted]",
    }
    async with running(operations) as client:
        for trouble, why in expected.items():
            state = trouble
            for path in ("/healthz", "/readyz"):
                checks = await client.until(path, 503)
                if state == "hangs":
                    waits = checks["database"].startswith("it has not answered for ")
                    assert waits or checks["database"] == why
                else:
                    assert checks["database"] == why
            state = "well"
            for path in ("/healthz", "/readyz"):
                assert (await client.until(path, 200))["database"] == "ok"


async def test_a_check_that_cannot_even_be_cancelled_is_answered_in_time_and_asked_once(operations):
    asked = 0
    release = anyio.Event()

    async def ask() -> None:
        nonlocal asked
        asked += 1
        with anyio.CancelScope(shield=True):
            await release.wait()

    operations.check("disk", ask, seconds=0.1)
    async with running(operations) as client:
        for _ in range(3):
            with anyio.fail_after(20):
                status, checks = await client.get("/readyz")
            assert status == 503
            assert checks["disk"].startswith("it has not answered for")
        assert (await client.get("/healthz"))[0] == 200
        assert asked == 1
        release.set()
        await client.until("/readyz", 200)


@pytest.mark.slow
async def test_an_answer_counts_for_a_second_and_not_longer(operations):
    asked: list[float] = []

    async def ask() -> None:
        asked.append(anyio.current_time())
        await anyio.lowlevel.checkpoint()

    operations.check("database", ask)
    async with running(operations) as client, anyio.create_task_group() as asking:
        for _ in range(10):
            asking.start_soon(client.get, "/readyz")
        with anyio.fail_after(30):
            while len(asked) < 2:
                await client.get("/readyz")
    assert asked[1] - asked[0] >= 1.0


async def test_it_is_not_ready_while_it_starts_or_drains_and_lives_all_the_same():
    operations = MonitoringServer()
    async with running(operations) as client:
        assert await client.get("/readyz") == (503, {"program": "it is starting"})
        operations.set_unready(None)
        assert await client.get("/readyz") == (200, {"program": "ok"})
        operations.set_unready("it is draining")
        assert await client.get("/readyz") == (503, {"program": "it is draining"})
        assert (await client.get("/healthz"))[0] == 200


async def test_it_does_not_live_once_one_of_its_own_tasks_has_ended(operations):
    end = anyio.Event()
    async with running(operations) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(operations.run_critical, "supervisor", end.wait)
        await anyio.wait_all_tasks_blocked()
        assert await client.get("/healthz") == (200, {"supervisor": "ok"})
        end.set()
        checks = await client.until("/healthz", 503)
        assert checks == {"supervisor": "the supervisor ended by itself"}


async def test_a_task_that_ends_while_it_drains_is_no_reason_to_kill_it(operations):
    end = anyio.Event()
    async with running(operations) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(operations.run_critical, "supervisor", end.wait)
            tasks.start_soon(operations.run_critical, "bus", anyio.sleep_forever)
            await anyio.wait_all_tasks_blocked()
            operations.set_unready("it is draining")
            end.set()
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        assert await client.get("/healthz") == (200, {"supervisor": "ok", "bus": "ok"})
        assert (await client.get("/readyz"))[0] == 503


async def test_a_port_that_is_taken_is_told_with_the_setting_to_change(operations):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(SettingsError, match=f"TAPEBOT_OPERATE_LISTEN.*127.0.0.1:{port}"):
            await operations.run(f"127.0.0.1:{port}")


async def test_the_end_waits_for_no_request(operations):
    asked = anyio.Event()

    async def hang() -> None:
        asked.set()
        await anyio.sleep_forever()

    operations.check("database", hang, seconds=600)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as asking, running(operations) as client:

            async def ask() -> None:
                with pytest.raises(httpx.HTTPError):
                    await client.get("/readyz")

            asking.start_soon(ask)
            await asked.wait()


_NOTHING = """
import sys
for name in ("prometheus_client", "opentelemetry", "starlette", "uvicorn", "requests", "google.protobuf"):
    sys.modules[name] = None
import bot.runtime.sessions.supervisor, bot.bus.instrumented, bot.llm.gguf, bot.core.telemetry.monitoring
from bot.core.telemetry import otlp as exporting, metrics, tracing
metrics.TURN_SECONDS.observe(1.0, "ok")
metrics.REDELIVERED.add(1)
with tracing.span("turn", turn="1") as here:
    here.set(steps=1)
assert tracing.current_traceparent() is None
from bot.core.errors import SettingsError
try:
    bot.core.telemetry.monitoring.MonitoringServer()
except SettingsError as error:
    assert "pip install 'tapebot[operate]'" in str(error)
else:
    raise SystemExit("it is made without its packages")
"""


def test_without_the_extra_everything_else_works_and_it_says_what_to_install():
    done = subprocess.run(
        [sys.executable, "-c", _NOTHING], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


async def test_consolidations_are_counted_and_how_long_they_are_due_is_seen(operations, tmp_path):
    held = PausedStep(consolidation_reply("They greeted each other."))
    model = Observed(
        lambda _: text_reply("hello"), consolidation=[ModelRejected("no", of_content=False), held]
    )
    bounds = HostLimits(window=4)
    async with (
        session_host(tmp_path, model, bounds=bounds) as host,
        running(operations) as client,
    ):
        for _ in range(2):
            await host.channel.ask("hello")
        await host.wait_for_event(CONSOLIDATION_FAILED_EVENT)
        found = await client.series()
        assert found["tapebot_consolidations_total", "failed"] == 1
        assert found["tapebot_errors_total", "consolidation", "ModelRejected"] == 1
        await host.clock.wait_for_sleepers()
        host.clock.advance(60)
        await held.entered.wait()
        (due, messages, lag) = await metrics.CONSOLIDATION_BACKLOG.metric_samples()
        assert (due.value, messages.value) == (1, 4)
        assert lag.value > 0
        held.release.set()
        await host.wait_for_event(HISTORY_EVENT)
        # It is on the tape before it is counted.
        found = await client.until_series(("tapebot_consolidations_total", "kept"))
        assert found["tapebot_consolidations_total", "kept"] == 1
        assert found["tapebot_consolidation_seconds_count", "made"] == 1
        assert found["tapebot_consolidation_seconds_count", "failed"] == 1
    assert [one.value for one in await metrics.CONSOLIDATION_BACKLOG.metric_samples()] == [0, 0, 0]
