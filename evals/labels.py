"""Read files of labelled examples: one JSON object per line."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from bot.core.errors import TapebotError

Label = TypeVar("Label", bound=BaseModel)


def read_labels(path: Path, kind: type[Label]) -> list[Label]:
    """Return the examples of a file.

    Raises:
        TapebotError: A line is not valid, or the file is empty; the text says which line, and why.
        OSError: The file cannot be read.
    """
    found = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found.append(kind.model_validate_json(line))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "it"
            raise TapebotError(f"{path}, line {number}: {where}: {first['msg']}") from error
    if not found:
        raise TapebotError(f"{path} is empty: it should have one JSON object a line")
    return found
