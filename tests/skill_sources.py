"""Skills in folders and git repositories, made by the real git, and a chat whose model reads them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bot.llm.base import ModelReply, ModelRequest
from bot.testing.host import Host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

BREW = "---\nname: brew\ndescription: How to brew tea.\n---\nBoil water first.\n"
_ORDER = re.compile(r"use (\w+) (\{.*\})")
_AUTHOR = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "Eva"), ("EMAIL", "eva@example.org"))
    },
}


def skill_text(name: str, description: str = "Does it.", body: str = "Do it.", **more: str) -> str:
    fields = {"name": name, "description": description, **more}
    header = "\n".join(f"{key.replace('_', '-')}: {value}" for key, value in fields.items())
    return f"---\n{header}\n---\n{body}\n"


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env=os.environ | _AUTHOR,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def commit(folder: Path, files: Mapping[str, str | bytes] | None = None) -> str:
    """Commit files, and what else lies there, to the repository in a folder; return its address."""
    write_files(folder, files or {})
    if not (folder / ".git").exists():
        git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "change")
    return f"file://{folder}"


def digest_in(text: str) -> str:
    found = re.search(r"digest `([0-9a-f]{12})`", text)
    assert found is not None, text
    return found[1]


def obeying(request: ModelRequest) -> ModelReply:
    """Make the call that the newest message orders; then say what it returned."""
    last = request.messages[-1]
    if last["role"] == "user" and (found := _ORDER.search(str(last["content"]))):
        return tool_call_reply((found[1], found[2]))
    return text_reply(f"It said: {last['content']}")


def prompt_of(host: Host) -> str:
    model = host.services.agent.model
    assert isinstance(model, ScriptedModel)
    return str(model.requests_for()[-1].messages[0]["content"])


def tools_of(host: Host) -> list[str]:
    model = host.services.agent.model
    assert isinstance(model, ScriptedModel)
    return [one.name for one in model.requests_for()[-1].tools]


async def said(host: Host, text: str, **how: Any) -> str:
    """Send a message as somebody, or elsewhere; return its answer."""
    return await host.channel.wait_for_answer(await host.channel.send(text, **how))


async def added(host: Host, source: object, *more: str) -> str:
    return digest_in(await host.channel.ask(" ".join(["/skills add", str(source), *more])))


async def allowed(host: Host, name: str, source: object, *how: str) -> str:
    digest = await added(host, source)
    told = await host.channel.ask(" ".join([f"/skills allow {name} {digest}", *how]))
    assert f"`{digest}` allowed" in told
    return digest
