"""A loop that plays the tools for the offline responder, as the program would."""

from __future__ import annotations

import json
import re
from typing import Any

from bot.llm.base import ChatMessage, ModelReply, ModelRequest, Purpose, ToolSpec
from bot.offline import OfflineModel

TOOLS = tuple(
    ToolSpec(name, "A tool.", {"type": "object", "properties": {}})
    for name in ("memory_clear", "memory_daily", "memory_recall", "memory_save", "memory_show")
)
FORGET = ToolSpec("memory_forget", "Erases.", {"type": "object", "properties": {}})
_STOP = frozenset("what where when who how is are do does did am the my your a an i you me".split())


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", text.casefold())) - _STOP


class Chat:
    """One conversation with its memory; ``fresh`` drops the view and keeps the memory."""

    def __init__(self, who: str = "Ada", memory: str = "") -> None:
        self.model = OfflineModel()
        self.who = who
        self.memory = memory
        self.block = memory
        self.numbers: dict[str, int] = {}
        self.daily: list[tuple[str, str]] = []
        self.said: list[tuple[str, str, str]] = []
        self.view: list[ChatMessage] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.minute = 41
        self.save_result = "saved to long-term memory"
        self.forget_result = "This would be erased:\n- The user failed the exam.\nErase it?"
        self.tools: tuple[ToolSpec, ...] = TOOLS

    def fresh(self) -> None:
        """Begin a new session: the memory block is rendered anew and the view is empty."""
        self.view = []
        self.block = self.memory

    def numbered(self, memory: str) -> str:
        """Return memory with the number of each fact, as the prompt shows it."""
        lines = []
        for line in memory.split("\n"):
            fact = line.removeprefix("- ")
            if line == "## Reference":
                return "\n".join([*lines, *memory.split("\n")[len(lines) :]])
            if fact != line:
                number = self.numbers.setdefault(fact, len(self.numbers) + 1)
                lines.append(f"- [{number}] {fact} (2026-11-21)")
            else:
                lines.append(line)
        return "\n".join(lines)

    def change(self, changes: list[dict[str, Any]]) -> None:
        """Change memory fact by fact."""
        lines = self.memory.split("\n") if self.memory else []
        facts = {number: fact for fact, number in self.numbers.items()}
        for one in changes:
            old = f"- {facts[one['facts'][0]]}" if one.get("facts") else None
            new = [f"- {one['text']}"] if one["op"] != "end" else []
            at = lines.index(old) if old is not None else len(lines)
            lines[at : at + 1] = new
        self.memory = "\n".join(lines)

    def system(self) -> ChatMessage:
        parts = ["You are tapebot.", "<memory>", "Use `memory_save`.", "", "## Long-term Memory"]
        parts += [self.numbered(self.block) or "(empty)", "</memory>"]
        return {"role": "system", "content": "\n".join(parts)}

    def recall(self, query: str) -> str:
        wanted = _words(query)
        hits = []
        for at, (when, who, text) in enumerate(self.said):
            shared = len(wanted & _words(text)) or any(
                len(part) > 1 and part[:2] in text for part in wanted if not part.isascii()
            )
            if shared:
                hits.append(
                    (-int(shared), at, f"- {when}, {who} [#{at}]: {' '.join(text.split())}")
                )
        known = [f"- memory: {line.removeprefix('- ')}" for line in self.memory.split("\n")]
        known += [f"- {day}, note: {line.removeprefix('- ')}" for day, line in self.daily]
        hits += [(0, 0, line) for line in known if wanted & _words(line)]
        return "\n".join(line for _, _, line in sorted(hits)) or "No matching records."

    def play(self, name: str, arguments: dict[str, Any]) -> str:
        self.calls.append((name, arguments))
        if name == "memory_save":
            if self.save_result.startswith("saved"):
                self.change(arguments["changes"])
            return self.save_result
        if name == "memory_daily":
            self.daily.append((arguments["date"], arguments["content"]))
            return "noted"
        if name == "memory_forget":
            return self.forget_result
        assert name == "memory_recall"
        assert arguments["days"] > 0
        return self.recall(arguments.get("query", ""))

    def hear(self, text: str, who: str | None = None) -> None:
        """Put a message on the record and into the view."""
        when = f"2026-11-21 22:{self.minute}"
        speaker = who or self.who
        self.minute += 1
        self.said.append((when, speaker, text.partition("\n<quoted>\n")[0]))
        self.view.append({"role": "user", "content": f"[{when}, {speaker}] {text}"})

    def request(self, tool_choice: str = "auto") -> ModelRequest:
        messages = [dict(message) for message in (self.system(), *self.view)]
        if self.memory != self.block:
            messages[-1]["content"] += (
                "\n\n<records>\nLong-term memory, version 5, saved 2026-11-21 22:43:\n"
                f"{self.numbered(self.memory)}\n(end of long-term memory)\n</records>"
            )
        return ModelRequest(messages, self.tools, tool_choice)

    async def answer(self, tool_choice: str = "auto") -> str:
        """Run the loop until the model answers; at most six steps."""
        for _ in range(6):
            reply: ModelReply = await self.model.complete(self.request(tool_choice))
            if not reply.tool_calls:
                self.view.append({"role": "assistant", "content": reply.content})
                self.said.append((f"2026-11-21 22:{self.minute}", "tapebot", reply.content))
                return reply.content
            self.view.append(
                {
                    "role": "assistant",
                    "content": reply.content,
                    "tool_calls": [
                        {
                            "id": call.id,
                            "type": "function",
                            "function": {"name": call.name, "arguments": call.arguments},
                        }
                        for call in reply.tool_calls
                    ],
                }
            )
            for call in reply.tool_calls:
                result = self.play(call.name, json.loads(call.arguments))
                self.view.append({"role": "tool", "tool_call_id": call.id, "content": result})
        raise AssertionError("the responder never answered")

    async def say(self, text: str, who: str | None = None) -> str:
        self.hear(text, who)
        return await self.answer()


