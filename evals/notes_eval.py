"""Evaluate how questions over a person's notes are answered by the program without a model.

A file has the notes of one person, sent at their times on one tape, and then the questions. A line of
notes is shown if the answer has it word for word. See ``docs/evals.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

from bot.bus import Sender
from bot.llm.base import Model
from bot.testing.host import session_host
from bot.testing.manual_clock import ManualClock

NotesVerdict = Literal["right", "partly", "false", "nothing"]
"""Verdict on an answer.

``right``: all lines needed are shown, and one of them comes first. ``partly``: only some are, or another
line comes first. ``false``: lines are shown and none of those needed, or an outdated one before them.
``nothing``: no line is shown though one is needed.
"""


NOTES_VERDICTS: tuple[NotesVerdict, ...] = ("right", "partly", "false", "nothing")
NOTES_FILES = [Path(__file__).parent / "notes" / f"{name}.jsonl" for name in ("tuned", "held-out")]


class Note(BaseModel):
    """What a person sends, when, and the line that an answer should show: ``say`` if there is none."""

    model_config = ConfigDict(extra="forbid")

    id: str
    at: datetime
    say: str = Field(min_length=1)
    line: str = ""


class NotesQuestion(BaseModel):
    """A question, the ids of the notes that answer it, and of those that they make outdated."""

    model_config = ConfigDict(extra="forbid")

    ask: str = Field(min_length=1)
    needs: list[str]
    old: list[str] = []


class NotesLine(RootModel[Note | NotesQuestion]):
    """A line of a file."""


@dataclass(frozen=True, slots=True)
class NotesAnswer:
    """An answer and its verdict."""

    label: NotesQuestion
    text: str
    verdict: NotesVerdict


async def answer_notes(lines: Sequence[NotesLine], model: Model) -> list[NotesAnswer]:
    """Return the program's answers with this model to the questions of a file, after all of its notes."""
    notes = [line.root for line in lines if isinstance(line.root, Note)]
    questions = [line.root for line in lines if isinstance(line.root, NotesQuestion)]
    clock = ManualClock(notes[0].at.replace(tzinfo=UTC))
    answers = []
    with TemporaryDirectory(prefix="tapebot-eval-") as folder:
        async with session_host(Path(folder), model, clock=clock) as host:

            async def ask(text: str) -> str:
                sender = Sender("1", "Ada")
                sent = await host.channel.send(text, chat="eval", sender=sender, private=True)
                return await host.channel.wait_for_answer(sent)

            for note in notes:
                late = note.at.replace(tzinfo=UTC) - clock.now()
                clock.advance(max(late, timedelta()).total_seconds())
                await ask(note.say)
            clock.advance(timedelta(days=1).total_seconds())
            for question in questions:
                text = await ask(question.ask)
                answers.append(NotesAnswer(question, text, grade_notes(text, question, notes)))
    return answers


def grade_notes(answer: str, label: NotesQuestion, notes: Sequence[Note]) -> NotesVerdict:
    """Grade an answer by the lines that it shows, and their order."""
    at = {note.id: answer.find(note.line or note.say) for note in notes}
    shown = sorted((one for one, place in at.items() if place >= 0), key=lambda one: at[one])
    if not shown:
        return "nothing" if label.needs else "right"
    needed = [one for one in shown if one in label.needs]
    outdated = [one for one in shown if one in label.old]
    if not needed or (outdated and at[outdated[0]] < at[needed[0]]):
        return "false"
    return "right" if shown[0] == needed[0] and len(needed) == len(label.needs) else "partly"
