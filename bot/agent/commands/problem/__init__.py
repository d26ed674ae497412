"""``/problem``: create, switch, annotate and complete problems."""

from bot.agent.commands.problem.command import PROBLEM_COMMAND

__all__ = ["PROBLEM_COMMAND"]
