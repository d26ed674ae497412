"""The prompt at a terminal: keys, history, completion and the lines above it."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import is_dumb_terminal

from channels.console.history import FileStamp, file_lock, file_stamp
from channels.console.render import last_rows
from channels.console.terminal_text import strip_controls
from channels.console.turn_state import TurnState

PROMPT = "you> "
LEAVE_HINT = "Press Ctrl-C again or Ctrl-D to leave"

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_TAIL_ROWS = 12
_REDRAW_SECONDS = 0.05
_STYLE = Style.from_dict({"prompt": "bold", "partial": "", "status": "ansibrightblack italic"})


class RawModeInput(Vt100Input):
    """A terminal's keys, which are keys also while something is written above the prompt.

    Left to itself, the terminal would act on some of them in those moments: Ctrl-C would kill the
    program, and Ctrl-D would be lost.
    """

    def cooked_mode(self) -> AbstractContextManager[None]:
        """Return what keeps the terminal from acting on keys, there as everywhere."""
        return self.raw_mode()

    def temporary_cooked_mode(self) -> AbstractContextManager[None]:
        """Return what lets the terminal act on keys, for a time in which nobody reads them."""
        return super().cooked_mode()


class CommandCompleter(Completer):
    """Completes the name of a slash command at the start of a message.

    Args:
        commands: Name and description of each, the slash before the name or not.
    """

    def __init__(self, commands: Iterable[tuple[str, str]]) -> None:
        named = {"/" + name.removeprefix("/"): about for name, about in commands}
        self._commands = sorted(named.items())

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Yield the commands that begin with what was typed."""
        del complete_event  # Typed or asked for by Tab: the same names.
        begun = document.text_before_cursor
        if is_command_name(begun):
            for name, about in self._commands:
                if name.startswith(begun):
                    yield Completion(name, start_position=-len(begun), display_meta=about)


def is_command_name(text: str) -> bool:
    """Return whether the text is a slash command's name or the beginning of one."""
    return text.startswith("/") and len(text.split(None, 1)) == 1 and not text[-1:].isspace()


class ReloadingFileHistory(FileHistory):
    """Typed lines in a file, from which some may be taken while it is in use.

    Args:
        file: The file.
    """

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self._file = file
        self._read: FileStamp | None = None

    @property
    def is_outdated(self) -> bool:
        """Whether the file says something else than what was read and written here."""
        return self._loaded and file_stamp(self._file) != self._read

    async def load(self) -> AsyncGenerator[str, None]:
        """Yield the lines, newest first, as they are in the file now."""
        if self.is_outdated:
            self._loaded = False
        async for line in super().load():
            yield line

    def load_history_strings(self) -> Iterable[str]:
        """Return the lines of the file, newest first."""
        self._read = file_stamp(self._file)
        return super().load_history_strings()

    def store_string(self, string: str) -> None:
        """Add a line to the file."""
        with file_lock(self._file):
            outdated = self.is_outdated
            super().store_string(string)
            if not outdated:
                self._read = file_stamp(self._file)


def reload_history(prompt: PromptSession[str]) -> None:
    """Let an open prompt bring back only lines that its history's file still has."""
    history, buffer = prompt.history, prompt.default_buffer
    if isinstance(history, ReloadingFileHistory) and history.is_outdated:
        # Drops its own copy of the lines, and what undoing would bring back; the next repaint
        # reads the file.
        buffer.reset(buffer.document)


def open_history(file: Path | None) -> History:
    """Return the history of typed lines, making its file for its owner's eyes only.

    Raises:
        OSError: The file or its directory cannot be made.
    """
    if file is None:
        return InMemoryHistory()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    return ReloadingFileHistory(file)


class PromptDisplay:
    """What stands above and before the cursor: the streamed text, the spinner, the prompt.

    Attributes:
        hint: A line shown until the person types or sends something.
        frame: Counts up to turn the spinner.
    """

    def __init__(self, turn: TurnState, output: Output) -> None:
        self.hint = ""
        self.frame = 0
        self._turn = turn
        self._output = output

    def render(self) -> StyleAndTextTuples:
        """Return the lines for now, the prompt last; they never fill the screen."""
        size = self._output.get_size()
        columns, rows = max(size.columns - 1, 1), max(min(_TAIL_ROWS, size.rows // 2), 1)
        lines: StyleAndTextTuples = []
        if self._turn.text:
            shown = "\n".join(last_rows(self._turn.text, columns=columns, rows=rows))
            lines.append(("class:partial", f"{shown}\n"))
        if self._turn.busy:
            doing = strip_controls(self._turn.activity).replace("\n", " ")
            spinner = _FRAMES[self.frame % len(_FRAMES)]
            lines.append(("class:status", f"{spinner} {doing}…"[:columns] + "\n"))
        if self.hint:
            lines.append(("class:status", f"{self.hint}\n"))
        return [*lines, ("class:prompt", PROMPT)]


def build_prompt(
    lines: PromptDisplay,
    *,
    history: History,
    commands: Sequence[tuple[str, str]],
    on_interrupt: Callable[[KeyPressEvent], None],
) -> PromptSession[str]:
    """Return the prompt of the current app session; Enter sends, Alt+Enter makes a new line.

    Args:
        lines: What stands above it.
        history: What the arrow keys bring back.
        commands: Slash commands for completion.
        on_interrupt: Called for Ctrl-C.
    """

    def message() -> StyleAndTextTuples:
        # What is sent stays in the scrollback, without the spinner of that moment; a dumb
        # terminal could not take the spinner back.
        fixed = session.app.is_done or is_dumb_terminal()
        return [("class:prompt", PROMPT)] if fixed else lines.render()

    def typed_something(_: object) -> None:
        lines.hint = ""

    session: PromptSession[str] = PromptSession(
        message,
        history=history,
        completer=CommandCompleter(commands),
        # Space for the menu is taken only while it may open.
        complete_while_typing=Condition(lambda: is_command_name(session.default_buffer.text)),
        key_bindings=_bindings(on_interrupt),
        multiline=True,
        prompt_continuation=" " * len(PROMPT),
        style=_STYLE,
        interrupt_exception=EOFError,
    )
    session.default_buffer.on_text_changed += typed_something
    session.app.min_redraw_interval = _REDRAW_SECONDS
    return session


def _bindings(on_interrupt: Callable[[KeyPressEvent], None]) -> KeyBindings:
    bindings = KeyBindings()
    at_prompt = has_focus(DEFAULT_BUFFER)

    # Eager, since the bindings that prompt_toolkit adds for dumb terminals come later than these.
    @bindings.add("enter", filter=at_prompt, eager=True)
    def send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @bindings.add("escape", "enter", filter=at_prompt)
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @bindings.add("c-c", filter=at_prompt, eager=True)
    @bindings.add("<sigint>", filter=at_prompt, eager=True)
    def interrupt(event: KeyPressEvent) -> None:
        on_interrupt(event)

    return bindings
