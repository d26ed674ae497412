"""Events as the bus's messages, with their files taken in."""

from __future__ import annotations

from functools import partial

from bot.bus import Attachment, File, FileUnavailable, Inbound, Media, Role
from channels.delivery.screen import Flooded, Unreachable
from channels.telegram.api import MOST_DOWNLOAD, Api, too_large
from channels.telegram.files import Wanted
from channels.telegram.gathering import joined_text
from channels.telegram.reading import Event
from channels.telegram.recent import Recent
from channels.telegram.timing import Pause, Timing
from channels.telegram.words import quoted

_TRIES = 4


class Composer:
    """Makes ``Inbound`` of the events of people who were let in.

    Args:
        api: Where files are fetched.
        media: Takes them in.
        recent: The bot's last answers, which need not be quoted.
        timing: Waits between tries.
    """

    def __init__(self, api: Api, media: Media, recent: Recent, timing: Timing) -> None:
        self._api = api
        self._media = media
        self._recent = recent
        self._timing = timing

    async def compose(self, events: list[Event], role: Role, *, asks: bool) -> Inbound:
        """Return events as one message; takes as long as their files do."""
        first = events[0]
        self._recent.seen(first)
        attachments = [
            await self._media.take(self._file(wanted)) for event in events for wanted in event.files
        ]
        spoken = "\n".join(one.text for one in attachments if _spoken(one) and one.text)
        text, quote = joined_text(event.text for event in events), self._quote(events)
        edits = None
        if first.kind == "edit":
            edits, text = self._recent.corrected(first)
        if first.passed_on:
            # What somebody else said is not the person's own word, whoever sends it on.
            quote = quoted(quote or "", spoken) if spoken else quote
        else:
            text = "\n".join(filter(None, (text, spoken)))
        return Inbound(
            address=first.address,
            id=first.id,
            sender=first.sender,
            text=text,
            sent_at=first.sent_at,
            private=first.private,
            quote=quote,
            role=role,
            asks=asks,
            edits=edits,
            attachments=tuple(attachments),
            pressed=first.message if first.kind == "press" else None,
        )

    def _quote(self, events: list[Event]) -> str | None:
        found: list[str] = []
        for event in events:
            answers = event.answers
            known = answers and self._recent.last_answer(event.address.session, answers)
            if event.quote is not None and not known:
                found.append(event.quote)
        # The parts of a forwarded album all say who it is from, and one or the other says more.
        return next((one for one in found if "\n" in one), found[0] if found else None)

    def _file(self, wanted: Wanted) -> File:
        return File(
            kind=wanted.kind,
            name=wanted.name,
            mime=wanted.mime,
            size=wanted.size,
            fetch=partial(self._fetch, wanted),
        )

    async def _fetch(self, wanted: Wanted, most: int) -> bytes:
        """Return a file's bytes.

        Raises:
            FileUnavailable: It is too large or gone, or Telegram could not be reached.
        """
        allowed = min(most, MOST_DOWNLOAD)
        if wanted.size is not None and wanted.size > allowed:
            raise too_large(allowed)
        pause = Pause(self._timing)
        for _ in range(_TRIES):
            try:
                return await self._api.fetch(wanted.file_id, allowed)
            except Flooded as flood:
                await pause.wait(flood.seconds)
            except Unreachable:
                await pause.wait()
        raise FileUnavailable("Telegram could not be reached to fetch it; please send it again")


def _spoken(attachment: Attachment) -> bool:
    return attachment.kind == "voice"
