"""Messages and answers made to be slow are answered like any other, and a start finds nothing wrong."""

from __future__ import annotations

import json
import time

import pytest
from platform_program import running
from waiting import until

from testkit.discord.process import DiscordProcess
from testkit.openai_server import Call, Reply, ScriptedOpenAI
from testkit.telegram.process import TelegramProcess

# Said by a person, and answered by the model.
HOSTILE = [
    f"Signature: {'_' * 100}Name",
    f"Remember that my signature line is {'_' * 100}aa",
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
        given = {"history_entry": history, "operations": operations}
        return Reply(calls=(Call("save_memory", json.dumps(given)),))
    number = max((at for at in range(len(HOSTILE) + 2) if f"No. {at} " in said), default=0)
    return Reply(f"Reply {number}.\n\n{HOSTILE[number % len(HOSTILE)]}", piece=400)


class _Telegram:
    def __init__(self, process: TelegramProcess) -> None:
        self._process = process
        self.settings = {
            "TAPEBOT_TELEGRAM_TOKEN": process.token,
            "TAPEBOT_TELEGRAM_API_BASE": process.url,
        }

    async def arrive(self) -> None:
        await self._process.do("user", id=7, name="Ada")
        await self._process.do("private", user=7)

    async def say(self, text: str) -> None:
        await self._process.do("say", chat=7, user=7, text=text)

    async def shown(self) -> str:
        return "\n".join(map(str, await self._process.texts(7)))


class _Discord:
    def __init__(self, process: DiscordProcess) -> None:
        self._process = process
        self._ada = self._chat = 0
        self.settings = {
            "TAPEBOT_DISCORD_TOKEN": process.urls["token"],
            "TAPEBOT_DISCORD_API_BASE": process.urls["api_url"],
            "TAPEBOT_DISCORD_GATEWAY_URL": process.urls["gateway_url"],
        }

    async def arrive(self) -> None:
        self._ada = await self._process.do("user", name="Ada")
        self._chat = await self._process.do("direct", user=self._ada)

    async def say(self, text: str) -> None:
        await self._process.do("say", channel=self._chat, user=self._ada, text=text)

    async def shown(self) -> str:
        messages = (await self._process.records())["messages"].values()
        return "\n".join(message["content"] for message in messages)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("platform", ["telegram", "discord"])
async def test_hostile_messages_and_answers_hold_nobody_up_nor_does_a_tape_that_has_them(
    tmp_path, platform
):
    process = TelegramProcess() if platform == "telegram" else DiscordProcess()
    async with ScriptedOpenAI(_script) as model, process as started:
        side = _Telegram(started) if platform == "telegram" else _Discord(started)
        settings = {
            **side.settings,
            "TAPEBOT_MODEL": "openai/scripted",
            "TAPEBOT_MODEL_API_BASE": model.base_url,
            "TAPEBOT_MODEL_API_KEY": "sk-of-the-test",
        }

        async def say(text: str, reply: str) -> float:
            began = time.monotonic()
            await side.say(text)

            async def answered() -> bool:
                return reply in await side.shown()

            await until(answered, every=0.05)
            return time.monotonic() - began

        times = {}
        async with running(tmp_path, **settings) as program:
            await program.until_said(f"{platform.title()}: connected as @")
            await side.arrive()
            await say("hello", "has no owner yet")
            start = "/start" if platform == "telegram" else "/claim"
            await say(f"{start} {program.claim_code}", "You own this bot now")
            for at, text in enumerate(HOSTILE, 1):
                times[text[:20]] = await say(f"No. {at} {text}", f"Reply {at}.")
            times["/memory forget"] = await say(
                f"/memory forget {'„' * 1_900}", "hat should I forget"
            )
            times["/new"] = await say("/new", "New session started.")
        assert program.process.returncode == 0
        async with running(tmp_path, **settings) as program:
            await program.until_said(f"{platform.title()}: connected as @")
            again = len(HOSTILE) + 1
            times["after a restart"] = await say(f"No. {again} hello", f"Reply {again}.")
        assert program.process.returncode == 0
    print(json.dumps(times, indent=1, ensure_ascii=False))  # noqa: T201 - for whoever looks with -s
