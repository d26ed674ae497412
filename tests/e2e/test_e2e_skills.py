"""A skill of a git repository, from the terminal to the model's server, with the program as a person runs it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from preloaded import environment, run_program
from skill_sources import BREW, commit, digest_in

from testkit.openai_server import Call, Reply, ScriptedOpenAI


async def talk(folder: Path, server: ScriptedOpenAI, *lines: str) -> str:
    """Say lines to the program at the terminal; return what it prints."""
    settings = {
        "TAPEBOT_MODEL": "openai/scripted",
        "TAPEBOT_MODEL_API_BASE": server.base_url,
        "TAPEBOT_MODEL_API_KEY": "sk-test",
        # The program's own environment never reaches git.
        "GIT_SSH_COMMAND": f"touch {folder}/ran",
        "GIT_DIR": str(folder / "none"),
    }
    given = "".join(f"{line}\n" for line in lines)
    run = partial(
        run_program,
        ["-m", "bot"],
        environment=environment(folder, **settings),
        cwd=folder,
        given=given,
    )
    done = await anyio.to_thread.run_sync(partial(run, timeout=60))
    assert (done.returncode, done.stderr) == (0, "")
    return str(done.stdout)


def reading(request: dict[str, Any]) -> Reply:
    """Read the skill if it is offered; answer with what was read."""
    last = request["messages"][-1]
    if last["role"] == "tool":
        return Reply(f"Read: {last['content']}")
    offered = [one["function"]["name"] for one in request.get("tools", ())]
    if "skill_read" not in offered:
        return Reply("There are no skills.")
    return Reply(calls=(Call("skill_read", {"name": "brew"}),))


@pytest.mark.slow
async def test_a_skill_of_a_repository_is_read_after_the_owners_yes_and_changed_after_another(
    tmp_path: Path,
) -> None:
    repository = tmp_path / "repository"
    address = commit(repository, {"skills/brew/SKILL.md": BREW})
    async with ScriptedOpenAI(reading) as server:
        shown = await talk(tmp_path, server, f"/skills add {address}", "How do I make tea?")
        assert "There are no skills." in shown
        allow = f"/skills allow brew {digest_in(shown)}"
        shown = await talk(tmp_path, server, allow, "How do I make tea?")
        assert "nobody's instructions" in shown
        assert "Boil water first." in shown
        commit(repository, {"skills/brew/SKILL.md": BREW.replace("Boil", "Spill")})
        shown = await talk(tmp_path, server, "/skills update brew", "How do I make tea?")
        assert "-Boil water first.\n+Spill water first." in shown
        assert "> Boil water first." in shown
        prompt = server.requests[-1]["messages"][0]["content"]
        assert '- brew: "How to brew tea."' in prompt
    assert not (tmp_path / "home" / "incoming-skills").exists()
