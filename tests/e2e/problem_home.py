"""A home in which two problems are worked on, and a model that opens one when it is told to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bot.llm.base import ModelRequest
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

MESSAGE = "the-one"
"""The platform's id of what is said when the process is killed."""

TALK = (
    "/problem new Trip",
    "/problem note must be cheap",
    "where to?",
    "/problem new Taxes",
    "/problem note ask which year?",
    "what is due?",
)


def step(request: ModelRequest) -> Any:
    """Answer; where the newest message asks for it, open a problem, or close this one, first."""
    last = request.messages[-1]
    words = str(last["content"]).partition("<records>")[0]
    if last["role"] == "user" and "please open" in words:
        name = words.split("please open ")[1].strip()
        return tool_call_reply(("problem_note", {"kind": "open", "text": name}))
    if last["role"] == "user" and "please end" in words:
        return tool_call_reply(("problem_note", {"kind": "complete"}))
    return text_reply("done")


@asynccontextmanager
async def home(folder: Path) -> AsyncIterator[Host]:
    """Run the program in a folder."""
    async with session_host(folder, ScriptedModel(step)) as host:
        yield host