def numbered(*messages: str) -> str:
    """Return messages of Ada's, one a minute, as a consolidation sees them."""
    lines = []
    for at, text in enumerate(messages, start=1):
        speaker, _, words = text.rpartition("|")
        spaced = "\n  ".join(words.splitlines())
        lines.append(f"#{at} [2026-03-06 10:{at % 60:02}] {speaker or 'USER (Ada)'}: {spaced}")
    return "\n".join(lines)


def consolidation(known: str, talk: str, purpose: Purpose = "consolidation") -> ModelRequest:
    """Return the request for a consolidation."""
    text = f"Process this.\n\n## Current facts\n{known or '(none)'}\n\n## Conversation to Process\n{talk}"
    tool = ToolSpec("save_memory", "Save.", {"type": "object"})
    messages: list[ChatMessage] = [
        {"role": "system", "content": "x"},
        {"role": "user", "content": text},
    ]
    return ModelRequest(messages, [tool], "save_memory", purpose=purpose)


async def consolidated(known: str, talk: str) -> dict[str, Any]:
    """Return the arguments of the answer."""
    reply = await OfflineModel().complete(consolidation(known, talk))
    assert [call.name for call in reply.tool_calls] == ["save_memory"]
    made: dict[str, Any] = json.loads(reply.tool_calls[0].arguments)
    return made


async def changes(known: str, *messages: str) -> list[tuple[Any, ...]]:
    """Return changes as tuples of what they are, the fact, the text, and messages that hold the quotes."""
    made = await consolidated(known, numbered(*messages))
    return [
        (
            one["op"],
            next(iter(one["facts"]), None),
            one["text"] or None,
            *sorted(
                at
                for at, said in enumerate(messages, start=1)
                if any(quote in " ".join(said.split()) for quote in one["quotes"])
            ),
        )
        for one in made["changes"]
    ]
