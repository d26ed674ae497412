"""A tapebot of its own behind the pages: the whole program as a process, with a scripted model server."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from web_program import WebProgram, web_program

from testkit.openai_server import Reply, ScriptedOpenAI, Step


@dataclass(slots=True)
class Talk:
    """What the model answers: to a message that has these words in it, this."""

    answers: dict[str, Step] = field(default_factory=dict)
    otherwise: Step = field(default_factory=lambda: Reply("All right."))

    def __call__(self, body: dict[str, Any]) -> Step:
        asked = [one for one in body["messages"] if one["role"] == "user"]
        words = str(asked[-1]["content"]) if asked else ""
        return next((step for part, step in self.answers.items() if part in words), self.otherwise)


@dataclass(frozen=True, slots=True)
class Site:
    program: WebProgram
    talk: Talk

    @property
    def url(self) -> str:
        return self.program.url

    async def link(self) -> str:
        [link] = re.findall(r"http://\S+", await self.program.run("web", "link"))
        return link


@asynccontextmanager
async def running_site(folder: Path) -> AsyncIterator[Site]:
    """Run the program within the block; its home is inside the folder."""
    async with ScriptedOpenAI(talk := Talk()) as model:
        settings = {
            "TAPEBOT_MODEL": "openai/test",
            "TAPEBOT_MODEL_API_BASE": model.base_url,
            "TAPEBOT_MODEL_API_KEY": "sk-of-nobody",
        }
        async with web_program(folder, **settings) as program:
            await program.start()
            yield Site(program, talk)
