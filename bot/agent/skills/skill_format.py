"""Parse and check the header of SKILL.md, as the open Agent Skills standard defines it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bot.agent.foreign_text import one_line
from bot.agent.texts import joined_clauses
from bot.core.errors import SkillRefused
from bot.core.i18n import _, format_number
from bot.core.patterns import LazyPattern

SKILL_FILE = "SKILL.md"
MAX_NAME = 64
MAX_DESCRIPTION = 1_024

_NAME = LazyPattern(r"[a-z0-9-]+")
_LONGEST_HEADER = 8_000
_DEEPEST = 4
_LONGEST_FIELD = 500
_MOST_METADATA = 50
_MOST_TOOLS = 50


@dataclass(frozen=True, slots=True)
class SkillHeader:
    """What a skill says about itself.

    Attributes:
        name: Its name: lower-case letters, digits and single hyphens.
        description: What it does and when to use it, on one line.
        license: Its license; empty if it states none.
        compatibility: What it needs; empty if it states nothing.
        metadata: Other properties.
        allowed_tools: Tools that it wants to use: a hint, never a right.
    """

    name: str
    description: str
    license: str = ""
    compatibility: str = ""
    metadata: tuple[tuple[str, str], ...] = ()
    allowed_tools: tuple[str, ...] = ()


def parse_header(text: str, folder: str | None = None) -> SkillHeader:
    """Return the header of a SKILL.md.

    Raises:
        SkillRefused: It breaks the standard; the text names everything that does.
    """
    fields = _fields(_front_matter(text))
    problems: list[str] = []
    header = SkillHeader(
        _name(fields, folder, problems),
        _text(fields, "description", MAX_DESCRIPTION, problems, required=True),
        _text(fields, "license", _LONGEST_FIELD, problems),
        _text(fields, "compatibility", _LONGEST_FIELD, problems),
        _metadata(fields, problems),
        _tools(fields, problems),
    )
    if problems:
        raise SkillRefused(_("SKILL.md: {problems}", problems=joined_clauses(problems)))
    return header


def _front_matter(text: str) -> str:
    first, *lines = text[:_LONGEST_HEADER].lstrip("\ufeff").split("\n")
    if first.rstrip() != "---":
        raise SkillRefused(
            _(
                "SKILL.md does not begin with a line `---` and a header of name and description",
            )
        )
    for number, line in enumerate(lines):
        if line.rstrip() == "---":
            return "\n".join(lines[:number])
    raise SkillRefused(
        _(
            "the header of SKILL.md does not end with a line `---` within {most} characters",
            most=format_number(_LONGEST_HEADER),
        )
    )


def _fields(matter: str) -> dict[Any, Any]:
    """Return the header's fields; all scalars are texts, so that no value can be a surprise."""
    import yaml

    try:
        depth = 0
        for part in yaml.parse(matter, Loader=yaml.BaseLoader):
            # An alias can stand for a million copies.
            if isinstance(part, yaml.AliasEvent) or getattr(part, "anchor", None) is not None:
                raise SkillRefused(_("the header of SKILL.md has anchors or aliases"))
            depth += isinstance(part, yaml.CollectionStartEvent)
            depth -= isinstance(part, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise SkillRefused(_("the header of SKILL.md is nested too deeply"))
        fields = yaml.load(matter, Loader=yaml.BaseLoader)  # noqa: S506 (it makes texts alone)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        if mark is None:
            raise SkillRefused(_("the header of SKILL.md is not YAML")) from error
        line = mark.line + 2
        raise SkillRefused(
            _("the header of SKILL.md is not YAML in line {line}", line=line)
        ) from error
    if not isinstance(fields, dict):
        raise SkillRefused(_("the header of SKILL.md has no fields such as `name: ...`"))
    return fields


def _name(fields: dict[Any, Any], folder: str | None, problems: list[str]) -> str:
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        problems.append(_("the name is missing"))
        return ""
    plain = one_line(name, MAX_NAME)
    if len(name) > MAX_NAME:
        problems.append(
            _(
                "the name has {size} characters; at most {most}",
                size=format_number(len(name)),
                most=MAX_NAME,
            )
        )
    elif not _NAME.fullmatch(name) or name.strip("-") != name or "--" in name:
        problems.append(
            _(
                "the name `{plain}` is not made of lower-case letters, digits and single "
                "hyphens between them",
                plain=plain,
            )
        )
    elif folder is not None and name != folder:
        problems.append(
            _(
                "the name `{name}` is not that of its folder, `{folder}`",
                name=plain,
                folder=one_line(folder, MAX_NAME),
            )
        )
    return name


def _text(
    fields: dict[Any, Any], key: str, longest: int, problems: list[str], *, required: bool = False
) -> str:
    value = fields.get(key, "")
    if not isinstance(value, str):
        problems.append(_("the {key} is not a text", key=key))
        return ""
    if len(value) > longest:
        problems.append(
            _(
                "the {field} has {size} characters; at most {most}",
                field=key,
                size=format_number(len(value)),
                most=format_number(longest),
            )
        )
        return ""
    line = one_line(value, longest)
    if required and not line:
        problems.append(_("the {key} is missing", key=key))
    return line


def _metadata(fields: dict[Any, Any], problems: list[str]) -> tuple[tuple[str, str], ...]:
    value = fields.get("metadata") or {}
    if not isinstance(value, dict) or len(value) > _MOST_METADATA:
        problems.append(
            _(
                "metadata is not a map of at most {most} texts",
                most=_MOST_METADATA,
            )
        )
        return ()
    if not all(isinstance(part, str) for pair in value.items() for part in pair):
        problems.append(_("metadata maps something other than texts to texts"))
        return ()
    return tuple((one_line(key, 100), one_line(text, 200)) for key, text in value.items())


def _tools(fields: dict[Any, Any], problems: list[str]) -> tuple[str, ...]:
    value = fields.get("allowed-tools") or ""
    # The standard separates them by spaces; other programs write lists.
    names = value.split() if isinstance(value, str) else value
    if (
        not isinstance(names, list)
        or not all(isinstance(name, str) for name in names)
        or len(names) > _MOST_TOOLS
    ):
        problems.append(_("allowed-tools is not a list of at most {most} names", most=_MOST_TOOLS))
        return ()
    return tuple(one_line(name.strip(","), MAX_NAME) for name in names if name.strip(","))
