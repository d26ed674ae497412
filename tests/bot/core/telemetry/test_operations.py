"""Whoever operates the program is told the truth: what happened, whether it lives, can work now."""

from __future__ import annotations

import anyio
import anyio.to_thread
import pytest
from operations_client import running
from pydantic import BaseModel

from bot.agent.tools.registry import Tool, ToolOutcome
from bot.bus.instrumented import InstrumentedBus
from bot.core.database.connections import Database
from bot.core.database.health_checks import database_check
from bot.core.database.schema import create_schema
from bot.core.errors import DatabaseUnavailable
from bot.core.telemetry import instruments
from bot.core.telemetry.monitoring import MonitoringServer
from bot.llm.instrumented import instrumented
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply
from testkit.postgres import PostgresServer

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


@pytest.mark.slow
async def test_it_is_not_ready_while_its_database_is_down_and_ready_again_after_it(operations):
    server = PostgresServer()
    server.start()
    try:
        database = Database(server.url("postgres"), retry_seconds=1.0)
        await database.open()
        await create_schema(database)
        operations.check("database", database_check(database), seconds=0.5)
        async with running(operations) as client:
            assert await client.until("/readyz", 200) == {"program": "ok", "database": "ok"}
            await anyio.to_thread.run_sync(server.stop, "immediate")
            await client.until("/readyz", 503)
            # A new process would not help.
            assert (await client.get("/healthz"))[0] == 200
            await anyio.to_thread.run_sync(server.start)
            await client.until("/readyz", 200)
        await database.close()
    finally:
        server.close()
