"""Problems in words. Pure."""

from __future__ import annotations

from bot.agent.commands.memory.wording import literal, short
from bot.bus import Button
from bot.memory.bus.records import Problem
from bot.memory.bus.working import summary_now

_SHOWN = 300


def called(problem: Problem) -> str:
    """Return a problem's name as Markdown."""
    return f"“{literal(problem.name)}”"


def summarised(summary: str) -> str:
    """Return an exported summary as part of a sentence, cut where it is long; a full stop for none."""
    told = "; ".join(line.strip() for line in summary.splitlines() if line.strip())
    return f": {literal(short(told, _SHOWN))}" if told else "."


def put_aside(problem: Problem) -> str:
    """Return what became of a problem that is not worked on any more, and what it came to."""
    states = {"background": "in the background", "completed": "done"}
    return f"{called(problem)} is {states.get(problem.state, problem.state)}{summarised(summary_now(problem))}"


def switched(left: Problem, taken: Problem) -> str:
    """Return what a switch did."""
    parts = [f"You are on {called(taken)} now.", put_aside(left)]
    messages, _ = taken.weight
    if summary := summary_now(taken):
        parts.append(f"Where you were{summarised(summary)}")
    if messages:
        told = f"{messages} messages of {called(taken)} are" if messages > 1 else "message is"
        parts.append(f"The last {told} back in view.")
    return "\n\n".join(parts)


def back_to(problem: Problem) -> tuple[Button, ...]:
    """Return the button that takes a problem up again; none where it has ended."""
    if problem.state == "completed":
        return ()
    return (Button(f"Back to {problem.name}", f"/problem switch {problem.problem_id}"),)
