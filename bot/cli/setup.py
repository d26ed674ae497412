"""``tapebot setup``: the guided setup at the terminal, or by lines of a script.

At a terminal a failed check asks what to do. Without one, it ends the setup: a script cannot know
which question its next line answers.
"""

from __future__ import annotations

import getpass
import sys
import termios
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import NoReturn

import anyio
from prompt_toolkit import PromptSession
from prompt_toolkit.output import create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.utils import is_dumb_terminal
from rich.console import Console
from rich.text import Text

from bot.bus.access.access_list import ConfiguredAccess, has_owner
from bot.bus.access.file_store import FILE, read_access_list
from bot.cli.terminal import at_terminal, says_yes
from bot.core.errors import SettingsError, TapebotError
from bot.core.files import create_or_replace_file
from bot.core.i18n import _, use_language
from bot.runtime.settings import Settings, export_dotenv, load_settings
from bot.runtime.setup.checks import Outcome, is_running
from bot.runtime.setup.setup import REMOVE, Answers, Setup
from bot.runtime.setup.steps import STEPS, Question, Step

BACK = "<"
"""The answer that goes back to the step before."""

_INDENT = 4
_WIDEST = 100


Read = Callable[[str, bool], str]
"""What shows a question, and returns one line; the flag says if it is a secret.

It raises ``EOFError`` if there is none, and ``KeyboardInterrupt`` after Ctrl-C.
"""


def _typed_lines() -> Read:
    """Return what reads lines that a person types; secrets are not echoed."""
    output = create_output(sys.stdout)
    # If a terminal never reports its cursor position, prompt_toolkit would print a warning.
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False
    session: PromptSession[str] = PromptSession(output=output)

    def read(prompt: str, secret: bool) -> str:
        if secret and is_dumb_terminal():
            # prompt_toolkit would echo it there.
            return getpass.getpass(prompt)
        return session.prompt(prompt, is_password=secret)

    return read


def _piped_line(prompt: str, secret: bool) -> str:
    sys.stdout.write(prompt)
    sys.stdout.flush()
    line = sys.stdin.readline()
    sys.stdout.write("\n" if secret else line.rstrip("\r\n") + "\n")
    if not line:
        raise EOFError
    return line.rstrip("\r\n")


class _Back(Exception):
    """The person goes back one step."""


class _Failed(Exception):
    """A step failed, and nobody is here to correct it."""


def run_setup(settings: Settings, names: Sequence[str], *, starts: bool = False) -> int:
    """Go through the steps, or only those that are named.

    Returns:
        0; 1 if answers were lost: a check failed and nobody was there to correct them, or input ended
            amid a step; 130 after Ctrl-C.
    """
    known = {step.name: step for step in STEPS}
    if unknown := next((name for name in names if name not in known), None):
        raise SettingsError(
            _(
                "There is no step {name}; the steps are: {steps}.",
                name=unknown,
                steps=", ".join(known),
            )
        )
    steps = [known[name] for name in names] or list(STEPS)
    interactive = at_terminal()
    read = _typed_lines() if interactive else _piped_line
    setup = TerminalSetup(Setup(settings), steps, read, ask=interactive)
    try:
        with _echo_off() if interactive else nullcontext():
            return setup.run(starts=starts)
    except KeyboardInterrupt:
        print("\n" + _("Stopped. What was saved stays; `tapebot setup` goes on."))
        return 130


def offer_setup(settings: Settings) -> Settings:
    """Offer the setup at the first run at a terminal, once, if nothing is set; return the settings."""
    asked = settings.home / ".asked"
    names = {"model", "models", "telegram_token", "discord_token", "database_url"}
    if names & settings.model_fields_set or asked.exists() or not at_terminal():
        return settings
    question = _("tapebot is new here. Set up a model, Telegram and more now? [y/N]")
    wanted = says_yes(f"{question} ")
    create_or_replace_file(asked, b"")
    if wanted:
        run_setup(settings, [], starts=True)
        print()
        export_dotenv()
        settings = load_settings()  # also if the person left: each step was saved
    if not names & settings.model_fields_set:
        print(_("A notebook answers, without a language model. `tapebot setup` sets up more."))
    return settings


