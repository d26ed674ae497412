"""``/new``: consolidate what is left, then seal the tape's live part and start a new phase."""

from __future__ import annotations

from typing import Any

import anyio

from bot.agent.commands.parser import ParsedCommand
from bot.agent.commands.registry import CommandReply
from bot.bus import ReceivedMessage
from bot.core.errors import ConsolidationFailed, ModelError
from bot.core.i18n import N_, _, format_number
from bot.core.reasons import Reason, reason_of
from bot.memory.records.attachments import one_line
from bot.memory.records.boundaries import summary_state
from bot.memory.records.event_names import HISTORY_EVENT
from bot.memory.records.outside_text import typed_words
from bot.memory.records.transcript import render_transcript
from bot.memory.session.state.outside_fold import OWN_WORDS_ONLY
from bot.runtime.sessions.session import Session
from bot.runtime.sessions.writer import SessionWriter
from bot.tape.entries import TapeEntry
from bot.tape.search import problem_of

FAILED = N_("Memory archival failed, session not cleared. Please try again.")

_QUOTED_LINES = 6
_QUOTED_LENGTH = 200
_MAX_SUMMARY = 3_000


class NewSession:
    """A running ``/new``.

    Args:
        session: The session.
        writer: Writes its tape.
        delivery: The command's message.
        parsed: The command.
    """

    def __init__(
        self,
        session: Session,
        writer: SessionWriter,
        delivery: ReceivedMessage,
        parsed: ParsedCommand,
    ) -> None:
        self._session = session
        self._writer = writer
        self._delivery = delivery
        self._parsed = parsed
        self._answered = False

    async def run(self) -> None:
        """Start a new phase, or reply why not; ``/new now`` leaves the consolidation for later."""
        arguments = self._parsed.arguments.lower()
        if arguments not in ("", "now"):
            await self._reply(_("There is only `/new` and `/new now`."))
            return
        now = arguments == "now"
        if not now and (why := await self._consolidate()) is not None:
            await self._reply(
                _("{failed}\n\n({why}. `/new now` starts at once.)", failed=_(FAILED), why=why)
            )
            return
        self._session.cancel_background_work()
        with anyio.CancelScope(shield=True):
            outside = self._session.fold.outside
            own_words_only = now and bool(outside.since) and not outside.speaker
            await self._writer.start_session(
                self._delivery,
                self._parsed,
                summary=(
                    own_words_summary(self._session)
                    if own_words_only
                    else await phase_summary(self._session, consolidated=not now)
                ),
                reason="/new now" if now else "/new",
                own_words_only=own_words_only,
            )
            self._answered = True

    async def reply_stopped(self) -> None:
        """Reply that the session was not cleared, if it was stopped before that."""
        if not self._answered:
            await self._reply(_("Stopped. The session was not cleared."))

    async def _reply(self, text: str) -> None:
        # A stop meanwhile must not leave a reply on the tape that is not sent, or make another one.
        with anyio.CancelScope(shield=True):
            await self._writer.reply(self._delivery, self._parsed, CommandReply(text))
            self._answered = True

    async def _consolidate(self) -> str | None:
        """Consolidate what is left; return why it failed, None on success."""
        consolidator, seconds = (
            self._session.consolidator,
            self._session.services.archive_timeout,
        )
        try:
            with anyio.fail_after(seconds):
                await consolidator.finish()
        except (ModelError, ConsolidationFailed, TimeoutError) as error:
            await consolidator.record_failure(error, reason_of(error) or "timeout")
            limit = format_number(seconds)
            return f"{reason_of(error)}" or _("it took over {seconds} s", seconds=limit)
        return None


def own_words_summary(session: Session) -> dict[str, Any]:
    """Return a person's last words of this phase: what the model wrote could repeat text from outside."""
    spoken = [words for one in _shown(session) if (words := typed_words(one))]
    lines = [f"- {one_line(words, _QUOTED_LENGTH)}" for words in spoken[-_QUOTED_LINES:]]
    return summary_state("\n".join(lines), Reason("own_words" if lines else "no_own_words"))


async def phase_summary(session: Session, *, consolidated: bool) -> dict[str, Any]:
    """Return this phase's history entries, or the last messages if it is not consolidated.

    It covers only the current problem.
    """
    if consolidated:
        history = await _history(session)
        return summary_state(history, None if history else Reason("nothing_before"))
    spoken = [entry for entry in _shown(session) if entry.kind == "message"]
    zone = session.services.agent.timezone
    lines = [line[:_QUOTED_LENGTH] for line in render_transcript(spoken[-_QUOTED_LINES:], zone)]
    return summary_state("\n".join(lines), Reason("last_words") if lines else None)


def _shown(session: Session) -> list[TapeEntry]:
    refused = session.fold.refused.entries
    return [entry for entry in session.fold.window.conversation() if entry.id not in refused]


async def _history(session: Session) -> str:
    """Return the current problem's newest history entries of this phase that fit, oldest first."""
    fold = session.fold
    since = fold.boundary.id if fold.boundary else 1
    own_only = fold.boundary is not None and fold.boundary.data.get(OWN_WORDS_ONLY) is True
    found: list[str] = []
    room = _MAX_SUMMARY
    async for entry in session.tape.read_back():
        if entry.id <= since:
            break
        is_history = entry.kind == "event" and entry.name == HISTORY_EVENT
        # A phase that began with own words alone does not get what was said before by a late summary.
        late = is_history and own_only and entry.data.get("range", [0])[0] < since
        if is_history and not late and problem_of(entry) == fold.problem:
            text = str(entry.data.get("entry", ""))
            if found and len(text) > room:
                break
            found.append(text[:_MAX_SUMMARY])
            room -= len(text)
    return "\n".join(reversed(found))
