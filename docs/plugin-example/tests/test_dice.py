from tapebot_plugin_example.dice import ROLL_COMMAND, ROLL_TOOL

from bot.testing.command_contract import CommandContract
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply
from bot.testing.tool_contract import ToolContract


class TestRollTool(ToolContract):
    tool = ROLL_TOOL
    arguments = {"sides": 20}


class TestRollCommand(CommandContract):
    command = ROLL_COMMAND
    arguments = ("", "20")


async def test_a_die_has_no_other_sides(tmp_path):
    model = ScriptedModel([tool_call_reply(("dice_roll", {"sides": 2})), text_reply("done")])
    async with session_host(tmp_path, model, tools=[ROLL_TOOL]) as host:
        assert await host.channel.ask("roll a die") == "done"
        [result] = [entry for entry in await host.tape() if entry.kind == "tool_result"]
        assert result.payload["content"] in ("The die shows 1.", "The die shows 2.")
