"""Messages and answers made to be slow are answered like any other, and a start finds nothing wrong."""

from __future__ import annotations

import json

import pytest
from platform_program import running

from testkit.openai_server import Call, Reply, ScriptedOpenAI
from testkit.telegram.server import TelegramServer

# Said by a person, and answered by the model.
HOSTILE = [
    f"Signature: {'_' * 100}Name",
    f"remember: my signature line is {'_' * 100}aa",
    "-  " * 600 + "x",
    "Ho ," + " " * 1_800 + "b",
    "私は" * 900,
    "." * 1_800 + "x",
    "A. " * 600,
    "I am A and " * 160,
    "[a](" * 450,
    "e" + "\u0301\u0316" * 900,
    "> " * 900,
    "**a" * 600,
    "|a" * 900,
]


def _script(request: dict) -> Reply:
    said = str([one["content"] for one in request["messages"] if one["role"] == "user"])
    if "save_memory" in {tool["function"]["name"] for tool in request.get("tools", ())}:
        evidence = [{"message": 1, "quote": HOSTILE[0]}]
        learned = {"op": "add", "fact": None, "text": f"The user signs {'_' * 100}Name."}
        operations = [{**learned, "subject": None, "evidence": evidence}]
        history = " ".join(HOSTILE)
        given = {"history_entry": history, "changes": operations}
        return Reply(calls=(Call("save_memory", json.dumps(given)),))
    number = max((at for at in range(len(HOSTILE) + 2) if f"No. {at} " in said), default=0)
    return Reply(f"Reply {number}.\n\n{HOSTILE[number % len(HOSTILE)]}", piece=400)


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_hostile_messages_and_answers_hold_nobody_up_nor_does_a_tape_that_has_them(tmp_path):
    async with ScriptedOpenAI(_script) as model, TelegramServer() as telegram:
        telegram.private(telegram.user(7, "Ada"))
        settings = {
            "TAPEBOT_TELEGRAM_TOKEN": telegram.token,
            "TAPEBOT_TELEGRAM_API_BASE": telegram.url,
            "TAPEBOT_OWNERS": "telegram:7",
            "TAPEBOT_MODEL": "openai/scripted",
            "TAPEBOT_MODEL_API_BASE": model.base_url,
            "TAPEBOT_MODEL_API_KEY": "sk-of-the-test",
        }

        async def say(text: str, reply: str) -> None:
            telegram.say(7, 7, text)
            await telegram.until(lambda books: any(reply in one for one in books.texts(7)))

        async with running(tmp_path, **settings) as program:
            for at, text in enumerate(HOSTILE, 1):
                await say(f"No. {at} {text}", f"Reply {at}.")
            await say(f"/memory forget {'„' * 1_900}", "hat should I forget")
            await say("/new", "New session started.")
        assert program.process.returncode == 0
        async with running(tmp_path, **settings) as program:
            again = len(HOSTILE) + 1
            await say(f"No. {again} hello", f"Reply {again}.")
        assert program.process.returncode == 0
