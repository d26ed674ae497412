"""The tool contract: what a tool of a package promises to the model and to the person.

A test class of yours inherits it, and names the tool; see ``docs/plugins.md``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from bot.agent.tools.registry import Tool
from bot.memory.records.evidence import FROM_OUTSIDE
from bot.tape.entries import TapeEntry
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

_NAME = re.compile(r"[a-z][a-z0-9]*(?:\.[a-z][a-z0-9_]*)+")
_LONGEST_NAME, _LONGEST_DESCRIPTION = 64, 400


class ToolContract:
    """Tests of a tool.

    Attributes:
        tool: The tool.
        arguments: Arguments of a call that works; it is run.
    """

    tool: ClassVar[Tool[Any]]
    arguments: ClassVar[Mapping[str, Any]]

    def test_its_name_and_its_description_are_what_models_are_shown(self) -> None:
        assert _NAME.fullmatch(self.tool.name), "a name such as dice.roll"
        assert len(self.tool.name) <= _LONGEST_NAME
        assert 0 < len(self.tool.description) <= _LONGEST_DESCRIPTION, "one short sentence"

    def test_its_schema_is_plain_json_without_references(self) -> None:
        parameters = self.tool.spec().parameters
        assert parameters["type"] == "object"
        assert "$ref" not in json.dumps(parameters)

    async def test_arguments_that_do_not_fit_are_explained_and_nothing_runs(
        self, tmp_path: Path
    ) -> None:
        for number, malformed in enumerate(("[]", "{", '"text"', "7")):
            async with self._host(tmp_path / str(number), malformed) as host:
                assert await host.channel.ask("go") == "done"
                result = await self._result(host)
                assert result.payload["status"] == "error"
                assert "are wrong" in result.payload["content"]
                assert not await host.events("tool.pending")

    async def test_a_call_does_what_its_effect_says(self, tmp_path: Path) -> None:
        async with self._host(tmp_path, json.dumps(self.arguments)) as host:
            await host.channel.ask("go")
            if self.tool.effect == "acts":
                await self._approve(host)
                return
            result = await self._result(host)
            assert result.payload["status"] == "ok", result.payload["content"]
            assert result.payload["content"].strip(), "a result says something"
            outside = bool(result.meta.get(FROM_OUTSIDE))
            assert outside or self.tool.effect != "reads_world"

    async def _approve(self, host: Host) -> None:
        """See that nothing ran before the yes, then say yes and see that it ran."""
        assert not await host.events("tool.started"), "a tool that acts waits for a yes"
        [pending] = await host.wait_for_event("tool.pending")
        await host.channel.send(f"/approve {pending.data['number']}")
        [result] = await host.wait_for_event("tool.result")
        assert result.data["status"] == "ok", result.data

    async def _result(self, host: Host) -> TapeEntry:
        [result] = [entry for entry in await host.tape() if entry.kind == "tool_result"]
        return result

    def _host(self, folder: Path, arguments: str) -> Any:
        called = tool_call_reply((self.tool.wire_name, arguments))
        model = ScriptedModel([called, *[text_reply("done")] * 3])
        return session_host(folder, model, tools=[self.tool])
