"""Read search datasets: a conversation, questions about it and the messages that answer them.

The format is JSON Lines. Messages: ``{"type": "message", "id", "text"}`` with optional ``session``,
``ts`` and ``speaker``. Questions: ``{"type": "question", "text", "evidence": [ids of messages]}``
with optional ``category``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from bot.core.errors import TapebotError
from bot.tape.search import MAX_QUERY_LENGTH

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NAMED = 5
"""Maximum number of unknown ids that an error names."""

# Numeric ids are accepted as names.
_Name = Annotated[str, Field(coerce_numbers_to_str=True)]


class _Message(BaseModel):
    type: Literal["message"]
    id: _Name
    text: str
    session: _Name | None = None
    ts: datetime | None = None
    speaker: str | None = None


class _Question(BaseModel):
    type: Literal["question"]
    text: str = Field(max_length=MAX_QUERY_LENGTH, pattern=r"\S")
    evidence: list[_Name] = []
    category: str | None = None


_LINE: TypeAdapter[_Message | _Question] = TypeAdapter(
    Annotated[_Message | _Question, Field(discriminator="type")]
)


@dataclass(frozen=True, slots=True)
class DatasetMessage:
    """A message of the conversation.

    Attributes:
        id: Id of the message in the file.
        text: Text of the message.
        session: Conversation that it belongs to; messages of one session are consecutive.
        said: Time of the message, with time zone.
        speaker: Name of the speaker; ``assistant``, in any case, for the assistant.
    """

    id: str
    text: str
    session: str | None = None
    said: datetime | None = None
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class DatasetQuestion:
    """A question to search for.

    Attributes:
        text: The question.
        evidence: Ids of the messages that answer it, each once; at least one.
        category: Category of the question.
    """

    text: str
    evidence: tuple[str, ...]
    category: str | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """The content of a dataset file.

    Attributes:
        messages: Messages in the order of the file.
        questions: Questions with evidence.
        without_evidence: Number of questions without evidence.
    """

    messages: tuple[DatasetMessage, ...]
    questions: tuple[DatasetQuestion, ...]
    without_evidence: int = 0


def read_dataset(path: Path) -> Dataset:
    """Read a dataset file.

    Raises:
        TapebotError: A line is neither a message nor a question, an id occurs twice, evidence names
            no message, or there is no question; the text names the line.
        OSError: The file cannot be read.
    """
    messages: dict[str, DatasetMessage] = {}
    questions: dict[int, DatasetQuestion] = {}
    asked = 0
    for number, line in _lines(path):
        if isinstance(line, _Message):
            if line.id in messages:
                raise TapebotError(f"{path}, line {number}: there is a message {line.id} already")
            messages[line.id] = DatasetMessage(
                line.id, line.text, line.session, _aware(line.ts), line.speaker
            )
            continue
        asked += 1
        if line.evidence:
            evidence = tuple(dict.fromkeys(line.evidence))
            questions[number] = DatasetQuestion(line.text, evidence, line.category)
    for number, question in questions.items():
        _check(path, number, question.evidence, messages)
    if not questions:
        raise TapebotError(f"{path} holds no question with evidence: there is nothing to measure")
    return Dataset(tuple(messages.values()), tuple(questions.values()), asked - len(questions))


def _lines(path: Path) -> Iterator[tuple[int, _Message | _Question]]:
    """Yield the parsed lines with their numbers; blank lines are skipped."""
    content = path.read_bytes().removeprefix(_BYTE_ORDER_MARK)
    for number, raw in enumerate(content.split(b"\n"), start=1):
        if not raw.strip():
            continue
        try:
            yield number, _LINE.validate_json(raw)
        except ValidationError as error:
            wrong = error.errors()[0]
            where = ".".join(str(part) for part in wrong["loc"][1:])
            # Pydantic counts from the parsed line; the file's line number is already in the
            # message.
            what = wrong["msg"].replace("line 1 column", "column")
            told = f"{where}: {what}" if where else what
            raise TapebotError(f"{path}, line {number}: {told}") from error


def _aware(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


def _check(
    path: Path, number: int, evidence: Sequence[str], messages: dict[str, DatasetMessage]
) -> None:
    unknown = [one for one in evidence if one not in messages]
    if unknown:
        named = ", ".join(unknown[:_NAMED]) + (" …" if len(unknown) > _NAMED else "")
        raise TapebotError(f"{path}, line {number}: the evidence names no message: {named}")
