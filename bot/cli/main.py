"""Parses the command line and hands over to one file a command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from bot.errors import SettingsError, TapebotError
from bot.settings import export_dotenv, load_settings
from bot.telemetry.logging import configure_logging

WRONG_SETTINGS = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code. Errors meant for people are one line, no traceback."""
    chosen = _parser().parse_args(arguments)
    if chosen.version:
        from importlib.metadata import version

        print(version("tapebot"))
        return 0
    try:
        return _run(chosen)
    except SettingsError as error:
        print(error, file=sys.stderr)
        return WRONG_SETTINGS
    except TapebotError as error:
        print(f"tapebot: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # Whoever read the output has seen enough; what is left must not be flushed into nothing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        print(f"tapebot: {error.strerror}{where}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tapebot", description="An assistant whose memory you can read, question and undo."
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("run", help="talk here, or run the bot (the default)")
    doctor = commands.add_parser("doctor", help="check settings, folders, model and channels")
    doctor.add_argument("--probe", action="store_true", help="also ask the model and the platforms")
    pair = commands.add_parser("pair", help="show who may use the bot, or let somebody in")
    pair.add_argument("code", nargs="?", help="the code that the bot gave them")
    tape = commands.add_parser("tape", help="look at tapes").add_subparsers(
        dest="tape", required=True, metavar="COMMAND"
    )
    tape.add_parser("list", help="list the sessions")
    show = tape.add_parser("show", help="print a tape as a readable timeline")
    show.add_argument("session", help="for example console:local")
    show.add_argument("--last", type=_count, metavar="N", help="only the newest N entries")
    show.add_argument("--all", action="store_true", help="bookkeeping, too")
    show.add_argument("--turn", metavar="ID", help="print what the model saw in this turn")
    return parser


def _run(chosen: argparse.Namespace) -> int:
    if chosen.command == "doctor":
        from bot.cli.check import check

        return check(probe=chosen.probe)
    export_dotenv()
    settings = load_settings()
    if chosen.command == "pair":
        from bot.cli.pair import pair

        return pair(settings, chosen.code)
    if chosen.command == "tape":
        from bot.cli.tape import list_tapes, show_tape, show_turn

        if chosen.tape == "list":
            return list_tapes(settings)
        if chosen.turn is not None:
            return show_turn(settings, chosen.session, chosen.turn)
        return show_tape(settings, chosen.session, last=chosen.last, everything=chosen.all)
    from bot.cli.first_run import offer_model

    settings = offer_model(settings)
    at_terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    stop = configure_logging(
        settings.home, settings.log_level, settings.secrets(), to_stderr=not at_terminal
    )
    try:
        from bot.app import run

        run(settings)
    finally:
        stop()
    return 0


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number
