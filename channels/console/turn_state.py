"""What the person at the terminal is waiting for, as a fold over messages sent and received.

Rule 1: a message waits until its answer comes or the bot becomes idle, since one answer may answer
several messages.
Rule 2: a partial that arrives after the answer of its stream changes nothing.
"""

from __future__ import annotations

from bot.bus import Activity, Answer, Outbound, PartialAnswer
from bot.core.i18n import _


class TurnState:
    """The state of the running turn, if there is one.

    Attributes:
        text: The partial answer; empty while nothing is streamed.
        stop_requested: Whether the person asked to stop the turn.
    """

    def __init__(self) -> None:
        self.text = ""
        self.stop_requested = False
        self._waiting: set[str] = set()
        self._doing: str | None = None
        self._stream: str | None = None
        self._ended_stream: str | None = None

    @property
    def busy(self) -> bool:
        """Whether the bot is working or a message is unanswered."""
        return self._doing is not None or bool(self._waiting)

    @property
    def activity(self) -> str:
        """The bot's activity in a word or two, such as ``thinking``, or the tool's name."""
        return self._doing or "thinking"

    def message_sent(self, inbound_id: str) -> None:
        """Record that a message waits for its answer."""
        self._waiting.add(inbound_id)

    def message_rejected(self, inbound_id: str) -> None:
        """Record that the bus rejected a message."""
        self._waiting.discard(inbound_id)
        self._settle()

    def outbound_received(self, outbound: Outbound) -> None:
        """Update the state from an outbound of the bot."""
        match outbound:
            case PartialAnswer(stream=stream, text=text):
                if stream != self._ended_stream:
                    self._stream, self.text = stream, text
            case Activity(state="idle"):
                self._doing = None
                self._waiting.clear()
            case Activity(state="waiting"):
                self._doing = _("waiting for the busy model")
            case Activity(state=state, detail=detail):
                self._doing = (detail or _("a tool")) if state == "tool" else _("thinking")
            case Answer():
                self._answered(outbound)
        self._settle()

    def _answered(self, answer: Answer) -> None:
        if answer.reply_to is not None:
            self._waiting.discard(answer.reply_to)
        if not self._waiting:
            self._doing = None
        if answer.stream is not None:
            self._ended_stream = answer.stream
            if answer.stream == self._stream:
                self.text = ""

    def _settle(self) -> None:
        if not self.busy:
            self.text = ""
            self.stop_requested = False
