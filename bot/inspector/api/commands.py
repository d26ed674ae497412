"""API routes of commands: list them, and run one in a conversation, with the chat's own checks."""

from __future__ import annotations

from contextlib import aclosing
from typing import Annotated
from urllib.parse import quote, urlencode

import anyio
from fastapi import APIRouter, Query
from fastapi.responses import FileResponse
from pydantic import Field

from bot.agent.commands.parser import parse_command
from bot.bus import WEB_CHANNEL, Address, InvalidInbound, OutgoingFile, WebUser
from bot.core.errors import HttpError, TapeNotFound
from bot.core.i18n import _
from bot.inspector.access.identities import CONSOLE
from bot.inspector.dependencies import Member, Owner, WebContext, WebContextDep
from bot.inspector.parameters import API
from bot.inspector.reading import ReadModel
from bot.inspector.reading.sessions import is_conversation
from bot.inspector.rendering import render_markdown
from bot.inspector.transcript import TapeTranscript
from bot.memory.records.conversation_entries import is_remote_command
from bot.tape.store import TapeStore

router = APIRouter(prefix=API, tags=["commands"])

WITHIN = 30.0
"""Seconds to wait for a command's answer; a later one is only on the tape."""

_LOOKED_THROUGH = 500
"""Newest entries that are searched for whether a conversation is private."""


class Form(ReadModel):
    """A form of a command's arguments."""

    form: str = Field(description="The form of the command; words in capitals are placeholders.")
    summary: str = Field(description="One line.")


class CommandInfo(ReadModel):
    """A slash command."""

    name: str = Field(description="Without the slash.")
    summary: str = Field(description="One line.")
    forms: list[Form] = Field(description="Forms of its arguments.")
    owner_only: bool = Field(description="Whether only an owner may use it.")


class CommandList(ReadModel):
    """The commands that the caller may run."""

    commands: list[CommandInfo]


class CommandRequest(ReadModel):
    """A command to run in a conversation."""

    session: str = Field(
        min_length=1, max_length=600, description="The conversation's key, such as `telegram:42`."
    )
    text: str = Field(
        min_length=2, max_length=32_000, description="The command, such as `/memory undo`."
    )
    pressed: str | None = Field(
        default=None,
        max_length=200,
        description="Id of the answer that the button belongs to, if it is a button.",
    )


class AnswerButton(ReadModel):
    """A button below an answer: run its command with the answer's id as `pressed`."""

    label: str
    command: str


class AnswerFile(ReadModel):
    """A file attached to an answer."""

    name: str
    url: str = Field(description="Its address.")


class CommandAnswer(ReadModel):
    """The answer to a command."""

    id: str = Field(description="The answer's id.")
    text: str = Field(description="Markdown.")
    html: str = Field(description="The same as HTML with formatted text only.")
    buttons: list[AnswerButton]
    files: list[AnswerFile]


@router.get("/commands")
async def commands(web: WebContextDep, visitor: Member) -> CommandList:
    """List the commands that the caller may run."""
    listed = [
        CommandInfo(
            name=other.name,
            summary=_(other.summary),
            forms=[Form(form=form, summary=_(line)) for form, line in other.forms],
            owner_only=other.owner_only,
        )
        for other in web.commands.visible_commands()
        if visitor.role == "owner" or not other.owner_only
    ]
    return CommandList(commands=listed)


@router.post("/commands")
async def command(web: WebContextDep, visitor: Member, given: CommandRequest) -> CommandAnswer:
    """Run a command in a conversation, and return its answer.

    The command, its sender and its answer are recorded on the conversation's tape; the answer is
    not sent to the chat. An owner may run commands in any conversation, a member in their own on
    the web. Answers 504 after a timeout: the command goes on, and its answer will be on the tape.
    """
    address = await _place(web, visitor, given.session)
    if parse_command(given.text) is None:
        raise HttpError(
            422,
            "no_command",
            _("only commands are accepted here, such as {command}", command="/memory"),
        )
    private = await is_private(web.store, address)
    try:
        answer = await web.remote_commands.run(
            address, visitor, given.text, private=private, pressed=given.pressed, within=WITHIN
        )
    except TimeoutError as exc:
        detail = _(
            "no answer within {seconds} s; the command continues, check the tape later",
            seconds=f"{WITHIN:g}",
        )
        raise HttpError(504, "timeout", detail) from exc
    return CommandAnswer(
        id=answer.id,
        text=answer.text,
        html=render_markdown(answer.text),
        buttons=[
            AnswerButton(label=button.label, command=button.command) for button in answer.buttons
        ],
        files=[
            AnswerFile(name=outgoing_file.name, url=_address(given.session, answer.id, number))
            for number, outgoing_file in enumerate(answer.files)
        ],
    )


@router.get("/commands/file", response_class=FileResponse)
async def file(
    web: WebContextDep,
    visitor: Owner,  # noqa: ARG001 (owners only)
    session: Annotated[
        str, Query(min_length=1, max_length=600, description="The same as for the command.")
    ],
    answer: Annotated[str, Query(min_length=1, max_length=200, description="The answer's id.")],
    number: Annotated[int, Query(ge=0, le=99, description="Index of the file, from 0.")],
) -> FileResponse:
    """Return a file that was attached to a command's answer, such as `/memory export`."""
    transcript = TapeTranscript(web.store, web.exports)
    files = await transcript.files(session, answer)
    outgoing_file: OutgoingFile | None = files[number] if number < len(files) else None
    if outgoing_file is None or not await anyio.Path(outgoing_file.path).is_file():
        raise HttpError(404, "not_found", _("there is no such file, or it no longer exists"))
    name = quote(outgoing_file.name.replace("\x00", ""), safe="")
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{name}",  # for programs
        "Content-Security-Policy": "sandbox; default-src 'none'",  # for programs
    }
    return FileResponse(outgoing_file.path, headers=headers, media_type="application/octet-stream")


async def is_private(store: TapeStore, address: Address) -> bool:
    """Return whether a conversation is one person's with the bot, by its newest messages.

    If no message states it, the conversation is treated as a group, which is shown less.
    """
    if address.channel in (WEB_CHANNEL, CONSOLE):
        return True
    scanned = 0
    try:
        async with aclosing(store.read_back(address.session)) as entries:
            async for entry in entries:
                private = entry.meta.get("private")
                # A remote command only repeats what this function returned for it.
                if isinstance(private, bool) and not is_remote_command(entry):
                    return private
                scanned += 1
                if scanned == _LOOKED_THROUGH:
                    break
    except TapeNotFound:
        pass
    return False


async def _place(web: WebContext, visitor: WebUser, session: str) -> Address:
    """Return a conversation's address, after checking that the user may run commands there.

    Raises:
        HttpError: 422 if it is no conversation, 403 if the user may not run commands there.
        TapeNotFound: The conversation has no tape yet.
    """
    try:
        address = Address.parse(session)
    except InvalidInbound as error:
        raise HttpError(422, "invalid_request", str(error)) from error
    if address.session != session:
        raise HttpError(
            422, "invalid_request", _("{session} is not a conversation", session=session)
        )
    if visitor.role != "owner" and address != visitor.address:
        raise HttpError(
            403, "owners_only", _("only an owner may give commands in this conversation")
        )
    if not is_conversation(session):
        raise HttpError(
            422, "invalid_request", _("{session} is a memory, not a conversation", session=session)
        )
    if address != visitor.address:
        # A command must not create a conversation that does not exist.
        await web.store.version(session)
    return address


def _address(session: str, answer: str, number: int) -> str:
    query = urlencode({"session": session, "answer": answer, "number": number})
    return f"{API}/commands/file?{query}"
