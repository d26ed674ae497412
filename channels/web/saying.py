"""What people say on a page, on its way to the bus.

Rule 1: ``Access`` is asked for every message before anything of it is fetched or kept.
Rule 2: a message is accepted once it is on the bus; one that is said again with its id is accepted, and not
    taken a second time.
Rule 3: within a conversation everything stays in order, but what stops a turn waits for no file.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from bot.bus import (
    Attachment,
    BusClosed,
    BusError,
    ChannelPort,
    Inbound,
    Knock,
    Role,
    Sender,
    Visitor,
)
from channels.base import Platform
from channels.lanes import Lanes
from channels.text import visible
from channels.web.frames import Press, Say, words_of
from channels.web.room import Room
from channels.web.rooms import Rooms
from channels.web.uploads import Upload, Uploads

logger = logging.getLogger(__name__)

MOST_WAITING = 100
"""Messages of one visitor that may wait for their files."""

STRANGER = "You may not use this bot any more; ask its owner to let you in."
_GONE = "A file of this message is not there any more; please attach it again."
_BROKE = "Something inside tapebot went wrong; it is in the log. Please send it again."


class _Refused(Exception):
    """A message that is not taken; its text is for the person."""


class Saying:
    """Takes what people say.

    Args:
        platform: Says who may, and takes files.
        port: Where messages go.
        rooms: Where they are shown.
        uploads: Files that came before.
        lanes: A lane for each conversation.
    """

    def __init__(
        self, platform: Platform, port: ChannelPort, rooms: Rooms, uploads: Uploads, lanes: Lanes
    ) -> None:
        self._platform = platform
        self._port = port
        self._rooms = rooms
        self._uploads = uploads
        self._lanes = lanes
        self._waiting: Counter[str] = Counter()

    def take(
        self,
        visitor: Visitor,
        frame: Say | Press,
        accepted: Callable[[str, bool], None],
        refused: Callable[[str, str], None],
    ) -> None:
        """Take what somebody says; returns at once.

        Args:
            visitor: Who.
            frame: What.
            accepted: Called with its id, and whether it was known, once it is on the bus.
            refused: Called with its id and why, where it is not taken.
        """
        session = visitor.address.session
        if self._waiting[session] >= MOST_WAITING:
            refused(frame.id, f"{MOST_WAITING} messages wait here already; send this one later")
            return
        self._waiting[session] += 1
        urgent = isinstance(frame, Say) and not frame.files and words_of(frame).startswith("/stop")
        lane = f"stop {session}" if urgent else f"say {session}"
        self._lanes.put(lane, partial(self._said, visitor, frame, accepted, refused))

    async def _said(
        self,
        visitor: Visitor,
        frame: Say | Press,
        accepted: Callable[[str, bool], None],
        refused: Callable[[str, str], None],
    ) -> None:
        session = visitor.address.session
        try:
            with self._rooms.using(session) as room:
                duplicate = await self._publish(room, visitor, frame)
            accepted(frame.id, duplicate)
        except BusClosed:
            logger.info("a message came at the end; its page says it again to the next start")
        except (_Refused, BusError) as error:
            refused(frame.id, str(error))
        except Exception:
            refused(frame.id, _BROKE)
            raise
        finally:
            self._waiting[session] -= 1
            self._waiting += Counter()

    async def _publish(self, room: Room, visitor: Visitor, frame: Say | Press) -> bool:
        role = await self._role(visitor)
        if room.holds(frame.id):
            return True
        text = words_of(frame)
        found = await self._found(visitor, frame)
        if not found and not visible(text):
            raise _Refused("There is nothing in this message that could be sent.")
        taken = [
            await self._platform.media.take(self._uploads.file(visitor.id, one)) for one in found
        ]
        inbound = self._inbound(visitor, frame, role, text, taken)
        known = (await self._port.publish(inbound)).duplicate
        for one in found:
            self._uploads.taken(one)
        if not known:
            room.accepted(inbound)
        return known

    async def _role(self, visitor: Visitor) -> Role:
        sender = Sender(visitor.id, visitor.name)
        verdict = await self._platform.access.admit(Knock(visitor.address, sender, private=True))
        if verdict.role is None:
            raise _Refused(verdict.reply or STRANGER)
        return verdict.role

    async def _found(self, visitor: Visitor, frame: Say | Press) -> list[Upload]:
        found: list[Upload] = []
        for one in frame.files if isinstance(frame, Say) else ():
            upload = await self._uploads.find(visitor.id, one)
            if upload is None:
                raise _Refused(_GONE)
            found.append(upload)
        return found

    def _inbound(
        self, visitor: Visitor, frame: Say | Press, role: Role, text: str, taken: list[Attachment]
    ) -> Inbound:
        return Inbound(
            address=visitor.address,
            id=frame.id,
            sender=Sender(visitor.id, visitor.name),
            text=text,
            sent_at=datetime.now(UTC),
            role=role,
            attachments=tuple(taken),
            pressed=frame.message if isinstance(frame, Press) else None,
        )
