"""Parse the command line, and call the module of the chosen command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from bot.cli.language import terminal_language
from bot.cli.parser import make_parser
from bot.cli.terminal import at_terminal
from bot.core.errors import SettingsError, TapebotError
from bot.core.garbage import loading_modules
from bot.core.i18n import _, translate_libraries, use_language
from bot.core.installation import this_installation
from bot.core.telemetry.logging import configure_logging
from bot.runtime.settings import ProcessRole, Settings, export_dotenv, load_settings

WRONG_SETTINGS = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code. Expected errors are printed without a traceback."""
    language = terminal_language(os.environ)
    translate_libraries(language)
    with use_language(language):
        return _main(arguments)


def _main(arguments: Sequence[str] | None) -> int:
    chosen = make_parser().parse_args(arguments)
    if chosen.version:
        from importlib.metadata import version

        print(version("tapebot"))
        return 0
    try:
        return _run(chosen)
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


def _run(chosen: argparse.Namespace) -> int:
    if chosen.command == "doctor":
        from bot.cli.doctor import run_doctor

        return run_doctor(probe=chosen.probe)
    export_dotenv()
    settings = load_settings()
    with use_language(settings.shown_language):
        return _run_with(settings, chosen)


def _run_with(settings: Settings, chosen: argparse.Namespace) -> int:
    if chosen.command == "setup":
        return _setup(settings, chosen)
    if chosen.command in (
        "pair",
        "web",
        "mcp",
        "models",
        "backup",
        "restore",
        "service",
    ):
        return _small(settings, chosen)
    if chosen.command == "tape":
        return _tape(settings, chosen)
    if chosen.command == "memory":
        return _memory(settings, chosen)
    if chosen.command == "import":
        return _import(settings, chosen)
    if chosen.command in ("db", "migrate"):
        return _database(settings, chosen)
    if chosen.command == "tape-server":
        from bot.cli.tape_server import run_command

        return run_command(settings, chosen)
    if chosen.command in ("gateway", "worker"):
        return _run_program(settings, chosen.command)
    return _talk(settings)


def _setup(settings: Settings, chosen: argparse.Namespace) -> int:
    if chosen.web:
        try:
            from bot.cli.setup_web import serve_setup
        except ModuleNotFoundError as error:
            raise SettingsError(
                _("this needs {name}: pip install 'tapebot[web]'", name=error.name)
            ) from error
        return serve_setup(settings)
    from bot.cli.setup import run_setup

    return run_setup(settings, chosen.steps)


def _small(settings: Settings, chosen: argparse.Namespace) -> int:
    if chosen.command == "models":
        from bot.cli.models import run_models

        return run_models(settings, chosen.name)
    if chosen.command in ("backup", "restore"):
        return _backup(settings, chosen)
    if chosen.command == "service":
        from bot.cli.service import run_service

        return run_service(settings, chosen.service)
    if chosen.command == "mcp":
        from bot.cli.mcp import mcp

        return mcp(settings)
    if chosen.command == "pair":
        from bot.cli.pair import pair

        return pair(settings, chosen.code)
    from bot.cli.web import web

    given = {key: getattr(chosen, key, None) for key in ("name", "for", "rights", "own_sessions")}
    return web(settings, chosen.web, **given)


def _tape(settings: Settings, chosen: argparse.Namespace) -> int:
    if chosen.tape == "verify":
        from bot.cli.tape_verify import verify

        return verify(settings, chosen.session)
    if chosen.tape == "reset":
        from bot.cli.tape_reset import reset_tape

        return reset_tape(settings, chosen.session, archive=chosen.archive, yes=chosen.yes)
    if chosen.tape == "export":
        from bot.cli.tape_export import export_tape

        return export_tape(settings, chosen.session, form=chosen.format, output=chosen.output)
    if chosen.tape == "search":
        from bot.cli.tape_search import search_tapes

        return search_tapes(
            settings,
            " ".join(chosen.words),
            session=chosen.session,
            problem=chosen.problem,
            limit=chosen.limit,
        )
    from bot.cli.tape import list_tapes, show_tape, show_turn

    if chosen.tape == "list":
        return list_tapes(settings)
    if chosen.turn is not None:
        return show_turn(settings, chosen.session, chosen.turn)
    return show_tape(settings, chosen.session, last=chosen.last, everything=chosen.all)


def _memory(settings: Settings, chosen: argparse.Namespace) -> int:
    if chosen.memory == "audit":
        from bot.cli.memory_audit import audit_memory

        return audit_memory(settings, chosen.session, as_json=chosen.json)
    if chosen.memory == "erase":
        from bot.cli.person_erasure import erase_person

        return erase_person(settings, chosen.person, yes=chosen.yes)
    from bot.cli.memory_export import export_memory, write_memory_files

    if chosen.memory == "files":
        return write_memory_files(settings, chosen.session, chosen.to)
    return export_memory(settings, chosen.session, chosen.to)


def _import(settings: Settings, chosen: argparse.Namespace) -> int:
    from bot.cli.imports import import_jsonl, import_nanobot

    dry_run = chosen.dry_run
    if chosen.kind == "nanobot":
        return import_nanobot(settings, chosen.path, memory_to=chosen.memory_to, dry_run=dry_run)
    if chosen.kind != "jsonl":
        from bot.cli.import_assistants import import_assistant

        return import_assistant(
            settings, chosen.kind, chosen.path, person=chosen.person, dry_run=dry_run
        )
    return import_jsonl(settings, chosen.path, dry_run=dry_run)


def _backup(settings: Settings, chosen: argparse.Namespace) -> int:
    try:
        from bot.cli.backup import backup, restore
    except ImportError as error:
        raise SettingsError(
            _("this needs {name}: pip install 'tapebot[backup]'", name=error.name)
        ) from error
    if chosen.command == "restore":
        return restore(settings, chosen.backup, chosen.identity, chosen.signed_by)
    return backup(settings, chosen.to, chosen.recipient, chosen.keep)


def _database(settings: Settings, chosen: argparse.Namespace) -> int:
    if chosen.command == "migrate":
        from bot.cli.migrate import migrate

        return migrate(settings, chosen.source, chosen.target, dry_run=chosen.dry_run)
    from bot.cli.db import create_tables, database_status

    return create_tables(settings) if chosen.db == "create" else database_status(settings)


def _talk(settings: Settings) -> int:
    if at_terminal():
        from bot.cli.setup import offer_setup

        settings = offer_setup(settings)
    return _run_program(settings, "both")


def _run_program(settings: Settings, role: ProcessRole) -> int:
    stop = configure_logging(
        settings.home, settings.log_level, settings.secrets(), to_stderr=not at_terminal()
    )
    try:
        with loading_modules():
            from bot.runtime.app import run
        run(settings, role)
    finally:
        stop()
    return 0
