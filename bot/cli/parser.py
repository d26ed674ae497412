"""Define the command line's arguments, without importing what the commands need."""

from __future__ import annotations

import argparse
from pathlib import Path

from bot.core.i18n import _

FORMATS = ("jsonl", "markdown")
SCOPES = ("read", "append", "admin")
PLACES = ("files", "postgres")


def make_parser() -> argparse.ArgumentParser:
    """Return the argument parser of ``tapebot``."""
    parser = argparse.ArgumentParser(
        prog="tapebot", description=_("An assistant whose memory you can read, question and undo.")
    )
    parser.add_argument("--version", action="store_true", help=_("print the version"))
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("run", help=_("talk here, or run the bot (the default)"))
    commands.add_parser("gateway", help=_("run only the channels; sessions run in workers"))
    commands.add_parser("worker", help=_("run only sessions; channels run in gateways"))
    _setup(
        commands.add_parser("setup", help=_("set up model, Telegram, Discord, site and backups"))
    )
    doctor = commands.add_parser("doctor", help=_("check settings, folders, model and channels"))
    doctor.add_argument(
        "--probe", action="store_true", help=_("also ask the model, platforms, MCP servers")
    )
    pair = commands.add_parser("pair", help=_("show who may use the bot, or allow a person"))
    pair.add_argument("code", nargs="?", help=_("the code that the bot gave them"))
    _web(commands.add_parser("web", help=_("log in to the site, and manage tokens for its API")))
    commands.add_parser("mcp", help=_("give a program on this machine your memory, by MCP"))
    _tape(commands.add_parser("tape", help=_("show, search, check, reset and export tapes")))
    _memory(commands.add_parser("memory", help=_("export memory, or check its facts")))
    _import(commands.add_parser("import", help=_("import conversations and memory")))
    _database(commands.add_parser("db", help=_("set up the database that processes share")))
    _migrate(
        commands.add_parser(
            "migrate", help=_("copy everything from files to the database, or back")
        )
    )
    _backup(commands)
    _service(commands.add_parser("service", help=_("run tapebot whenever this machine runs")))
    _tape_server(
        commands.add_parser("tape-server", help=_("serve tapes to bots on other machines"))
    )
    models = commands.add_parser("models", help=_("call the configured models; show what works"))
    models.add_argument("name", nargs="?", metavar="NAME", help=_("only this preset"))
    return parser


