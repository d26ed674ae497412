"""Convert between console text and messages of the bus."""

from __future__ import annotations

import itertools
import time
from datetime import UTC, datetime

from bot.bus import Address, Answer, Inbound, Sender
from bot.core.i18n import _
from channels.outgoing_files import file_size, missing_file_text


class InboundFactory:
    """Create the inbound messages of one conversation."""

    def __init__(self, address: Address, sender: Sender) -> None:
        self._address = address
        self._sender = sender
        # The start time in nanoseconds keeps ids unique across restarts, the count within a run.
        self._run = time.time_ns()
        self._count = itertools.count(1)

    def create(self, text: str) -> Inbound:
        """Return a new message of the person, sent now."""
        return Inbound(
            address=self._address,
            id=f"{self._run}-{next(self._count)}",
            sender=self._sender,
            text=text,
            sent_at=datetime.now(UTC),
            role="owner",
        )


async def answer_text(answer: Answer) -> str:
    """Return an answer's text, with the paths of files and the commands of buttons that it lacks."""
    lines = []
    for file in answer.files:
        if await file_size(file) is None:
            lines.append(missing_file_text(file))
        elif str(file.path) not in answer.text:
            lines.append(_("The file is `{path}`.", path=file.path))
    if buttons := _button_line(answer):
        lines.append(buttons)
    return "\n\n".join([answer.text, *lines])


def _button_line(answer: Answer) -> str:
    """Return what takes the place of buttons: their commands, unless the text mentions them."""
    missing = [button for button in answer.buttons if button.command not in answer.text]
    return " · ".join(f"{button.label}: `{button.command}`" for button in missing)
