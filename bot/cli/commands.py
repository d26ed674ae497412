"""The commands of ``tapebot``: for each the function that runs it, its help, and its arguments.

A command is declared as ``name -> module:function value=given``. Its function is imported once it is
chosen, gets the settings and the arguments by their names, and returns the exit code.
What a person can mend it raises as ``SettingsError`` or ``TapebotError``, which ``main`` prints. A
command without a function has commands of its own. A test compares the names with each signature.

An indented line is an argument of the command above, as the usage shows it:

- ``session``, ``[session]``, ``words...``, ``[STEP...]``: one, perhaps one, some, any number;
- ``--all``, ``--last N``, ``--recipient KEY...``: on or off, a value, values;
- ``--limit N=10``, ``--to DIR!``: a value that has a default, or that must be given;
- ``--format {jsonl,markdown}``: one of these; ``... as form``: the parameter's name, if another.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.core.i18n import N_, _
from bot.core.patterns import LazyPattern

_SESSION = ("  session", N_("for example console:local"))
_YES = ("  --yes", N_("do not ask"))
_DRY_RUN = ("  --dry-run", N_("only print what would be done"))
_PATH = ("  path", N_("its home, a folder, or one file"))
_NEW_NAME = ("  name", N_("a name of your choice"))
_WHOSE = (
    # for the parser
    "  --for PERSON as person",
    N_("whose they are, such as telegram:42; default: the person at the console"),
)
# for the parser
_JSON = ("  --json as as_json", N_("print one JSON object"))

_DECLARED = (
    # The first of each pair is for the parser.
    ("run -> run:talk", N_("talk here, or run the bot (the default)")),
    (
        "gateway -> run:run_program role=gateway",
        N_("run only the channels; sessions run in workers"),
    ),
    ("worker -> run:run_program role=worker", N_("run only sessions; channels run in gateways")),
    ("setup -> setup:run_setup", N_("set up model, Telegram, Discord, site and backups")),
    ("  [STEP...] as names", N_("only these: {steps}")),
    ("doctor -> doctor:run_doctor", N_("check settings, folders, model and channels")),
    ("  --probe", N_("also ask the model, platforms, MCP servers")),
    _JSON,
    ("pair -> pair:pair", N_("show who may use the bot, or allow a person")),
    ("  [code]", N_("the code that the bot gave them")),
    ("web", N_("log in to the site, and manage tokens for its API")),
    (
        "web link -> web:web what=link",
        N_("print a link that logs you in once; it expires after ten minutes"),
    ),
    ("web token -> web:web what=token", N_("create a token for programs and print it once")),
    _NEW_NAME,
    ("  --for PERSON", N_("the person whom it acts for, such as telegram:42; default: you")),
    (
        "  --rights RIGHTS",
        N_("what it may do: chat,read,propose,site; default: all that the person may"),
    ),
    (
        "  --own-sessions",
        N_("it reads only its own conversations, not all private ones of the person"),
    ),
    ("web tokens -> web:web what=tokens", N_("list the tokens")),
    ("web revoke -> web:web what=revoke", N_("revoke a token")),
    ("  name", ""),
    ("  --for PERSON", N_("the person whom it acts for; default: you")),
    ("mcp -> mcp:mcp", N_("give a program on this machine your memory, by MCP")),
    ("tape", N_("show, search, check, reset and export tapes")),
    ("tape list -> tape:list_tapes", N_("list the sessions")),
    ("tape show -> tape:show", N_("print a tape as a readable timeline")),
    _SESSION,
    ("  --last N", N_("only the newest N entries")),
    ("  --all as everything", N_("also show internal entries")),
    ("  --turn ID", N_("print what the model saw in this turn")),
    ("tape search -> tape_search:search_tapes", N_("search messages")),
    ("  words...", N_("words; a phrase in quotation marks")),
    ("  --session SESSION", N_("only in this session")),
    ("  --problem ID", N_("only entries of this problem (general: of none)")),
    ("  --limit N=10", N_("maximum number of hits")),
    ("tape verify -> tape_verify:verify", N_("check the integrity of tapes")),
    ("  [session]", N_("only this session")),
    ("tape reset -> tape_reset:reset_tape", N_("empty a conversation, after an export")),
    _SESSION,
    ("  --archive", N_("seal the messages: they can still be read and searched")),
    _YES,
    ("tape export -> tape_export:export_tape", N_("write tapes for other programs and for people")),
    ("  [session]", N_("only this session; all need --output FOLDER")),
    ("  --format {jsonl,markdown}=jsonl as form", N_("jsonl is lossless")),
    ("  --output PATH", N_("a file, or a folder for all")),
    ("memory", N_("export memory, or check its facts")),
    (
        "memory export -> memory_export:export_memory",
        N_("export everything that is remembered of a session as a zip file"),
    ),
    _SESSION,
    ("  --to FILE", N_("a file, or a folder for it")),
    (
        "memory files -> memory_export:write_memory_files",
        N_("write MEMORY.md and HISTORY.md of a session"),
    ),
    _SESSION,
    ("  --to DIR! as folder", N_("the folder for them")),
    (
        "memory erase -> person_erasure:erase_person",
        N_("erase everything of a person for good"),
    ),
    ("  person", N_("for example telegram:42")),
    _YES,
    (
        "memory audit -> memory_audit:audit_memory",
        N_("check the evidence of facts, and whether they are still valid"),
    ),
    ("  [session]", N_("only this session, or this scope's tape")),
    ("  --all as everything", N_("everything (the default)")),
    _JSON,
    ("import", N_("import conversations and memory")),
    ("import nanobot -> imports:import_nanobot", N_("sessions and memory files of nanobot")),
    ("  --memory-to SESSION", N_("the session that gets its memory")),
    _PATH,
    _DRY_RUN,
    ("import jsonl -> imports:import_jsonl", N_("exports of `tapebot tape export`")),
    _PATH,
    _DRY_RUN,
    (
        "import chatgpt -> import_assistants:import_assistant bot=chatgpt",
        N_("ChatGPT's data export: a zip file or its folder"),
    ),
    _WHOSE,
    _PATH,
    _DRY_RUN,
    (
        "import claude -> import_assistants:import_assistant bot=claude",
        N_("Claude's data export: a zip file or its folder"),
    ),
    _WHOSE,
    _PATH,
    _DRY_RUN,
    (
        "import openclaw -> import_assistants:import_assistant bot=openclaw",
        N_("conversations and memory files of OpenClaw"),
    ),
    _WHOSE,
    _PATH,
    _DRY_RUN,
    ("db", N_("set up the database that processes share")),
    (
        "db create -> db:create_tables",
        N_("create its tables"),
    ),
    (
        "db status -> db:database_status",
        N_("show whether its tables have this version, and what they contain"),
    ),
    ("migrate -> migrate:migrate", N_("copy everything from files to the database, or back")),
    ("  FROM as source", N_("files or postgres")),
    ("  TO as target", N_("files or postgres")),
    _DRY_RUN,
    ("backup -> backup:backup", N_("make an encrypted backup, and check it")),
    ("  --to FOLDER", N_("the folder of backups; unset: TAPEBOT_BACKUP_TO")),
    (
        "  --recipient KEY... as recipients",
        N_("a public key of age that can open it; unset: a passphrase"),
    ),
    ("  --keep N", N_("remove all but the newest N backups")),
    ("restore -> backup:restore", N_("restore a backup to an empty home")),
    ("  backup", N_("a backup's folder")),
    ("  --identity FILE", N_("an age key file, instead of the passphrase")),
    (
        "  --signed-by SIGNER as signer",
        N_("who signs your backups, as `tapebot backup` prints it"),
    ),
    ("service", N_("run tapebot whenever this machine runs")),
    (
        "service install -> service:run_service command=install",
        N_("start it now and with this machine; run it again to update"),
    ),
    ("service status -> service:run_service command=status", N_("show if it runs")),
    ("service logs -> service:run_service command=logs", N_("show what it says")),
    ("service remove -> service:run_service command=remove", N_("stop it, and start it no more")),
    ("tape-server -> tape_server:run_tape_server", N_("serve tapes to bots on other machines")),
    ("tape-server token", N_("create, list and revoke tokens")),
    ("tape-server token add -> tape_server:add_token", N_("create a token and print it once")),
    _NEW_NAME,
    ("  --scope {read,append,admin}!", N_("what the token allows")),
    (
        "  --tapes PATTERN...",
        N_("sessions that it may access, such as 'telegram:*'; repeatable; default: all"),
    ),
    ("tape-server token list -> tape_server:list_tokens", N_("list the tokens")),
    ("tape-server token remove -> tape_server:remove_token", N_("revoke a token")),
    ("  name", ""),
    ("models -> models:run_models", N_("call the configured models; show what works")),
    ("  [NAME] as name", N_("only this preset")),
)
"""Every command and argument with its help, in the order of the help; ``run`` is the default."""

_ABOUT = {
    "setup": N_(
        "Asks, tries each answer, and writes it to .env and tapebot.toml.\n"
        "Run it again to change something; Enter keeps what is set."
    ),
    "migrate": N_(
        "Copies all data of a home from one place to the other and compares both. The source "
        "stays unchanged. If interrupted, run it again to continue."
    ),
}
"""What stands above a command's arguments."""

