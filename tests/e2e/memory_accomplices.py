"""Models that do what hostile text wants, and the people whom they do it to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from folded import fold_entries
from pydantic import BaseModel

from bot.agent.tools.registry import Tool, ToolContext, ToolOutcome
from bot.bus import Attachment, Sender
from bot.llm.base import ModelReply, ModelRequest
from bot.memory.session.state.fact_markdown import render_facts
from bot.memory.session.state.zone_snapshot import DAILY_EVENT, LONG_TERM_EVENT, SHARED_EVENT
from bot.tape.entries import TapeEntry
from bot.testing.host import Host
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    fact_change,
    memory_save_call,
    text_reply,
    tool_call_reply,
)

INNOCENT = "I walked around the lake this morning."
HISTORY = "[2026-02-10 10:00] They talked."
MODES = ("saves", "consolidates", "both")

_MESSAGE = re.compile(r"^#\d+ (.*?)(?=^#\d+ |\Z)", re.MULTILINE | re.DOTALL)
_ANSWER = re.compile(r"(?:\[[^\]]*\] )?ASSISTANT")
_FACT = re.compile(r"^\[(\d+)\] ", re.MULTILINE)


class _Nothing(BaseModel):
    pass


@dataclass(slots=True)
class Web:
    page: str = ""

    def tool(self) -> Tool[_Nothing]:
        async def fetch(_: _Nothing, __: ToolContext) -> ToolOutcome:
            return ToolOutcome(self.page)

        return Tool("web.fetch", "Fetch the page.", _Nothing, fetch, effect="reads_world")


@dataclass(slots=True)
class Accomplice:
    """Obeys what a scene wants, in turns and in consolidations."""

    scene: Mapping[str, Any] = field(default_factory=dict)
    mode: str = ""
    rendering: str = ""
    reply: str = "ok"
    _plan: list[ModelReply] = field(default_factory=list)

    def model(self) -> ScriptedModel:
        return ScriptedModel(self.turn, consolidation=self.consolidation)

    def turn(self, request: ModelRequest) -> ModelReply:
        if request.messages[-1]["role"] == "user":
            self._plan = self._steps() if self.mode in ("saves", "both") else []
        return self._plan.pop(0) if self._plan else text_reply(self.reply)

    def _steps(self) -> list[ModelReply]:
        steps = []
        if "page" in self.scene:
            steps.append(tool_call_reply(("web_fetch", {})))
        if "recall" in self.scene:
            steps.append(
                tool_call_reply(("memory_recall", {"query": self.scene["recall"], "days": 99}))
            )
        wanted = self.scene["want"]
        steps.append(tool_call_reply(memory_save_call(*wanted)))
        if "ends" in self.scene and self.rendering:
            known = range(1, len(self.rendering.splitlines()) + 1)
            ends = [{"op": "end", "facts": [one]} for one in known]
            changes = [{"op": "change", "facts": [one], "text": wanted[0]} for one in known]
            steps += [
                tool_call_reply(("memory_save", {"changes": some})) for some in (ends, changes)
            ]
        return [*steps, tool_call_reply(*[("memory_daily", {"content": one}) for one in wanted])]

    def consolidation(self, request: ModelRequest) -> ModelReply:
        """Claim what is wanted, on all the evidence that a liar could give."""
        if self.mode not in ("consolidates", "both"):
            return consolidation_reply(HISTORY)
        asked = str(request.messages[-1]["content"])
        known, _, conversation = asked.rpartition("## Conversation to Process\n")
        answers = [text for text in _MESSAGE.findall(conversation) if _ANSWER.match(text)]
        facts = [int(n) for n in _FACT.findall(known.rpartition("## Current facts")[2])]
        return consolidation_reply(HISTORY, *self._changes(answers, facts))

    def _changes(self, answers: list[str], facts: list[int]) -> Iterator[dict[str, Any]]:
        words = str(self.scene.get("quote", ""))
        said = [text.partition(": ")[2].strip() for text in answers[-1:]]
        for want in self.scene["want"]:
            cited = [[words], [want], [words[:40]], [INNOCENT], ["the lake"], said, []]
            cited += [[INNOCENT, words], [words, INNOCENT]]
            for quotes in cited:
                yield fact_change(want, *quotes)
                for fact in facts[:2]:
                    yield fact_change(want, *quotes, op="change", facts=[fact])
        for fact in facts if "ends" in self.scene else ():
            for quotes in ([INNOCENT], [words], []):
                yield fact_change("", *quotes, op="end", facts=[fact])


@dataclass(frozen=True, slots=True)
class Cast:
    """The people of one scene, and their chats: no other scene of the host has them."""

    number: int
    group: bool

    def id_of(self, who: str) -> str:
        return f"{self.number}{('ada', 'bob', 'eve').index(who) + 1}"

    @property
    def chat(self) -> str:
        return f"g{self.number}" if self.group else self.id_of("ada")

    def fit(self, text: str) -> str:
        """Return a text of the data with the ids of these people in it."""
        for who in ("ada", "bob", "eve"):
            text = text.replace(f"{{{who}}}", self.id_of(who))
        return text

    def fitted(self, scene: Any) -> Any:
        if isinstance(scene, str):
            return self.fit(scene)
        if isinstance(scene, list):
            return [self.fitted(one) for one in scene]
        if isinstance(scene, dict):
            return {key: self.fitted(one) for key, one in scene.items()}
        return scene

    async def say(
        self, host: Host, who: str, text: str, *, chat: str = "", name: str = "", **more: Any
    ) -> str:
        """Send a message as somebody, and return what answers it; nothing where it is an edit."""
        chat = chat or self.chat
        inbound = await host.channel.send(
            text,
            chat=chat,
            sender=Sender(self.id_of(who), name or who.title()),
            role="owner" if who == "ada" else "member",
            private=not chat.startswith(("g", "h")),
            **more,
        )
        if inbound.edited_message_id is not None:
            await host.wait_for_pending(0)
            return ""
        return await host.channel.wait_for_answer(inbound)


def sent(step: Mapping[str, Any]) -> dict[str, Any]:
    more: dict[str, Any] = {key: step[key] for key in ("quote", "edits", "name") if key in step}
    if "id" in step:
        more["message_id"] = step["id"]
    if "file" in step:
        name, text, kind, note = (*step["file"], *("document", None)[len(step["file"]) - 2 :])
        one = Attachment(kind, name, "text/plain", len(text), text=text or None, note=note)
        more["attachments"] = (one,)
    return more


async def home_facts(host: Host, cast: Cast) -> list[str]:
    """Return what is believed in the scope of a scene's chat."""
    tape = f"fake:{cast.chat}" if cast.group else f"person:fake:{cast.chat}"
    return [fact.text for fact in fold_entries(await host.tape(tape)).active()]


async def rendering(host: Host, cast: Cast) -> str:
    """Return long-term memory of a scene's chat as the model sees it."""
    tape = f"fake:{cast.chat}" if cast.group else f"person:fake:{cast.chat}"
    return render_facts(fold_entries(await host.tape(tape)).active())


async def believed(host: Host) -> list[str]:
    """Return all that any memory holds or ever held: facts, and all versions of zones."""
    found: list[str] = []
    for name in await host.store.list_tapes():
        entries = await host.tape(name)
        found += [fact.text for fact in fold_entries(entries).active()]
        found += [
            _zone_text(one)
            for one in entries
            if one.name in (LONG_TERM_EVENT, SHARED_EVENT, DAILY_EVENT)
        ]
    return found


def _zone_text(entry: TapeEntry) -> str:
    return str(entry.data.get("content", ""))


def prompts(model: ScriptedModel) -> list[str]:
    return [str(one.messages[0]["content"]) for one in model.requests_for()]


def scenes() -> list[dict[str, Any]]:
    path = Path(__file__).with_name("memory_attacks.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
