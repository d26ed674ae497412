"""Authorize and publish messages that pages send.

Rule 1: every message is authorized before anything of it is fetched or stored.
Rule 2: a message is accepted once it is on the bus; a repeated id is accepted, but not published
    twice.
Rule 3: within a conversation everything stays in order, but ``/stop`` does not wait for files.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from bot.bus import (
    AccessRequest,
    Attachment,
    BusClosed,
    BusError,
    ChannelPort,
    Inbound,
    Role,
    Sender,
    WebUser,
    address_press,
)
from bot.core.i18n import N_, _, ngettext, use_language
from channels.base import NOT_TAKEN_TEXT, ChannelContext
from channels.keyed_executor import KeyedExecutor
from channels.text import has_visible_text
from channels.web.conversation import ConversationRegistry, WebConversation
from channels.web.frames import PressFrame, SayFrame, frame_text
from channels.web.uploads import UploadedFile, UploadStore

logger = logging.getLogger(__name__)

MAX_WAITING_MESSAGES = 100
"""The most messages of one user that may wait for their files."""

NOT_ALLOWED_TEXT = N_("You may no longer use this bot; ask its owner for access.")
_GONE = N_("A file of this message no longer exists; please attach it again.")


class _Refused(Exception):
    """A message was refused; the text is for the user."""


class WebIntake:
    """Publish messages of pages."""

    def __init__(
        self,
        context: ChannelContext,
        port: ChannelPort,
        conversations: ConversationRegistry,
        uploads: UploadStore,
        executor: KeyedExecutor,
    ) -> None:
        self._context = context
        self._port = port
        self._conversations = conversations
        self._uploads = uploads
        self._executor = executor
        self._waiting: Counter[str] = Counter()

    def submit(
        self,
        user: WebUser,
        frame: SayFrame | PressFrame,
        accepted: Callable[[str, bool], None],
        refused: Callable[[str, str], None],
    ) -> None:
        """Submit a message for publishing without waiting."""
        session = user.address.session
        if self._waiting[session] >= MAX_WAITING_MESSAGES:
            refused(
                frame.id,
                ngettext(
                    "{n} message waits here already; send this one later",
                    "{n} messages wait here already; send this one later",
                    MAX_WAITING_MESSAGES,
                ),
            )
            return
        self._waiting[session] += 1
        urgent = (
            isinstance(frame, SayFrame)
            and not frame.files
            and frame_text(frame).startswith("/stop")
        )
        lane = f"stop {session}" if urgent else f"say {session}"  # for the log
        self._executor.submit(lane, partial(self._said, user, frame, accepted, refused))

    async def _said(
        self,
        user: WebUser,
        frame: SayFrame | PressFrame,
        accepted: Callable[[str, bool], None],
        refused: Callable[[str, str], None],
    ) -> None:
        language = await self._context.language(user.address.channel, _sender(user))
        with use_language(language):
            await self._accept(user, frame, accepted, refused)

    async def _accept(
        self,
        user: WebUser,
        frame: SayFrame | PressFrame,
        accepted: Callable[[str, bool], None],
        refused: Callable[[str, str], None],
    ) -> None:
        session = user.address.session
        try:
            with self._conversations.acquire(session) as conversation:
                duplicate = await self._publish(conversation, user, frame)
            accepted(frame.id, duplicate)
        except BusClosed:
            logger.info("a message came during the shutdown; its page will send it again")
        except (_Refused, BusError) as error:
            refused(frame.id, str(error))
        except Exception:
            refused(frame.id, _(NOT_TAKEN_TEXT))
            raise
        finally:
            self._waiting[session] -= 1
            self._waiting += Counter()

    async def _publish(
        self, conversation: WebConversation, user: WebUser, frame: SayFrame | PressFrame
    ) -> bool:
        role = await self._role(user)
        if conversation.has_message(frame.id):
            return True
        text = frame_text(frame)
        uploaded_files = await self._found(user, frame)
        if not uploaded_files and not has_visible_text(text):
            raise _Refused(_("This message has no content to send."))
        taken = [
            await self._context.media.receive(
                self._uploads.remote_file(user.id, user.address.session, uploaded_file)
            )
            for uploaded_file in uploaded_files
        ]
        inbound = self._inbound(user, frame, role, text, taken)
        known = (await self._port.publish(inbound)).duplicate
        for uploaded_file in uploaded_files:
            self._uploads.mark_taken(uploaded_file)
        if not known:
            conversation.show_accepted(inbound)
        return known

    async def _role(self, user: WebUser) -> Role:
        sender = _sender(user)
        decision = await self._context.access.authorize(
            AccessRequest(user.address, sender, private=True)
        )
        if decision.role is None:
            raise _Refused(decision.reply or _(NOT_ALLOWED_TEXT))
        return decision.role

    async def _found(self, user: WebUser, frame: SayFrame | PressFrame) -> list[UploadedFile]:
        uploaded_files: list[UploadedFile] = []
        for upload_id in frame.files if isinstance(frame, SayFrame) else ():
            upload = await self._uploads.find(user.id, upload_id)
            if upload is None:
                raise _Refused(_(_GONE))
            uploaded_files.append(upload)
        return uploaded_files

    def _inbound(
        self,
        user: WebUser,
        frame: SayFrame | PressFrame,
        role: Role,
        text: str,
        taken: list[Attachment],
    ) -> Inbound:
        inbound = Inbound(
            address=user.address,
            id=frame.id,
            sender=_sender(user),
            text=text,
            sent_at=datetime.now(UTC),
            role=role,
            attachments=tuple(taken),
            pressed_message_id=frame.message if isinstance(frame, PressFrame) else None,
            grant=user.grant,
        )
        return address_press(inbound)


def _sender(user: WebUser) -> Sender:
    return Sender(user.id, user.name, user.language)
