"""The tool ``dice.roll`` and the command ``/roll``."""

from __future__ import annotations

import secrets

from pydantic import BaseModel, ConfigDict, Field

from bot.agent.commands.registry import Command, CommandContext, CommandReply
from bot.agent.tools.registry import Tool, ToolContext, ToolOutcome


class RollArguments(BaseModel):
    """Arguments of ``dice.roll``."""

    model_config = ConfigDict(extra="forbid")

    sides: int = Field(6, ge=2, le=1_000)


async def _roll(arguments: RollArguments, _: ToolContext) -> ToolOutcome:
    return ToolOutcome(f"The die shows {_throw(arguments.sides)}.")


async def _roll_command(arguments: str, _: CommandContext) -> CommandReply:
    sides = int(arguments[:5]) if arguments.isascii() and arguments.isdecimal() else 6
    return CommandReply(f"You rolled {_throw(min(max(sides, 2), 1_000))}.")


def _throw(sides: int) -> int:
    return secrets.randbelow(sides) + 1


# It touches nothing outside. A tool that states no effect would wait for a person's yes.
ROLL_TOOL = Tool("dice.roll", "Roll a die.", RollArguments, _roll, effect="reads_own")

ROLL_COMMAND = Command(
    "roll", "roll a die", (("SIDES", "with so many sides; 6 if not given"),), _roll_command
)