@contextmanager
def _echo_off() -> Iterator[None]:
    """Show nothing that is typed or pasted while no question is open: it may be a token."""
    before = termios.tcgetattr(sys.stdin)
    silent = [*before]
    silent[3] &= ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


class TerminalSetup:
    """The setup as a conversation of lines."""

    def __init__(self, setup: Setup, steps: Sequence[Step], read: Read, *, ask: bool) -> None:
        self._setup = setup
        self._steps = steps
        self._read = read
        self._ask = ask
        self._console = Console(highlight=False)

    def run(self, *, starts: bool = False) -> int:
        """Go through the steps, and say what to do next; return the exit code."""
        anyio.run(self._setup.look_around)
        self._say(
            _(
                "Enter keeps what is set, {back} goes back, {remove} removes, Ctrl-C leaves. Each "
                "step is tried and saved before the next one.",
                back=BACK,
                remove=REMOVE,
            )
        )
        place = 0
        try:
            while place < len(self._steps):
                with use_language(self._setup.settings.shown_language):
                    place = self._go(place)
        except EOFError:
            self._console.print()
        except _Failed:
            return 1
        with use_language(self._setup.settings.shown_language):
            self._say("")
            self._say(_("What next:"), style="bold")
            for line in anyio.run(partial(_next_steps, self._setup.settings, starts=starts)):
                self._say(f"- {line}", hang=2)
        return 0

    def _go(self, place: int) -> int:
        """Do one step; return the place of the next."""
        step = self._steps[place]
        self._say("")
        title = f"{place + 1}/{len(self._steps)} {_(step.title)}: {self._setup.status(step)}"
        self._say(title, style="bold")
        self._say(_(step.about), indent=_INDENT)
        try:
            self._do(step)
        except _Back:
            return max(place - 1, 0)
        return place + 1

    def _do(self, step: Step) -> None:
        """Ask until the answers work, are saved as they are, or are dropped."""
        given: Answers = {}
        while True:
            given = self._questions(step, given)
            answers = self._setup.changes(step, given)
            if not answers and not step.always:
                return
            works = self._try(step, answers)
            if works and answers:
                self._save(step, answers)
            if works or not (answers or self._ask):
                return
            if not self._ask:
                self._unsaved()
            if self._leaves(step, answers):
                return

    def _questions(self, step: Step, earlier: Answers) -> Answers:
        """Ask a step's questions; Enter keeps an earlier answer, else what is set."""
        answers: dict[str, str | None] = {}
        for question in step.questions:
            if step.name == "model" and answers and not self._setup.fits_provider(answers, earlier):
                earlier = {}
            if self._setup.asks(question, answers):
                kept = {name: earlier[name] for name in (question.field,) if name in earlier}
                try:
                    answers |= self._question(question, answers | kept) or kept
                except EOFError:
                    if not (answers or earlier):
                        raise
                    self._unsaved()
        return answers

    def _question(self, question: Question, answers: Answers) -> dict[str, str | None]:
        """Ask until the answer has the right form; return it by its setting, nothing after Enter."""
        choices = self._setup.choices(question)
        for number, (value, label) in enumerate(choices.items(), 1):
            self._say(f"{number:>2}  {value}: {label}", indent=_INDENT)
        if choices:
            self._say(_("Type a number, or the answer itself."), indent=_INDENT)
        if question.about:
            self._say(_(question.about), indent=_INDENT)
        value = self._setup.shown(question, answers)
        prompt = " " * _INDENT + _(question.text) + (f" [{value}]: " if value else ": ")
        while True:
            text = self._read(prompt, question.secret).strip()
            if text == BACK:
                raise _Back
            if not text:
                return {}
            try:
                return {question.field: self._setup.parse(question, _chosen(text, [*choices]))}
            except SettingsError as error:
                self._fail(str(error))
                if not self._ask:
                    raise _Failed from None

    def _try(self, step: Step, answers: Answers) -> bool:
        """Check answers, and say what came of it; return whether they work."""
        if step.waiting:
            self._say(_(step.waiting), indent=_INDENT, style="dim")
        try:
            outcome = anyio.run(self._setup.check, step, answers)
        except TapebotError as error:
            outcome = Outcome(False, f"{error}")
        if outcome.works and outcome.text:
            self._say(f"✓ {outcome.text}", indent=_INDENT, hang=2, style="green")
        elif not outcome.works:
            self._fail(outcome.text)
        if outcome.remedy:
            self._say(f"→ {outcome.remedy}", indent=_INDENT, hang=2)
        return outcome.works

    def _save(self, step: Step, answers: Answers) -> None:
        written = self._setup.save(step, answers)
        with use_language(self._setup.settings.shown_language):
            self._say(_("Saved in {path}.", path=written.path), indent=_INDENT, style="dim")
            for name in written.overridden:
                self._say(
                    _(
                        "But {name} is set in the environment, which wins. Unset it there.",
                        name=name,
                    ),
                    indent=_INDENT,
                    style="yellow",
                )

    def _leaves(self, step: Step, answers: Answers) -> bool:
        """Ask what to do with answers that do not work; return whether to leave the step."""
        prompt = _("Enter: correct it; s: skip; {back}: back", back=BACK)
        if answers:
            prompt = _("Enter: correct it; s: skip; w: write it as it is; {back}: back", back=BACK)
        while True:
            text = self._read(" " * _INDENT + f"{prompt}: ", False)
            match text.strip().lower():
                case "":
                    return False
                case "s":
                    return True
                case "w" if answers:
                    self._save(step, answers)
                    return True
                case "<":
                    raise _Back

    def _unsaved(self) -> NoReturn:
        self._say(_("Nothing of this step was saved."), indent=_INDENT)
        raise _Failed

    def _fail(self, text: str) -> None:
        self._say(f"✗ {text}", indent=_INDENT, hang=2, style="red")

    def _say(self, text: str, *, indent: int = 0, hang: int = 0, style: str = "") -> None:
        """Print a text, wrapped at spaces: a link that is broken cannot be opened."""
        width = min(self._console.width, _WIDEST) - 1
        for line in textwrap.wrap(
            text,
            width,
            initial_indent=" " * indent,
            subsequent_indent=" " * (indent + hang),
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]:
            self._console.print(Text(line, style=style), soft_wrap=True)


