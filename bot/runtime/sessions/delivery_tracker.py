"""Track unacknowledged messages and undelivered answers of a session.

Rule 1: a message is acknowledged to the bus only after its answer's receipt is on the tape.
Rule 2: each holder of the session sends an answer without a receipt once.
Rule 3: a redelivered message that is already on the tape is not handled again.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from bot.bus import Address, Answer, Bus, Button, Delivery, DeliveryReport, OutgoingFile
from bot.core.errors import InvalidInbound
from bot.memory.records.conversation_entries import TURN_END, needs_answer
from bot.memory.records.transcript import recorded_at
from bot.memory.session.view.session_fold import SessionFold
from bot.memory.session.view.turn_fold import string_items
from bot.runtime.sessions.entries import delivery_entry
from bot.tape.service import TapeService

# The wall clock may have been set back between acceptance and the entry.
_CLOCK_SLACK = timedelta(minutes=10)


class DeliveryTracker:
    """Acknowledges messages and sends answers for one session.

    Args:
        address: The chat that answers go to.
        bus: Carries answers.
        tape: The session's tape, which holds the receipts.
        fold: The session's state.
        exports: The folder of files that are sent with answers.
    """

    def __init__(
        self, address: Address, bus: Bus, tape: TapeService, fold: SessionFold, exports: Path
    ) -> None:
        self._address = address
        self._bus = bus
        self._tape = tape
        self._fold = fold
        self._exports = exports
        self._deliveries: dict[str, Delivery] = {}
        self._sent: set[str] = set()

    async def track(self, delivery: Delivery) -> bool:
        """Track a delivery; return False if its message is already on the tape."""
        if delivery.redelivered and await self._known(delivery):
            return False
        self._deliveries[delivery.inbound.id] = delivery
        return True

    async def send_answers(self) -> None:
        """Send every answer on the tape that has no receipt and that this holder has not sent."""
        for one in list(self._fold.turns.undelivered.values()):
            if one.turn not in self._sent:
                self._sent.add(one.turn)
                elsewhere = _address(one.via)
                answer = Answer(
                    elsewhere or self._address,
                    one.turn,
                    one.text,
                    one.reply_to,
                    one.turn,
                    buttons=tuple(Button(*pair) for pair in one.buttons),
                    shown=self._fold.turns.delivered_parts.get(one.turn, ()),
                    replaces=one.replaces,
                    # Use the file name alone, so that a tape cannot name a file in another folder.
                    files=tuple(
                        OutgoingFile(name, self._exports / Path(file).name)
                        for name, file in one.files
                    ),
                    of=None if elsewhere is None else self._address.session,
                )
                await self._bus.send(answer)

    async def record_report(self, report: DeliveryReport) -> None:
        """Record a delivery report; after a final one, acknowledge the messages it answers."""
        turns = self._fold.turns
        answered = turns.undelivered.get(report.answer)
        if not report.final:
            running = turns.open_turn is not None and turns.open_turn.id == report.answer
            if answered is not None or running:
                await self._tape.append(delivery_entry(report))
            return
        if answered is None:
            return
        await self._tape.append(delivery_entry(report))
        self._sent.discard(report.answer)
        for inbound in answered.inbound:
            delivery = self._deliveries.pop(inbound, None)
            if delivery is not None:
                await delivery.ack()

    async def acknowledge(self, delivery: Delivery) -> None:
        """Acknowledge a message that is on the tape and needs no answer."""
        self._deliveries.pop(delivery.inbound.id, None)
        await delivery.ack()

    async def _known(self, delivery: Delivery) -> bool:
        """Return whether the tape holds the message; track or acknowledge it if so."""
        inbound, turns = delivery.inbound.id, self._fold.turns
        if inbound in turns.unanswered or (turns.open_turn and inbound in turns.open_turn.inbound):
            self._deliveries[inbound] = delivery
            return True
        oldest = delivery.accepted_at - _CLOCK_SLACK
        async for entry in self._tape.read_back():
            moment = recorded_at(entry)
            if moment is not None and moment < oldest:
                return False
            if entry.meta.get("inbound") == inbound and entry.kind == "message":
                if not needs_answer(entry):
                    await delivery.ack()
                    return True
            elif entry.name == TURN_END and inbound in string_items(entry.data.get("inbound")):
                if str(entry.data.get("turn")) in turns.undelivered:
                    self._deliveries[inbound] = delivery
                else:
                    await delivery.ack()
                return True
        return False


def _address(via: str | None) -> Address | None:
    """Return the address of the surface that gets the answer; None if it is the chat."""
    try:
        return None if via is None else Address.parse(via)
    except InvalidInbound:
        # A malformed address on the tape must not keep the session from opening.
        return None
