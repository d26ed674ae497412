"""What the person at the terminal is waiting for, as a fold over what was sent and received.

Rule 1: a message waits until its own answer comes, or until the bot says that it is idle: one
answer may answer several messages.
Rule 2: a partial that arrives after the answer of its stream is old and changes nothing.
"""

from __future__ import annotations

from bot.bus import Activity, Answer, Outbound, Partial


class TurnState:
    """The running turn, if there is one.

    Attributes:
        text: The answer's text so far, empty while nothing is streamed.
        stop_requested: The person asked for the turn to end.
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
        """Whether the bot works, or a message has not been answered."""
        return self._doing is not None or bool(self._waiting)

    @property
    def activity(self) -> str:
        """What the bot does, in a word or two: ``thinking``, or the tool's name."""
        return self._doing or "thinking"

    def message_sent(self, inbound_id: str) -> None:
        """Note a message that now waits for its answer."""
        self._waiting.add(inbound_id)

    def message_rejected(self, inbound_id: str) -> None:
        """Note that the bus did not take a message."""
        self._waiting.discard(inbound_id)
        self._settle()

    def outbound_received(self, outbound: Outbound) -> None:
        """Note what came from the bot."""
        match outbound:
            case Partial(stream=stream, text=text):
                if stream != self._ended_stream:
                    self._stream, self.text = stream, text
            case Activity(state="idle"):
                self._doing = None
                self._waiting.clear()
            case Activity(state=state, detail=detail):
                self._doing = (detail or "a tool") if state == "tool" else "thinking"
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
