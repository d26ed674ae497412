"""``/problem``: what is worked on, and what is put aside for later."""

from bot.agent.commands.problem.command import PROBLEM_COMMAND

__all__ = ["PROBLEM_COMMAND"]
