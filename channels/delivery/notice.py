"""What the channel itself has to say in a chat."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from bot.bus import Address, Answer
from bot.core.i18n import current_language, ngettext, use_language

_MOST_NAMED = 1_000


@dataclass(slots=True)
class Notice:
    """A text in plain words, shown in order with the chat's answers; nobody gets a report of it.

    Attributes:
        address: The chat.
        text: The text; of messages that are not taken, the reason.
        reply_to: The platform's id of the message that it answers.
        names: The beginnings of the messages that are not taken, in order; empty for other texts.
        more: The number of messages beyond those in ``names``.
        language: Its reader's language.
    """

    address: Address
    text: str
    reply_to: str | None = None
    names: list[str] = field(default_factory=list)
    more: int = 0
    language: str = field(default_factory=current_language)

    def add(self, name: str) -> None:
        """Name one more message that is not taken for the same reason."""
        if len(self.names) < _MOST_NAMED:
            self.names.append(name)
        else:
            self.more += 1

    def as_answer(self) -> Answer:
        """Return it as a message to deliver."""
        with use_language(self.language):
            return Answer(
                self.address, f"notice-{secrets.token_hex(8)}", self._shown, self.reply_to
            )

    @property
    def _shown(self) -> str:
        if len(self.names) < 2:
            return self.text
        number = len(self.names) + self.more
        head = ngettext(
            "{n} message was not accepted ({reason}):",
            "{n} messages were not accepted ({reason}):",
            number,
            reason=self.text,
        )
        lines = [head, *(f"- {name}" for name in self.names)]
        if self.more:
            more = ngettext(
                "and {n} message after these", "and {n} messages after these", self.more
            )
            lines.append(f"- {more}")
        return "\n".join(lines)
