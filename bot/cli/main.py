"""Parse the command line, and run the chosen command."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

from bot.cli.commands import Chosen, make_parser
from bot.cli.terminal import complete_streams
from bot.core.errors import SettingsError, TapebotError
from bot.core.i18n import (
    N_,
    _,
    environment_language,
    match_language,
    translate_libraries,
    use_language,
)
from bot.core.installation import this_installation
from bot.runtime.settings import export_dotenv, load_settings

WRONG_SETTINGS = 2

ARGPARSE_MESSAGES = (
    N_("usage: "),
    N_("positional arguments"),
    N_("options"),
    N_("show this help message and exit"),
    N_("%(prog)s: error: %(message)s\n"),
    N_("argument %(argument_name)s: %(message)s"),
    N_("the following arguments are required: %s"),
    N_("unrecognized arguments: %s"),
    N_("ambiguous option: %(option)s could match %(matches)s"),
    N_("ignored explicit argument %r"),
    N_("expected one argument"),
    N_("expected at most one argument"),
    N_("expected at least one argument"),
    N_("invalid %(type)s value: %(value)r"),
    N_("invalid choice: %(value)r (choose from %(choices)s)"),
    N_("unknown parser %(parser_name)r (choices: %(choices)s)"),
)
"""What ``argparse`` of Python 3.11 to 3.14 prints."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code. Expected errors are printed without a traceback."""
    complete_streams()
    language = match_language([os.environ.get("TAPEBOT_LANGUAGE", "")])
    language = language or environment_language(os.environ) or "en"
    translate_libraries(language)
    with use_language(language):
        return _main(arguments)


def _main(arguments: Sequence[str] | None) -> int:
    given = vars(make_parser().parse_args(arguments))
    if given.pop("version"):
        from importlib.metadata import version

        print(version("tapebot"))
        return 0
    try:
        return _run(given.pop("chosen"), given)
    except SettingsError as error:
        print(this_installation().adapt(f"{error}"), file=sys.stderr)
        return WRONG_SETTINGS
    except TapebotError as error:
        print(f"tapebot: {this_installation().adapt(f'{error}')}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader closed the pipe; flushing the rest at exit would raise again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        print(f"tapebot: {error.strerror}{where}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _run(command: Chosen, arguments: dict[str, Any]) -> int:
    given = {**arguments, **command.given}
    if command.name == "doctor":  # it says itself what is wrong with the settings
        return _call(command, given)
    export_dotenv()
    settings = load_settings()
    with use_language(settings.shown_language):
        return _call(command, {"settings": settings, **given})


def _call(command: Chosen, given: dict[str, Any]) -> int:
    module, _colon, function = command.run.partition(":")
    try:
        loaded = importlib.import_module(f"bot.cli.{module}")
    except ImportError as error:
        if module != "backup":
            raise
        raise SettingsError(
            _("this needs {name}: pip install 'tapebot[backup]'", name=error.name)
        ) from error
    code: int = getattr(loaded, function)(**given)
    sys.stdout.flush()  # here an error of it is explained
    return code