def _setup(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = _(
        "Asks, tries each answer, and writes it to .env and tapebot.toml.\n"
        "Run it again to change something; Enter keeps what is set."
    )
    lines = [
        # Commands and variables are for the parser.
        _("Without a terminal it reads one answer from each line:"),
        "  printf '%s\\n' anthropic/claude-haiku-4-5 \"$KEY\" | tapebot setup model",
        _("A check that fails then ends it with 1, and nothing of that step is saved."),
        _("Or set variables, or lines of .env, yourself:"),
        "  TAPEBOT_LANGUAGE, TAPEBOT_TIMEZONE",
        "  TAPEBOT_MODEL, ANTHROPIC_API_KEY, OPENAI_API_KEY ...",
        "  TAPEBOT_TELEGRAM_TOKEN, TAPEBOT_DISCORD_TOKEN",
        "  TAPEBOT_WEB_LISTEN, TAPEBOT_WEB_URL",
        "  TAPEBOT_BACKUP_TO, TAPEBOT_BACKUP_PASSPHRASE",
        _("`tapebot doctor --probe` checks them."),
    ]
    parser.epilog = "\n".join(lines)
    names = "language, timezone, model, telegram, discord, web, backup"  # for the parser
    parser.add_argument(
        "steps", nargs="*", metavar="STEP", help=_("only these: {steps}", steps=names)
    )
    parser.add_argument(
        "--web", action="store_true", help=_("in the browser: prints a link for this machine")
    )


def _web(parser: argparse.ArgumentParser) -> None:
    web = parser.add_subparsers(dest="web", required=True, metavar="COMMAND")
    web.add_parser(
        "link", help=_("print a link that logs you in once; it expires after ten minutes")
    )
    token = web.add_parser("token", help=_("create a token for programs and print it once"))
    token.add_argument("name", help=_("a name of your choice"))
    token.add_argument(
        "--for",
        metavar="PERSON",
        help=_("the person whom it acts for, such as telegram:42; default: you"),
    )
    token.add_argument(
        "--rights",
        type=lambda text: [right.strip() for right in text.split(",")],
        metavar="RIGHTS",
        help=_("what it may do: chat,read,propose,site; default: all that the person may"),
    )
    token.add_argument(
        "--own-sessions",
        action="store_true",
        help=_("it reads only its own conversations, not all private ones of the person"),
    )
    web.add_parser("tokens", help=_("list the tokens"))
    revoke = web.add_parser("revoke", help=_("revoke a token"))
    revoke.add_argument("name")
    revoke.add_argument(
        "--for", metavar="PERSON", help=_("the person whom it acts for; default: you")
    )


def _tape(parser: argparse.ArgumentParser) -> None:
    tape = parser.add_subparsers(dest="tape", required=True, metavar="COMMAND")
    tape.add_parser("list", help=_("list the sessions"))
    show = tape.add_parser("show", help=_("print a tape as a readable timeline"))
    show.add_argument("session", help=_("for example console:local"))
    show.add_argument("--last", type=_count, metavar="N", help=_("only the newest N entries"))
    show.add_argument("--all", action="store_true", help=_("also show internal entries"))
    show.add_argument("--turn", metavar="ID", help=_("print what the model saw in this turn"))
    search = tape.add_parser("search", help=_("search messages"))
    search.add_argument("words", nargs="+", help=_("words; a phrase in quotation marks"))
    search.add_argument("--session", metavar="SESSION", help=_("only in this session"))
    search.add_argument(
        "--problem", metavar="ID", help=_("only entries of this problem (general: of none)")
    )
    search.add_argument(
        "--limit", type=_count, default=10, metavar="N", help=_("maximum number of hits")
    )
    verify = tape.add_parser("verify", help=_("check the integrity of tapes"))
    verify.add_argument("session", nargs="?", help=_("only this session"))
    reset = tape.add_parser("reset", help=_("empty a conversation, after an export"))
    reset.add_argument("session", help=_("for example console:local"))
    reset.add_argument(
        "--archive",
        action="store_true",
        help=_("seal the messages: they can still be read and searched"),
    )
    reset.add_argument("--yes", action="store_true", help=_("do not ask"))
    export = tape.add_parser("export", help=_("write tapes for other programs and for people"))
    export.add_argument("session", nargs="?", help=_("only this session; all need --output FOLDER"))
    export.add_argument("--format", choices=FORMATS, default="jsonl", help=_("jsonl is lossless"))
    export.add_argument(
        "--output", type=Path, metavar="PATH", help=_("a file, or a folder for all")
    )


def _memory(parser: argparse.ArgumentParser) -> None:
    memory = parser.add_subparsers(dest="memory", required=True, metavar="COMMAND")
    export = memory.add_parser(
        "export", help=_("export everything that is remembered of a session as a zip file")
    )
    export.add_argument("session", help=_("for example console:local"))
    export.add_argument("--to", type=Path, metavar="FILE", help=_("a file, or a folder for it"))
    files = memory.add_parser("files", help=_("write MEMORY.md and HISTORY.md of a session"))
    files.add_argument("session", help=_("for example console:local"))
    files.add_argument(
        "--to", type=Path, metavar="DIR", required=True, help=_("the folder for them")
    )
    erase = memory.add_parser("erase", help=_("erase everything of a person for good"))
    erase.add_argument("person", help=_("for example telegram:42"))
    erase.add_argument("--yes", action="store_true", help=_("do not ask"))
    audit = memory.add_parser(
        "audit", help=_("check the evidence of facts, and whether they are still valid")
    )
    audited = audit.add_mutually_exclusive_group()
    audited.add_argument("session", nargs="?", help=_("only this session, or this scope's tape"))
    audited.add_argument("--all", action="store_true", help=_("everything (the default)"))
    audit.add_argument("--json", action="store_true", help=_("print one JSON object"))


def _import(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    nanobot = kinds.add_parser("nanobot", help=_("sessions and memory files of nanobot"))
    nanobot.add_argument(
        "--memory-to", metavar="SESSION", help=_("the session that gets its memory")
    )
    exports = kinds.add_parser("jsonl", help=_("exports of `tapebot tape export`"))
    others = [
        kinds.add_parser("chatgpt", help=_("ChatGPT's data export: a zip file or its folder")),
        kinds.add_parser("claude", help=_("Claude's data export: a zip file or its folder")),
        kinds.add_parser("openclaw", help=_("conversations and memory files of OpenClaw")),
    ]
    for kind in others:
        kind.add_argument(
            "--for",
            dest="person",
            metavar="PERSON",
            help=_("whose they are, such as telegram:42; default: the person at the console"),
        )
    for kind in (nanobot, exports, *others):
        kind.add_argument("path", type=Path, help=_("its home, a folder, or one file"))
        kind.add_argument("--dry-run", action="store_true", help=_("only print what would be done"))


def _service(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="service", required=True, metavar="COMMAND")
    commands.add_parser(
        "install", help=_("start it now and with this machine; run it again to update")
    )
    commands.add_parser("status", help=_("show if it runs"))
    commands.add_parser("logs", help=_("show what it says"))
    commands.add_parser("remove", help=_("stop it, and start it no more"))


def _backup(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    backup = commands.add_parser("backup", help=_("make an encrypted backup, and check it"))
    backup.add_argument(
        "--to",
        type=Path,
        metavar="FOLDER",
        help=_("the folder of backups; unset: TAPEBOT_BACKUP_TO"),
    )
    backup.add_argument(
        "--recipient",
        action="append",
        default=[],
        metavar="KEY",
        help=_("a public key of age that can open it; unset: a passphrase"),
    )
    backup.add_argument(
        "--keep", type=_count, metavar="N", help=_("remove all but the newest N backups")
    )
    restore = commands.add_parser("restore", help=_("restore a backup to an empty home"))
    restore.add_argument("backup", type=Path, help=_("a backup's folder"))
    restore.add_argument(
        "--identity",
        type=Path,
        metavar="FILE",
        help=_("an age key file, instead of the passphrase"),
    )
    restore.add_argument(
        "--signed-by",
        metavar="SIGNER",
        help=_("who signs your backups, as `tapebot backup` prints it"),
    )


def _database(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="db", required=True, metavar="COMMAND")
    commands.add_parser("create", help=_("create its tables"))
    commands.add_parser(
        "status", help=_("show whether its tables have this version, and what they contain")
    )


def _migrate(parser: argparse.ArgumentParser) -> None:
    parser.description = _(
        "Copies all data of a home from one place to the other and compares both. The source "
        "stays unchanged. If interrupted, run it again to continue."
    )
    parser.add_argument("source", choices=PLACES, metavar="FROM", help=_("files or postgres"))
    parser.add_argument("target", choices=PLACES, metavar="TO", help=_("files or postgres"))
    parser.add_argument("--dry-run", action="store_true", help=_("only print what would be done"))


def _tape_server(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="tape_server", metavar="COMMAND")
    token = commands.add_parser("token", help=_("create, list and revoke tokens"))
    actions = token.add_subparsers(dest="token", required=True, metavar="COMMAND")
    add = actions.add_parser("add", help=_("create a token and print it once"))
    add.add_argument("name", help=_("a name of your choice"))
    add.add_argument("--scope", choices=SCOPES, required=True, help=_("what the token allows"))
    add.add_argument(
        "--tapes",
        action="append",
        metavar="PATTERN",
        help=_("sessions that it may access, such as 'telegram:*'; repeatable; default: all"),
    )
    actions.add_parser("list", help=_("list the tokens"))
    remove = actions.add_parser("remove", help=_("revoke a token"))
    remove.add_argument("name")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(
            _("{text!r} is not a whole number of at least 1", text=text)
        )
    return int(text)
