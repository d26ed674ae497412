"""Reconstruct a past model request from the tape.

Rule 1: it uses the parts that made the request: the fold as it was then, the same builder, the
    system prompt on the tape, and the tail records of the step. Nothing is invented.
Rule 2: what cannot be reconstructed is reported: erased words, a builder that is not installed.
Rule 3: images appear by name, without their content.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

from bot.agent.client_requests import INSTRUCTIONS, client_notes
from bot.agent.context import ModelContext, RenderedMessages, origins, records_tail, shrink_results
from bot.agent.request_builder import prompt_digest
from bot.agent.turn_history import ModelCall, PastTurn
from bot.agent.views.exact import AnchorReader
from bot.agent.views.registry import context_builder
from bot.agent.vision import with_images
from bot.core.errors import SettingsError
from bot.core.i18n import _
from bot.llm.base import CapabilityProfile, ChatMessage
from bot.memory.records.attachments import attachments_in
from bot.memory.records.tombstones import ERASED_TEXT, is_erased
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """A message of the history.

    Attributes:
        message: The message as sent, without the tail (see ``ReconstructedRequest.tail``).
        entries: Ids of the entries that it was made from; empty if unknown.
    """

    message: ChatMessage
    entries: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ReconstructedRequest:
    """A request as the model received it.

    Attributes:
        call: The model call that it belongs to.
        builder: Name of the context builder.
        system: The system prompt.
        prompt: Id of the entry that holds the system prompt; 0 if it is gone.
        memory: Ids of the zone's first and last entry that the prompt shows; None if it shows none.
        boundary: Id of the boundary whose note the prompt may show; 0 if there is none.
        history: Messages after the system prompt.
        tail: Text appended to the last message; may be empty.
        erased: Ids of entries whose words the model saw and that were erased since.
        notes: Other differences from the original request, in plain words.
    """

    call: ModelCall
    builder: str
    system: str
    prompt: int
    memory: tuple[int, int] | None
    boundary: int
    history: tuple[HistoryMessage, ...]
    tail: str
    erased: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    def messages(self) -> list[ChatMessage]:
        """Return the messages of the request."""
        return ModelContext(
            self.system,
            tuple(history_message.message for history_message in self.history),
            self.tail,
        ).messages()


async def reconstruct_request(
    tape: TapeService, turn: PastTurn, call: ModelCall, timezone: tzinfo
) -> ReconstructedRequest:
    """Return the request of a model call.

    Reads the entries between the previous turn and the call, and those that were in view.

    Args:
        tape: The session's tape.
        turn: The turn.
        call: One of the turn's calls.
        timezone: The user's time zone.

    Raises:
        SettingsError: The builder that made the request is not installed.
        TapeNotFound: The tape does not exist.
    """
    name = turn.builder_at(call.at)
    builder = context_builder(name)
    fold = await load_fold(tape, call.at)
    anchors = await AnchorReader(tape, fold).read() if builder.anchors else []
    rendered: RenderedMessages = {}
    window = fold.without_hidden_messages().window
    plain = builder.render(window, rendered, anchors)
    spoken = window.conversation()
    entries = origins(plain, rendered, spoken, anchors)
    taken = call.images

    async def load(name: str) -> bytes | None:
        return b"" if name in (taken or ()) else None

    history = await with_images(
        plain,
        spoken,
        rendered,
        profile=CapabilityProfile(vision=call.vision is True),
        images=None if taken is None else load,
        named=True,
    )
    history = shrink_results(history, entries, call.shrunk)
    system, prompt, note = await _prompt(tape, fold)
    notes = [note] if note else []
    if call.vision is None and any(
        f.is_viewable_image for entry in spoken for f in attachments_in(entry.meta)
    ):
        notes.append(_("The tape does not record whether the model saw the images in view."))
    if call.erased:
        notes.append(_("The recalled text of this step has been erased since."))
    return ReconstructedRequest(
        call,
        name,
        system,
        prompt,
        fold.prompt_zone_span,
        fold.boundary.id if fold.boundary is not None else 0,
        tuple(
            # To its own provider a message goes without the mark of where it is from.
            HistoryMessage({k: v for k, v in chat_message.items() if k != "origin"}, made_of)
            for chat_message, made_of in zip(history, entries, strict=True)
        ),
        records_tail(fold, timezone, _with_instructions(call.tail_records, fold), history),
        tuple(entry.id for entry in spoken if _lacks_words(entry)),
        tuple(notes),
    )


def _with_instructions(records: Sequence[str], fold: SessionFold) -> list[str]:
    """Return the records of a step with a client's instructions where it refers to them."""
    held = fold.turns.instructions
    told = client_notes(held.data) if held is not None else []
    return [one for record in records for one in (told if record == INSTRUCTIONS else [record])]


def no_calls_reason(turn: PastTurn) -> str:
    """Return in plain words why a turn without calls has no request to show."""
    if turn.status == "open":
        return _(
            "The model has not answered a call of this turn yet: calls are recorded with "
            "their answers."
        )
    return _("The model answered no call of this turn: calls are recorded with their answers.")


def unavailable_reason(error: SettingsError) -> str:
    """Return in plain words why a call's request cannot be shown."""
    return _("The prompt cannot be shown: {error}.", error=error)


async def _prompt(tape: TapeService, fold: SessionFold) -> tuple[str, int, str]:
    """Return the system prompt, the id of its entry, and a note on what is missing."""
    digest, at = fold.turns.last_prompt
    entries = await tape.read_entries(at, at) if at else []
    if not entries or entries[0].kind != "system":
        return "", 0, _("The system prompt is no longer on the tape.")
    content = str(entries[0].payload.get("content") or "")
    if is_erased(entries[0]):
        return content, at, _("The text of the system prompt has been erased since.")
    changed = prompt_digest(content) != digest
    note = _("Parts of the system prompt have been erased since.") if changed else ""
    return content, at, note


def _lacks_words(entry: TapeEntry) -> bool:
    return is_erased(entry) or ERASED_TEXT in f"{entry.payload}{entry.meta.get('quote', '')}"
