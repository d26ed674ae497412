"""What must hold of tapes and platforms, whatever was killed when.

Rule 1: a message of a person's is on the tape once, in the order in which it was said. It is in exactly one
    ``turn.end``, and the model's own answer to it stands where it was said: none is closed by an apology.
Rule 2: a message of the bot's that no final receipt names is a stray. It may be there only if its
    sender was killed before the receipt was durable, and only where the platform cannot be asked what
    it took: on Telegram.
Rule 3: Discord tells of a command or a button once. One that is on no tape died with its process.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kill_checks import check_lines, check_tape, read_tape
from platform_kills import Death, Kills
from platform_stage import TOKEN, Place, Stage
from platform_talk import Said

from bot.memory.records.turn_marks import turn_end
from bot.memory.session.state.turn_fold import DELIVERY, TURN_RESUME
from bot.tape.entries import TapeEntry
from bot.tape.stores.folder_verification import verify_folder

WINDOW = 30.0
"""The most seconds between a send that the server took and the kill that left it without receipt."""


@dataclass(frozen=True)
class Turned:
    inbound: tuple[str, ...]
    status: str
    shown: tuple[str, ...]


@dataclass
class Session:
    """What a tape says: its turns, the ids of what is on it, and how often each turn was taken up again."""

    place: Place
    ends: list[Turned] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    resumed: Counter[str] = field(default_factory=Counter)

    @property
    def receipted(self) -> set[str]:
        return {one for end in self.ends for one in end.shown}


@dataclass(frozen=True)
class Stray:
    place: Place
    number: str
    text: str
    sent_at: float


@dataclass
class Books:
    """What everybody has to say, closed; also when each life began."""

    births: list[float]
    deaths: list[Death]
    said: list[Said]
    strays: list[Stray] = field(default_factory=list)
    lost: list[Said] = field(default_factory=list)
    resumed: int = 0
    """How often the turn was taken up again that was interrupted most."""

    def death_at(self, at: float) -> Death | None:
        """Return the kill that ended the life of a moment; what it sent may have been on the wire then."""
        born = self.births[bisect_right(self.births, at) - 1]
        return next((death for death in self.deaths if death.born == born), None)

    def death_of(self, stray: Stray) -> Death:
        death = self.death_at(stray.sent_at)
        assert death is not None, f"nobody was killed who sent this, and it is a stray: {stray}"
        return death


async def close_books(kills: Kills) -> Books:
    """Close the books once nothing is owed; fail where something was lost, done twice, or shown elsewhere."""
    home, stage = kills.lives.home, kills.stage
    check_lines(home)
    books = Books(kills.lives.births, kills.deaths, kills.talk.said)
    for place in stage.places:
        entries = await read_tape(home, place.session)
        check_tape(entries)
        session, said = _read(place, entries), [one for one in books.said if one.place is place]
        books.lost += _check_settled(session, said)
        _check_shown(session, said, stage)
        books.strays += _strays(session, stage)
        books.resumed = max(books.resumed, *session.resumed.values(), 0)
    for stray in books.strays:
        gap = books.death_of(stray).at - stray.sent_at
        assert gap < WINDOW, f"no kill {gap:.2f} s after this was shown: {stray}"
    for one in books.lost:
        death = books.death_at(one.at)
        killed = death is not None and death.at - one.at < WINDOW
        assert not one.heard or killed, f"lost while it lived: {one}"
    _check_logs(home)
    problems = verify_folder(home / "tapes", "").problems
    assert not problems, f"`tapebot tape verify` finds: {problems}"
    return books


def _read(place: Place, entries: Iterable[TapeEntry]) -> Session:
    session = Session(place)
    receipts: dict[str, tuple[str, ...]] = {}
    ends = []
    for entry in entries:
        if "inbound" in entry.meta:
            session.heard.append(entry.meta["inbound"])
        if (end := turn_end(entry)) is not None:
            ends.append(end.data)
        elif entry.name == DELIVERY and entry.data.get("final", True):
            assert entry.data["delivered"], f"refused: {entry.data}"
            assert entry.data["turn"] not in receipts, f"two receipts: {entry.data}"
            receipts[entry.data["turn"]] = tuple(entry.data["platform_ids"])
        elif entry.name == TURN_RESUME:
            session.resumed[entry.data["turn"]] += 1
    for end in ends:
        shown = receipts.get(end["turn"], ())
        session.ends.append(Turned(tuple(end["inbound"]), end["status"], shown))
    return session


def _check_settled(session: Session, said: list[Said]) -> list[Said]:
    """Each message is there in its order, no turn ended but with its own answer; return what died with its process."""
    asked = [one.id for one in said if one.kind in ("text", "file")]
    assert [one for one in session.heard if one in {*asked}] == asked, "not in order, or not there"
    # Discord tells of an edit once; afterwards its history has the new text.
    edits = [one for one in said if one.kind == "edit" and one.place.platform != "discord"]
    assert not [one for one in edits if one.id not in session.heard], "an edit was lost"
    settled = {one for end in session.ends for one in end.inbound}
    lost = [one for one in said if one.kind != "edit" and one.id not in settled]
    assert not [one for one in lost if not one.interaction], "lost"
    closed = [end for end in session.ends if end.status not in ("ok", "command")]
    assert not closed, f"{len(closed)} of {len(session.ends)} turns were closed falsely: {closed}"
    return lost


def _check_shown(session: Session, said: list[Said], stage: Stage) -> None:
    """Each answer stands in its place and answers what it should; nothing of others is there."""
    texts = stage.texts(session.place)
    by_id = {one.id: one for one in said}
    for end in session.ends:
        assert end.shown, f"{session.place.name}: no receipt for {end}"
        assert set(end.shown) <= texts.keys(), f"{session.place.name}: not there: {end}"
        answer = "".join(texts[one] for one in end.shown)
        for inbound in end.inbound:
            assert inbound in by_id, f"{session.place.name}: answered, and not said: {inbound}"
            token = by_id[inbound].token
            assert token is None or token in answer, f"{by_id[inbound]} is not answered: {answer}"
    mine = {one.token for one in said}
    here = {token for text in texts.values() for token in TOKEN.findall(text)}
    assert here <= mine, f"{session.place.name} shows what others asked: {here - mine}"
    copies = Counter(
        token for number in session.receipted for token in set(TOKEN.findall(texts[number]))
    )
    twice = [token for token, times in copies.items() if times > 1]
    assert not twice, f"{session.place.name}: answered twice, with receipts: {twice}"


def _strays(session: Session, stage: Stage) -> list[Stray]:
    place = session.place
    if place.platform == "telegram":
        shown = [(str(m.id), m.text, m.versions[0].at) for m in stage.on_telegram(place)]
    else:
        shown = [(str(m.id), m.content, m.created) for m in stage.on_discord(place)]
    return [Stray(place, *one) for one in shown if one[0] not in session.receipted]


def _check_logs(home: Path) -> None:
    for path in (home / "logs").iterdir():
        text = path.read_text()
        assert "Traceback" not in text, text[text.index("Traceback") - 500 :][:4000]