def _chosen(text: str, choices: Sequence[str]) -> str:
    """Return the choice that a number stands for; else the text."""
    if text.isascii() and text.isdecimal() and 1 <= int(text[:4]) <= len(choices):
        return choices[int(text[:4]) - 1]
    return text


async def _next_steps(settings: Settings, *, starts: bool) -> list[str]:
    """Return what a person can do now, a sentence each; ``starts``: tapebot starts at once."""
    lines = []
    if running := await is_running(settings.home):
        lines.append(_("tapebot runs already: start it again to use what you changed."))
    else:
        if not starts:
            lines.append(_("Talk in the terminal: tapebot"))
        lines.append(_("Keep it running, also when you log out: tapebot service install"))
    if settings.telegram_token or settings.discord_token:
        lines += _pairing(settings)
    if settings.web_listen is not None and running:
        lines.append(_("Open the site: tapebot web link"))
    return [*lines, _("Check everything again: tapebot doctor --probe")]


def _pairing(settings: Settings) -> list[str]:
    """Return how people get access."""
    try:
        access = read_access_list(settings.home / FILE)
    except SettingsError:
        return []
    others = _("Others write to the bot and get a code; you let them in with /pair CODE.")
    if has_owner(access, ConfiguredAccess(frozenset(settings.owners), frozenset(settings.allow))):
        return [others]
    own = _("Own the bot: at its start tapebot prints a code; send the bot /claim CODE in private.")
    return [own, others]
