"""The table of the books: what was said, what kills cost, and how it was made good."""

from __future__ import annotations

from collections import Counter

from platform_books import Books, Session

from bot.memory.session.state.turn_fold import TURN_RESUME
from bot.tape.store import REPAIR_EVENT

OFTEN = 3
"""Taken up again more often than this, a turn has been interrupted very often."""

_PLATFORMS = ("telegram", "discord")


class Table:
    """Lines with a figure for each platform."""

    def __init__(self) -> None:
        self._lines: dict[str, Counter[str]] = {}

    def add(self, line: str, platform: str, figure: int = 1) -> None:
        """Add to a line's figure; a new line stands below the others."""
        self._lines.setdefault(line, Counter())[platform] += figure

    def render(self) -> str:
        """Return it as text."""
        rows = [f"{'':<52}{'telegram':>9}{'discord':>9}"]
        for line, figures in self._lines.items():
            rows.append(f"{line:<52}" + "".join(f"{figures[one]:>9}" for one in _PLATFORMS))
        return "\n".join(rows)


def render(books: Books) -> str:
    """Return the books as lines of text."""
    met = Counter(death.moment for death in books.deaths if death.met)
    kinds = Counter(death.moment for death in books.deaths)
    each = ", ".join(f"{kind} {met[kind]}/{times}" for kind, times in sorted(kinds.items()))
    head = f"{len(books.deaths)} kills, {met.total()} of them at the moment that was meant: {each}"
    table = Table()
    _said(books, table)
    _recovered(books, table)
    _cost(books, table)
    return "\n".join([head, table.render(), *_strays(books), *_lost(books)])


def _said(books: Books, table: Table) -> None:
    for one in books.said:
        platform = one.place.platform
        table.add("said and done", platform)
        table.add("  while it was away", platform, not one.heard)
    for one in sorted(books.said, key=lambda said: said.kind):
        table.add(f"  of the kind {one.kind}", one.place.platform)
    for session in books.sessions:
        table.add("answered, once on the tape", session.place.platform, len(session.settled))


def _recovered(books: Books, table: Table) -> None:
    for session in books.sessions:
        platform = session.place.platform
        table.add("turns taken up again", platform, session.counts[TURN_RESUME])
        often = sum(times > OFTEN for times in session.resumed.values())
        table.add(f"  more than {OFTEN} times the same", platform, often)
        joined = sum(len(end.inbound) - 1 for end in session.ends)
        table.add("answered with another, in one turn", platform, joined)
        table.add("torn ends of tapes repaired", platform, session.counts[REPAIR_EVENT])
        table.add("shown before a kill, receipted after it", platform, _found_again(session, books))
    for update in books.stage.telegram.records.updates:
        table.add("handed out again by the platform", "telegram", len(update.handed_at) > 1)


def _cost(books: Books, table: Table) -> None:
    for platform in _PLATFORMS:
        twice, halves = (len(books.strays_on(platform, half=half)) for half in (False, True))
        table.add("shown twice: killed between send and receipt", platform, twice)
        table.add("half left: killed between send and receipt", platform, halves)
    discord = books.stage.discord.records
    for one in books.lost:
        table.add("interactions that died with the process", "discord")
        acknowledged = discord.interactions[one.number].acknowledged is not None
        table.add("  acknowledged before", "discord", acknowledged)
    thinking = sum(one.loading and one.deleted is None for one in discord.messages.values())
    table.add("signs of thinking that stayed", "discord", thinking)


def _strays(books: Books) -> list[str]:
    lines = []
    for stray in books.strays:
        death = books.death_of(stray)
        gap = (death.at - stray.sent_at) * 1000
        when = f"{gap:.0f} ms after" if gap >= 0 else f"{-gap:.0f} ms before"
        what = "a half" if stray.half else "shown twice"
        lines.append(
            f"{what} in {stray.place.name}: killed {when} {stray.place.platform} had taken it "
            f"({death.moment})"
        )
    return lines


def _lost(books: Books) -> list[str]:
    known = books.stage.discord.records.interactions
    lines = []
    for one in books.lost:
        acknowledged = known[one.number].acknowledged
        death = next((each for each in books.deaths if each.at >= one.at), None)
        if acknowledged is not None and death is not None:
            gap = (death.at - acknowledged) * 1000
            lines.append(
                f"{one.kind} died in {one.place.name}: killed {gap:.0f} ms after it was "
                f"acknowledged ({death.moment})"
            )
    return lines


def _found_again(session: Session, books: Books) -> int:
    """Count answers that were (in part) on the screen before a kill and have their receipt after."""
    began = {str(one.id): one.versions[0].at for one in books.stage.telegram.records.shown}
    if session.place.platform == "discord":
        began = {str(one.id): one.created for one in books.stage.on_discord(session.place)}
    return sum(
        any(began[end.shown[0]] < death.at < end.receipt_at for death in books.deaths)
        for end in session.ends
        # A press changes a message that is old.
        if not end.inbound[0].startswith("cb")
    )
