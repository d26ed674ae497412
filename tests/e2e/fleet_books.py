"""What must hold of a fleet's tapes and of its screens, whatever happened to its processes.

Rule 1: each message that the platform had taken is on its session's tape once, in the order in which it
    was said, and in exactly one ``turn.end``, whose answer stands in its chat.
Rule 2: an answer stands in a chat twice only where a process was struck between the send that Telegram
    took and its receipt; Telegram cannot be asked what it took.
Rule 3: nothing of one chat is in another, on the tape or on the screen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from fleet_ledger import Ledger, Said
from fleet_processes import Fleet
from kill_checks import check_tape
from platform_stage import TOKEN

from bot.memory.records.turn_marks import turn_end
from bot.memory.session.state.turn_fold import DELIVERY, TURN_RESUME
from bot.tape.entries import TapeEntry

ReadTape = Callable[[str], Awaitable[list[TapeEntry]]]

BEFORE = 5.0
"""The most seconds between a send that Telegram took and the blow that left it without a receipt."""

AFTER = 1.0
"""The most seconds after a blow in which Telegram takes what was on its way."""

_BAD = re.compile(r" (?:ERROR|CRITICAL) |Traceback")


@dataclass
class Found:
    """How many messages the books have, how often turns were taken up by another process, and what stands twice."""

    messages: int = 0
    resumed: int = 0
    copies: list[str] = field(default_factory=list)


async def close_books(fleet: Fleet, read: ReadTape) -> Found:
    """Close the books once everything is answered and every process has ended."""
    ledger, found = fleet.world.ledger, Found()
    assert not ledger.strange, ledger.strange
    assert not ledger.open, f"not answered: {[*ledger.open.values()]}"
    for chat in ledger.chats():
        entries = await read(f"telegram:{chat}")
        _check_session(fleet, chat, entries, ledger.in_chat(chat), found)
    found.messages = len(ledger.said)
    found.copies = _copies(fleet)
    return found


def check_logs(fleet: Fleet) -> None:
    for member in fleet.members.values():
        for line in (member.logs() + member.said()).splitlines():
            assert not _BAD.search(line), f"{member.name}: {line}\n{member.said()[-2000:]}"


def _check_session(
    fleet: Fleet, chat: int, entries: list[TapeEntry], said: list[Said], found: Found
) -> None:
    check_tape(entries)
    heard = [e.meta["inbound"] for e in entries if e.kind == "message" and "inbound" in e.meta]
    wanted = [one.id for one in said]
    assert heard == wanted, f"{chat}: heard {_difference(heard, wanted)}"
    ends = list(filter(None, map(turn_end, entries)))
    settled = [one for end in ends for one in end.data["inbound"]]
    assert sorted(settled) == sorted(wanted), f"{chat}: settled {_difference(settled, wanted)}"
    assert {end.data["status"] for end in ends} <= {"ok"}
    found.resumed += sum(e.name == TURN_RESUME for e in entries)
    _check_answers(fleet, chat, ends, entries, said)
    _check_words(chat, entries, said)


def _check_answers(
    fleet: Fleet, chat: int, ends: list[TapeEntry], entries: list[TapeEntry], said: list[Said]
) -> None:
    """Each turn has one final receipt, and what it names stands in the chat and answers the turn."""
    finals = [
        e.data for e in entries if e.name == DELIVERY and e.data.get("final", True) is not False
    ]
    receipts = {one["turn"]: one for one in finals}
    assert len(receipts) == len(finals), f"{chat}: two receipts for a turn"
    texts = {str(one.id): one.text for one in fleet.world.telegram.records.messages(chat)}
    tokens = {one.id: one.token for one in said}
    for end in ends:
        receipt = receipts.get(end.data["turn"])
        assert receipt is not None, f"{chat}: no receipt for {end.data}"
        assert receipt["delivered"], f"{chat}: refused: {receipt}"
        gone = [one for one in receipt["platform_ids"] if one not in texts]
        assert not gone, f"{chat}: not there: {gone} of {receipt}"
        shown = "".join(texts[one] for one in receipt["platform_ids"])
        missing = [one for one in end.data["inbound"] if tokens[one] not in shown]
        assert not missing or end.data["status"] != "ok", f"{chat}: {missing} not in {shown!r}"


def _check_words(chat: int, entries: list[TapeEntry], said: list[Said]) -> None:
    here = {token for entry in entries for token in TOKEN.findall(str(entry.payload))}
    strange = here - {one.token for one in said}
    assert not strange, f"{chat}: words of others: {strange}"


def _copies(fleet: Fleet) -> list[str]:
    """Return what stands twice, each near a blow that explains it."""
    books, ledger = fleet.world.telegram.records, fleet.world.ledger
    copies = ledger.copies(books.shown)
    for token, those in copies.items():
        moments = [one.versions[0].at for one in those[:-1]]
        alone = [at for at in moments if not _explained(ledger, at)]
        assert not alone, f"{token} was shown twice, and nothing had happened: {those}"
    return [*copies]


def _explained(ledger: Ledger, at: float) -> bool:
    return any(blow.at - BEFORE < at < blow.until + AFTER for blow in ledger.blows)


def _difference(got: list[str], wanted: list[str]) -> str:
    lost = [one for one in wanted if one not in got]
    more = [one for one, times in (Counter(got) - Counter(wanted)).items() if times]
    where = next((n for n, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b), None)
    return f"lost {lost}, too often {more}, first difference at {where} of {len(wanted)}"
