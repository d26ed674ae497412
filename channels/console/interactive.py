"""The console at a terminal: a prompt that stays usable while the bot works.

Rule 1: only complete answers enter the scrollback. A streamed answer is displayed above the prompt
and replaced there, so that no text is displayed twice.
Rule 2: an answer is reported once it has been written.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from prompt_toolkit.application import create_app_session, get_app_or_none, run_in_terminal
from prompt_toolkit.key_binding import KeyPressEvent
from prompt_toolkit.output import Output
from prompt_toolkit.output.plain_text import PlainTextOutput
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.utils import is_dumb_terminal

from bot.bus import Answer, BusClosed, BusError, ChannelPort, DeliveryReport, Inbound
from bot.core.i18n import N_, _
from channels.console.messages import InboundFactory, answer_text
from channels.console.prompt import (
    LEAVE_HINT,
    PROMPT,
    PromptDisplay,
    RawModeInput,
    build_prompt,
    open_history,
    reload_history,
)
from channels.console.render import AnswerRenderer
from channels.console.terminal_text import clean_input
from channels.console.turn_state import TurnState

_FAREWELL = N_("Bye. The conversation is on the tape.")
_LEAVE = frozenset({"/quit", "/exit"})
_STOP = "/stop"
_SPIN_SECONDS = 0.12
_MAX_UNSENT = 64


class InteractiveConversation:
    """A conversation at the terminal of standard input and output."""

    def __init__(
        self,
        author: InboundFactory,
        port: ChannelPort,
        *,
        history_file: Path | None,
        commands: Sequence[tuple[str, str]],
        banner: str,
    ) -> None:
        self._author = author
        self._port = port
        self._banner = banner
        self._turn = TurnState()
        self._work = anyio.Event()
        self._dumb = is_dumb_terminal()
        self._keyboard = RawModeInput(sys.stdin)
        self._output = _open_output(dumb=self._dumb)
        self._renderer = AnswerRenderer(sys.stdout)
        self._lines = PromptDisplay(self._turn, self._output)
        self._unsent: MemoryObjectSendStream[Inbound]
        self._to_send: MemoryObjectReceiveStream[Inbound]
        self._unsent, self._to_send = anyio.create_memory_object_stream(_MAX_UNSENT)
        with create_app_session(self._keyboard, self._output):
            self._prompt = build_prompt(
                self._lines,
                history=open_history(history_file),
                commands=[*commands, *((name, _("leave the console")) for name in sorted(_LEAVE))],
                on_interrupt=self._interrupted,
            )

    async def run(self) -> None:
        """Serve until the person leaves or the bus closes."""
        # Other output, such as warnings and logs, is then printed above the prompt.
        with create_app_session(self._keyboard, self._output), patch_stdout():
            if self._banner:
                self._write(f"{self._banner}\n\n")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._show_all)
                tasks.start_soon(self._animate)
                async with anyio.create_task_group() as sending:
                    sending.start_soon(self._send_all, tasks.cancel_scope)
                    # Keep raw mode between two prompts as well.
                    with self._unsent, self._keyboard.raw_mode():
                        await self._read_all()
                self._write(f"{_(_FAREWELL)}\n")
                tasks.cancel_scope.cancel()

    async def _read_all(self) -> None:
        """Read typed messages until the person leaves."""
        while True:
            try:
                text = clean_input(await self._prompt.prompt_async(set_exception_handler=False))
            except EOFError:
                return
            text = text.strip("\n").rstrip()
            if text.strip().lower() in _LEAVE:
                return
            if text:
                inbound = self._author.create(text)
                self._waits_for(inbound)
                await self._hand_over(inbound)

    async def _hand_over(self, inbound: Inbound) -> None:
        try:
            self._unsent.send_nowait(inbound)
        except anyio.WouldBlock:
            # Without a prompt until the queue has space, Ctrl-C must end the program.
            with self._keyboard.temporary_cooked_mode():
                await self._unsent.send(inbound)

    async def _send_all(self, conversation: anyio.CancelScope) -> None:
        """Publish messages in the order of typing, without blocking the prompt."""
        with self._to_send:
            async for inbound in self._to_send:
                try:
                    await self._port.publish(inbound)
                except BusClosed as closed:
                    await self._show(f"{closed}\n\n")
                    conversation.cancel()
                    return
                except BusError as refused:
                    self._turn.message_rejected(inbound.id)
                    await self._show(f"{refused}\n\n")

    async def _show_all(self) -> None:
        while True:
            outbound = await self._port.receive()
            self._turn.outbound_received(outbound)
            if isinstance(outbound, Answer):
                reload_history(self._prompt)
                text = await answer_text(outbound)
                await self._show(self._renderer.render(text) + "\n")
                await self._port.report(DeliveryReport(outbound.session, outbound.id))
            self._refresh()

    async def _animate(self) -> None:
        """Animate the spinner while the bot is busy."""
        while True:
            await self._work.wait()
            while self._turn.busy:
                await anyio.sleep(_SPIN_SECONDS)
                self._lines.frame += 1
                self._prompt.app.invalidate()
            self._work = anyio.Event()

    def _waits_for(self, inbound: Inbound) -> None:
        self._turn.message_sent(inbound.id)
        self._lines.hint = ""
        self._refresh()

    def _refresh(self) -> None:
        if self._turn.busy:
            self._work.set()
        self._prompt.app.invalidate()

    def _interrupted(self, event: KeyPressEvent) -> None:
        """Handle Ctrl-C: clear the typed text, or else stop the turn, or else leave."""
        if event.current_buffer.text:
            event.current_buffer.reset()
            if self._dumb:
                self._write(f"\n{PROMPT}")
            return
        if self._turn.busy and not self._turn.stop_requested and self._stop():
            return
        if self._lines.hint:
            event.app.exit(exception=EOFError())
        else:
            self._lines.hint = _(LEAVE_HINT)
            if self._dumb:
                self._write(f"\n{_(LEAVE_HINT)}\n{PROMPT}")

    def _stop(self) -> bool:
        """Send ``/stop``; return whether the queue had space for it."""
        stop = self._author.create(_STOP)
        try:
            self._unsent.send_nowait(stop)
        except (anyio.WouldBlock, anyio.BrokenResourceError):
            return False
        self._turn.stop_requested = True
        self._waits_for(stop)
        return True

    async def _show(self, text: str) -> None:
        """Write above the prompt; return once it is written."""

        def write() -> None:
            if self._dumb and get_app_or_none() is not None:
                # A dumb terminal is not redrawn: write the prompt and the typed text again.
                self._write(f"\n{text}{PROMPT}{self._prompt.default_buffer.text}")
            else:
                self._write(text)

        await run_in_terminal(write)

    def _write(self, text: str) -> None:
        self._output.write_raw(text)
        self._output.flush()


def _open_output(*, dumb: bool) -> Output:
    if dumb:
        return PlainTextOutput(sys.stdout)
    output = Vt100_Output.from_pty(sys.stdout, term=os.environ.get("TERM"))
    # If a terminal never reports its cursor position, prompt_toolkit would warn and answers wait.
    output.enable_cpr = False
    return output
