"""A client's conversations are memory like any other: facts, their origin, limits, erasure, forks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from api_stage import FIRST, Stage, program
from folded import fold_entries

from bot.agent.notebook import NotebookModel
from bot.bus import Sender
from bot.testing.host import HostLimits
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    fact_change,
    text_reply,
)

OWNER: Any = {"chat": "local", "sender": Sender("local", "Ada"), "role": "owner"}
PERSON = "person:console:local"


class Talker:
    """A client that keeps its conversation."""

    def __init__(self, stage: Stage, system: str = "", **more: Any) -> None:
        self.said: list[Any] = [{"role": "system", "content": system}] if system else []
        self._stage = stage
        self._more = more

    async def say(self, text: str) -> str:
        """Say something; return what is answered."""
        self.said.append({"role": "user", "content": text})
        reply = await self._stage.client.chat.completions.create(
            model="tapebot", messages=self.said, **self._more
        )
        answer = reply.choices[0].message.content or ""
        self.said.append({"role": "assistant", "content": answer})
        return answer


async def test_a_fact_says_which_client_it_came_by_and_is_known_on_other_channels(
    tmp_path: Path,
) -> None:
    async with program(tmp_path, NotebookModel()) as stage:
        talker = Talker(stage)
        await talker.say("remember: my cat is called Tom.")
        assert "webui, message of" in await talker.say("/memory why 1")
        console = stage.host.add_channel("console")
        sent = await console.send("/memory", **OWNER)
        assert "My cat is called Tom." in await console.wait_for_answer(sent)
        [fact] = fold_entries(await stage.host.tape(PERSON)).active()
        assert [(one.tape, one.origin) for one in fact.evidence] == [(FIRST, "person")]


async def test_what_is_forgotten_is_gone_though_the_client_still_says_it(tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "look", "description": "Looks for Tom."}}
    async with program(tmp_path, NotebookModel()) as stage:
        talker = Talker(stage, "The user has a cat called Tom.", tools=[tool])
        await talker.say("remember: my cat is called Tom.")
        asked = await talker.say("/memory forget Tom")
        # The buttons are commands that a client without buttons can send.
        [yes, *_] = re.findall(r"Erase: `(/[^`]+)`", asked)
        talker.said[0]["content"] = "Be kind."
        talker._more = {}
        assert "Forgotten" in await talker.say(yes)
        tapes = await stage.host.store.list_tapes()
        left = [e for tape in tapes for e in await stage.host.tape(tape) if "Tom" in str(e)]
        assert left == []
        # The client's history has the words still; the conversation goes on in its session.
        await talker.say("Hello.")
        assert await stage.sessions() == [FIRST]
        assert not any("Tom" in str(entry) for entry in await stage.host.tape(FIRST))


async def test_a_conversation_is_consolidated_and_its_clients_words_are_no_evidence(
    tmp_path: Path,
) -> None:
    operations = [
        fact_change("The user lives in Oslo.", "I live in Oslo."),
        fact_change("The user owns a yacht.", "The user owns a yacht."),
    ]
    model = ScriptedModel(
        lambda _: text_reply("Noted."), consolidation=[consolidation_reply("Talked.", *operations)]
    )
    async with program(tmp_path, model, bounds=HostLimits(window=4)) as stage:
        talker = Talker(stage, "The user owns a yacht.")
        await talker.say("I live in Oslo.")
        await talker.say("It rains.")
        await stage.host.wait_for_event("memory/consolidated", session=FIRST)
        facts = fold_entries(await stage.host.tape(PERSON)).active()
        assert [fact.gloss for fact in facts] == ["The user lives in Oslo."]
