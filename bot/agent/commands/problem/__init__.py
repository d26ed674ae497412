"""``/problem``: what is worked on, and what is put aside for later."""

from bot.agent.commands.problem.command import PROBLEM

__all__ = ["PROBLEM"]