_SETUP_STEPS = "language, timezone, model, telegram, discord, web, backup"  # for the parser
_BELOW_SETUP = (
    # Commands and variables are for the parser.
    N_("Without a terminal it reads one answer from each line:"),
    "  printf '%s\\n' anthropic/claude-haiku-4-5 \"$KEY\" | tapebot setup model",
    N_("A check that fails then ends it with 1, and nothing of that step is saved."),
    N_("Or set variables, or lines of .env, yourself:"),
    "  TAPEBOT_LANGUAGE, TAPEBOT_TIMEZONE",
    "  TAPEBOT_MODEL, ANTHROPIC_API_KEY, OPENAI_API_KEY ...",
    "  TAPEBOT_TELEGRAM_TOKEN, TAPEBOT_DISCORD_TOKEN",
    "  TAPEBOT_WEB_LISTEN, TAPEBOT_WEB_URL",
    "  TAPEBOT_BACKUP_TO, TAPEBOT_BACKUP_PASSPHRASE",
    N_("`tapebot doctor --probe` checks them."),
)

_COMMAND = LazyPattern(
    r"(?P<name>[a-z -]+?)(?: -> (?P<run>[a-z_]+:[a-z_]+)(?P<given>(?: \w+=\w+)*))?"
)
_ARGUMENT = LazyPattern(
    r"  (?P<open>\[?)(?P<name>--[a-z-]+|[A-Za-z]+)(?P<many>(?:\.\.\.)?)\]?"
    r"(?: (?P<value>[A-Z]+|\{[a-z,]+\})(?P<after>!|=\w+|\.\.\.|))?(?: as (?P<dest>\w+))?"
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The command that a person chose.

    Attributes:
        name: Its name.
        run: ``module:function`` of this package.
        given: Arguments that it always passes.
    """

    name: str
    run: str
    given: Mapping[str, str]


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of ``tapebot``; it returns the command as ``chosen``, and its arguments."""
    parser = argparse.ArgumentParser(
        prog="tapebot", description=_("An assistant whose memory you can read, question and undo.")
    )
    parser.add_argument("--version", action="store_true", help=_("print the version"))
    parser.set_defaults(chosen=Chosen("run", "run:talk", {}))
    parsers, groups = {"": parser}, {"": parser.add_subparsers(metavar="COMMAND")}
    for spec, line in _DECLARED:
        if spec.startswith(" "):
            _add_argument(parser, spec, _(line, steps=_SETUP_STEPS) if line else None)
            continue
        found = _COMMAND.fullmatch(spec)
        assert found is not None, spec
        parent, _sep, name = found["name"].rpartition(" ")
        if parent not in groups:
            required = parsers[parent].get_default("chosen") is None
            groups[parent] = parsers[parent].add_subparsers(metavar="COMMAND", required=required)
        about = found["name"] in _ABOUT and _(_ABOUT[found["name"]])
        parser = parsers[found["name"]] = groups[parent].add_parser(
            name, help=_(line), description=about or None
        )
        if found["run"]:
            given = dict(one.split("=") for one in found["given"].split())
            parser.set_defaults(chosen=Chosen(found["name"], found["run"], given))
    parsers["setup"].formatter_class = argparse.RawDescriptionHelpFormatter
    parsers["setup"].epilog = "\n".join(map(_, _BELOW_SETUP))
    return parsers[""]


def _add_argument(parser: argparse.ArgumentParser, spec: str, line: str | None) -> None:
    found = _ARGUMENT.fullmatch(spec)
    assert found is not None, spec
    name, after = found["name"], found["after"] or ""
    if name.startswith("--"):
        options: dict[str, Any] = {"dest": found["dest"]} if found["dest"] else {}
        if found["value"] is None:
            parser.add_argument(name, help=line, action="store_true", **options)
            return
        shown = found["value"]
        options |= {"required": True} if after == "!" else {}
        options |= {"action": "append", "default": []} if after == "..." else {}
    else:
        shown, name = name, found["dest"] or name
        nargs = {"[": "?", "...": "+", "[...": "*"}.get(found["open"] + found["many"])
        options = {"nargs": nargs} if nargs else {}
    if shown.startswith("{"):
        options["choices"] = tuple(shown.strip("{}").split(","))
    else:
        options |= ({"metavar": shown} if shown != name else {}) | _TYPES.get(shown, {})
    if after.startswith("="):
        options["default"] = options.get("type", str)(after[1:])
    parser.add_argument(name, help=line, **options)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(
            _("{text!r} is not a whole number of at least 1", text=text)
        )
    return int(text)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


_PLACE: dict[str, Any] = {"choices": ("files", "postgres")}
_TYPES: dict[str, dict[str, Any]] = {
    "N": {"type": _count},
    "RIGHTS": {"type": _names},
    "FROM": _PLACE,
    "TO": _PLACE,
    **{name: {"type": Path} for name in ("FILE", "DIR", "FOLDER", "PATH", "path", "backup")},
}
"""What else ``argparse`` is told of values, by what stands for them."""
