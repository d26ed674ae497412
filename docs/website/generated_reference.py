"""Directives that write parts of the reference from the program: its settings, its commands, its command line."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from docutils import nodes
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from bot.agent.commands.builtin import builtin_commands
from bot.cli.commands import make_parser
from bot.mcp_client.settings import McpServer
from bot.runtime.settings import PREFIX, PresetSettings, Settings
from bot.runtime.settings.model_presets import RoleSettings

_TABLES: tuple[tuple[str, type[object]], ...] = (
    ("[models.NAME]", PresetSettings),
    ("[roles]", RoleSettings),
    ("[mcp.NAME]", McpServer),
)
_TABLE_FIELDS = {"models", "roles", "mcp"}


def settings_reference() -> Iterator[str]:
    """Yield the Markdown lines of all settings: the variables, then the tables of the TOML file."""
    yield from ("## Variables", "")
    for name, field in sorted(Settings.model_fields.items()):
        if name not in _TABLE_FIELDS:
            default = _default(field)
            given = f" (default: {default})" if default else ""
            yield f"- `{PREFIX}{name.upper()}`{given}: {field.description or ''}"
    for title, table in _TABLES:
        yield from ("", f"## `{title}` in tapebot.toml", "", "| key | |", "|---|---|")
        for name, line in _attributes(table).items():
            yield _row(f"`{name}`", line)


def command_reference() -> Iterator[str]:
    """Yield the Markdown lines of all commands that a chat lists."""
    for command in builtin_commands().visible_commands():
        owners = " Only owners may use it." if command.owner_only else ""
        yield from (f"## `/{command.name}`", "", f"{_sentence(command.summary)}{owners}", "")
        if command.forms:
            yield from ("| form | |", "|---|---|")
            for form, line in command.forms:
                yield _row(f"`{f'/{command.name} {form}'.strip()}`", line)
            yield ""


def command_line_reference() -> Iterator[str]:
    """Yield the Markdown lines of all commands of ``tapebot``."""
    parser = make_parser()
    for name, child, line in _subcommands(parser):
        yield from (f"## `tapebot {name}`", "", _sentence(line), "")
        deeper = list(_subcommands(child))
        for title, leaf, help_ in [(f"{name} {deep}", one, text) for deep, one, text in deeper]:
            yield from (f"### `tapebot {title}`", "", _sentence(help_), "")
            yield from _arguments(leaf, title)
            for last, one, text in _subcommands(leaf):
                yield from (f"#### `tapebot {title} {last}`", "", _sentence(text), "")
                yield from _arguments(one, f"{title} {last}")
        if not deeper:
            yield from _arguments(child, name)


def _sentence(line: str) -> str:
    return f"{line[:1].upper()}{line[1:]}."


def _subcommands(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[str, argparse.ArgumentParser, str]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            lines = {one.dest: one.help or "" for one in action._choices_actions}
            for name, child in action.choices.items():
                yield name, child, lines.get(name, "")


def _arguments(parser: argparse.ArgumentParser, name: str) -> Iterator[str]:
    known = [
        action
        for action in parser._actions
        if not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
    ]
    if not known:
        return
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    yield from ("```text", usage.replace(f"{parser.prog} ", f"tapebot {name} ", 1), "```", "")
    yield from ("| argument | |", "|---|---|")
    for action in known:
        shown = ", ".join(action.option_strings) or str(action.metavar or action.dest)
        if action.option_strings and action.nargs != 0:
            shown += f" {action.metavar or action.dest.upper()}"
        default = action.default
        told = (
            default is not None and default is not False and default not in ([], argparse.SUPPRESS)
        )
        yield _row(f"`{shown}`", (action.help or "") + (f" (default: {default})" if told else ""))
    yield ""


def _default(field: FieldInfo) -> str:
    value: Any = field.default
    if value is PydanticUndefined:
        return "" if field.default_factory is None else "of this machine"
    if value is None or value in ((), {}, ""):
        return ""
    if isinstance(value, tuple):
        value = ",".join(map(str, value))
    return f"`{value}`"


def _attributes(described: type[object]) -> dict[str, str]:
    """Return what a class's docstring says about each attribute."""
    _, _, section = inspect.getdoc(described).partition("Attributes:\n")  # type: ignore[union-attr]
    found = re.findall(r"^    (\w+): (.*(?:\n     .*)*)", section, re.MULTILINE)
    return {name: " ".join(line.replace("``", "`").split()) for name, line in found}


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


class _Generated(SphinxDirective):
    """Puts Markdown that the program yields in the directive's place."""

    lines: ClassVar[Callable[[], Iterator[str]]]

    def run(self) -> list[nodes.Node]:
        text = "\n".join(type(self).lines())
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directives."""
    for name, lines in (
        ("tapebot-settings", settings_reference),
        ("tapebot-commands", command_reference),
        ("tapebot-command-line", command_line_reference),
    ):
        made = type(name, (_Generated,), {"lines": staticmethod(lines)})
        app.add_directive(name, made)
    return {"parallel_read_safe": True}
