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

from bot.core.i18n import N_
from channels.console.history import FileStamp, file_lock, file_stamp
from channels.console.render import last_rows
from channels.console.terminal_text import strip_controls
from channels.console.turn_state import TurnState

PROMPT = "you> "
LEAVE_HINT = N_("Press Ctrl-C again or Ctrl-D to leave")

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_TAIL_ROWS = 12
_REDRAW_SECONDS = 0.05
_STYLE = Style.from_dict(
    {"prompt": "bold", "partial": "", "status": "ansibrightblack italic"}
)  # for programs


class RawModeInput(Vt100Input):
    """Terminal input that stays in raw mode while text is written above the prompt.

    In cooked mode, Ctrl-C would kill the program in those moments, and Ctrl-D would be lost.
    """

    def cooked_mode(self) -> AbstractContextManager[None]:
        """Return a context manager that keeps raw mode instead of entering cooked mode."""
        return self.raw_mode()

    def temporary_cooked_mode(self) -> AbstractContextManager[None]:
        """Return a context manager for cooked mode, for times in which no prompt reads keys."""
        return super().cooked_mode()


class CommandCompleter(Completer):
    """Complete the name of a slash command at the start of a message."""

    def __init__(self, commands: Iterable[tuple[str, str]]) -> None:
        named = {"/" + name.removeprefix("/"): about for name, about in commands}
        self._commands = sorted(named.items())

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Yield the commands that begin with the typed text."""
        del complete_event  # the same names whether typing or pressing Tab
        begun = document.text_before_cursor
        if is_command_name(begun):
            for name, about in self._commands:
                if name.startswith(begun):
                    yield Completion(name, start_position=-len(begun), display_meta=about)


def is_command_name(text: str) -> bool:
    """Return whether the text is a slash command's name or the beginning of one."""
    return text.startswith("/") and len(text.split(None, 1)) == 1 and not text[-1:].isspace()


class ReloadingFileHistory(FileHistory):
    """History in a file from which entries may be erased while it is in use."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self._file = file
        self._read: FileStamp | None = None

    @property
    def is_outdated(self) -> bool:
        """Whether the file was changed elsewhere since it was last read or written here."""
        return self._loaded and file_stamp(self._file) != self._read

    async def load(self) -> AsyncGenerator[str, None]:
        """Yield the lines that are in the file now, newest first."""
        if self.is_outdated:
            self._loaded = False
        async for line in super().load():
            yield line

    def load_history_strings(self) -> Iterable[str]:
        """Return the lines of the file, newest first."""
        self._read = file_stamp(self._file)
        return super().load_history_strings()

    def store_string(self, string: str) -> None:
        """Append a line to the file."""
        with file_lock(self._file):
            outdated = self.is_outdated
            super().store_string(string)
            if not outdated:
                self._read = file_stamp(self._file)


def reload_history(prompt: PromptSession[str]) -> None:
    """Drop an open prompt's copy of the history if its file was changed."""
    history, buffer = prompt.history, prompt.default_buffer
    if isinstance(history, ReloadingFileHistory) and history.is_outdated:
        # Drops the buffer's copy of the lines and its undo stack; the next repaint reads the file.
        buffer.reset(buffer.document)


def open_history(file: Path | None) -> History:
    """Return the history of typed lines; create its file with access for its owner only.

    Raises:
        OSError: The file or its directory cannot be created.
    """
    if file is None:
        return InMemoryHistory()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    return ReloadingFileHistory(file)


class PromptDisplay:
    """Render the prompt and the lines above it: streamed text, spinner and hint.

    Attributes:
        hint: A line that is displayed until the person types or sends something.
        frame: A counter that selects the spinner's frame.
    """

    def __init__(self, turn: TurnState, output: Output) -> None:
        self.hint = ""
        self.frame = 0
        self._turn = turn
        self._output = output

    def render(self) -> StyleAndTextTuples:
        """Return the present lines, the prompt last; they never fill the screen."""
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
    """Return the prompt of the current app session; Enter sends, Alt+Enter starts a new line."""

    def message() -> StyleAndTextTuples:
        # A sent message stays in the scrollback without the spinner, and a dumb terminal could
        # not remove the spinner.
        fixed = session.app.is_done or is_dumb_terminal()
        return [("class:prompt", PROMPT)] if fixed else lines.render()

    def typed_something(_: object) -> None:
        lines.hint = ""

    session: PromptSession[str] = PromptSession(
        message,
        history=history,
        completer=CommandCompleter(commands),
        # Reserve space for the completion menu only while it may open.
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

    # Eager, since prompt_toolkit adds its bindings for dumb terminals after these.
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
