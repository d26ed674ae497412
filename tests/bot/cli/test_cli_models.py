"""``tapebot models`` says of each configured model what works, by calling it."""

from __future__ import annotations

from itertools import pairwise

import anyio
import anyio.to_thread
import pytest

from bot.cli.main import main
from testkit.openai_server import Call, Failure, Reply, ScriptedOpenAI

KEY = "sk-a-key-that-nobody-may-read"


def capable(body):
    """Answer as a model does that can do everything."""
    if tools := body.get("tools"):
        return Reply(calls=(Call(tools[0]["function"]["name"], '{"a": 17, "b": 25}'),))
    if "response_format" in body:
        return Reply('{"city": "Paris"}')
    return Reply("red" if "image_url" in str(body["messages"]) else "ready")


def weak(body):
    """Answer as a small server does: text only, without counting tokens."""
    if "tool_choice" in body and body["tool_choice"] != "auto":
        return Failure(400, "functions are not supported here")
    return Reply("Hello there", counted=False)


async def run(capsys, *arguments: str) -> tuple[int, str]:
    """Run the command; return its exit code and everything that it printed."""
    with anyio.fail_after(60):
        code = await anyio.to_thread.run_sync(main, ["models", *arguments])
    return code, capsys.readouterr().out


def table(output: str) -> dict[str, dict[str, str]]:
    """Return the printed table: by preset, the cells by column."""
    head, *rows = output.split("\n\n", maxsplit=1)[0].splitlines()
    names = [name for name in head.split("  ") if name.strip()]
    places = [head.index(name.strip()) for name in names] + [None]
    cells = [[row[a:b].strip() for a, b in pairwise(places)] for row in rows]
    return {row[0]: dict(zip(map(str.strip, names), row, strict=True)) for row in cells}


@pytest.mark.slow
async def test_each_model_is_called_and_what_it_cannot_do_is_said(bare, monkeypatch, capsys):
    monkeypatch.setenv("TAPEBOT_HOME", str(bare))
    async with ScriptedOpenAI(capable) as good, ScriptedOpenAI(weak) as poor:
        (bare / "tapebot.toml").write_text(
            f'[models.good]\nmodel = "openai/gpt-4o"\napi_base = "{good.base_url}"\n'
            f'api_key = "{KEY}"\nfallbacks = ["poor"]\n'
            f'[models.poor]\nmodel = "openai/gpt-3.5-turbo"\napi_base = "{poor.base_url}"\n'
            f'api_key = "{KEY}"\n'
            '[models.down]\nmodel = "openai/x"\napi_base = "http://127.0.0.1:9/v1"\n'
            f'api_key = "{KEY}"\nfallbacks = ["good"]\n'
            '[roles]\nchat = "good"\n'
        )
        code, output = await run(capsys)
        told = table(output)
        assert code == 1
        wanted = ("answers", "stream", "tools", "forced", "json", "images", "usage")
        assert [told["good"][column] for column in wanted] == ["yes"] * 7
        assert told["good"]["price in/out"] == "$2.5/$10"
        assert told["poor"]["answers"] == "yes"
        assert [told["poor"][column] for column in ("tools", "forced", "usage")] == ["no"] * 3
        assert told["poor"]["images"] == "-"
        assert "bad  poor: tools: it did not call the tool" in output
        # A fallback that answers would hide that the model does not.
        assert told["down"]["answers"] == "no"
        assert "bad  down: answers:" in output
        assert "ruled right on 20 of 20 known claims" in output
        assert KEY not in output
        code, output = await run(capsys, "good")
        assert (code, list(table(output))) == (0, ["good"])
