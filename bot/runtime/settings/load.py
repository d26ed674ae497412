"""Load the settings, and explain errors in them to people."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from dotenv import dotenv_values
from dotenv.parser import parse_stream
from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import SettingsError as SourceError

from bot.core.errors import SettingsError
from bot.core.i18n import N_, _
from bot.core.telemetry.redaction import redact
from bot.runtime.settings.model_presets import PresetSettings, RoleSettings
from bot.runtime.settings.schema import ENV_FILE, PREFIX, TABLES, Settings, home_folder
from bot.runtime.settings.validators import spelling_hint

_exported: dict[str, str] = {}


def load_settings(**overrides: Any) -> Settings:
    """Load the settings.

    Args:
        overrides: Values by field name that win over every source.

    Raises:
        SettingsError: A setting is wrong or unknown, or a file cannot be read; one line for each.
    """
    if bad := list(_bad_lines(overrides)):
        raise SettingsError("\n".join(bad))
    wrong = list(_unknown_in_environment())
    try:
        settings = Settings(**overrides)
    except ValidationError as exc:
        details = exc.errors(include_url=False, include_context=False)
        raise SettingsError("\n".join([*wrong, *map(_explain, details)])) from None
    except SourceError as exc:  # a value that is no JSON; the text names its field
        line = f"{PREFIX}{str(exc).split(chr(34))[1].upper()}: {exc.__cause__}."
        raise SettingsError("\n".join(wrong or [line])) from None
    if wrong:
        raise SettingsError("\n".join(wrong))
    return settings


def export_dotenv() -> None:
    """Export variables for libraries from ``.env`` to the environment, such as OPENAI_API_KEY.

    Variables that are already set stay, unless they were set here; tapebot's own are not exported.

    Raises:
        SettingsError: A file cannot be read.
    """
    for path in reversed(env_files({})):
        values = dotenv_values(stream=io.StringIO(_env_text(path)))
        for name, value in values.items():
            may_set = name not in os.environ or name in exported_variables()
            if value and may_set and not name.upper().startswith(PREFIX):
                os.environ[name] = _exported[name] = value


def exported_variables() -> frozenset[str]:
    """Return the names of variables that are in the environment only because ``.env`` has them."""
    return frozenset(name for name, value in _exported.items() if os.environ.get(name) == value)


def env_files(given: Mapping[str, Any]) -> list[Path]:
    """Return the ``.env`` files that are read, the nearer one first.

    Args:
        given: Values that win over every source; ``home`` may be among them.

    Raises:
        SettingsError: One of them cannot be read.
    """
    near = [ENV_FILE] if ENV_FILE.is_file() else []
    named = {name.upper(): value for name, value in os.environ.items()}.get(f"{PREFIX}HOME")
    if named is None and near:
        values = dotenv_values(stream=io.StringIO(_env_text(ENV_FILE)))
        named = {name.upper(): value for name, value in values.items()}.get(f"{PREFIX}HOME")
    path = home_folder({"home": given.get("home") or named}) / ENV_FILE
    far = path.is_file() and not (near and path.samefile(ENV_FILE))
    return [*near, *([path] if far else [])]


def _env_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsError(_("{file} cannot be read: {exc}", file=path, exc=exc)) from exc


def _bad_lines(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each line of ``.env`` that sets nothing."""
    for path in env_files(given):
        for binding in parse_stream(io.StringIO(_env_text(path))):
            if binding.error or (binding.key is not None and binding.value is None):
                yield _(
                    "{file}, line {line}: not in the form NAME=value.",
                    file=path,
                    line=binding.original.line,
                )


def _unknown_in_environment() -> Iterator[str]:
    for name in sorted(os.environ):
        field = name.lower().removeprefix(PREFIX.lower())
        if len(field) == len(name):
            continue
        if field in TABLES:
            yield _(
                "{setting} is no variable: write [{table}] in tapebot.toml.",
                setting=PREFIX + field.upper(),
                table=field,
            )
        elif field not in Settings.model_fields:
            yield _unknown(field)


def _unknown(field: str) -> str:
    known = {name: PREFIX + name.upper() for name in Settings.model_fields if name not in TABLES}
    return _(
        "{setting} is not a setting of this version{hint}.",
        setting=PREFIX + field.upper(),
        hint=spelling_hint(field, known),
    )


def _explain(detail: ErrorDetails) -> str:
    """Return one error as a line for people."""
    field = str(detail["loc"][0])
    info = Settings.model_fields.get(field)
    if info is None:
        return _unknown(field)
    if field in TABLES:
        return _explain_table(detail)
    if len(detail["loc"]) > 1 and info.annotation is not None and _is_table(info.annotation):
        where = ".".join(map(str, detail["loc"][1:]))
        return f"{PREFIX}{field.upper()}: {where}: {_reason(detail)}."
    types = get_args(info.annotation) or (info.annotation,)
    given = _("a secret") if _holds_secret(info.annotation) else redact(repr(detail["input"]))
    own_words = detail["type"] == "value_error"
    allowed = _reason(detail) if own_words else _allowed(info, types)
    return _(
        "{setting}: given {given}; allowed: {allowed}.",
        setting=PREFIX + field.upper(),
        given=given,
        allowed=allowed,
    )


def _explain_table(detail: ErrorDetails) -> str:
    """Return an error in a table of the TOML file; values are not shown, they may be keys."""
    field, *rest = (str(part) for part in detail["loc"])
    place = ".".join([field, *rest[:1]] if field == "models" else [field])
    inside = rest[1:] if field == "models" else rest
    why = _reason(detail)
    if detail["type"] == "extra_forbidden":
        table = PresetSettings if field == "models" else RoleSettings
        hint = spelling_hint(inside[-1], {name: name for name in table.model_fields})
        return _(
            "tapebot.toml [{place}] {inside}: there is no such setting{hint}.",
            place=place,
            inside=inside[-1],
            hint=hint,
        )
    said = (
        _("allowed: {why}", why=why)
        if detail["type"] == "value_error"
        else why[:1].lower() + why[1:]
    )
    return " ".join([f"tapebot.toml [{place}]", *inside[:1]]) + f": {said}."


def _is_table(kind: object) -> bool:
    return getattr(kind, "__origin__", None) is dict


def _reason(detail: ErrorDetails) -> str:
    return detail["msg"].removeprefix("Value error, ")


def _allowed(info: FieldInfo, types: tuple[Any, ...]) -> str:
    """Describe the allowed values of a field by its type and bounds."""
    literals = [kind for kind in types if get_origin(kind) is Literal]
    names = [name for kind in literals for name in get_args(kind)] or types
    if isinstance(names[0], str):
        return _(" or ").join(names)
    bounds = {
        key: getattr(item, key)
        for item in info.metadata
        for key in ("ge", "gt", "le")
        if hasattr(item, key)
    }
    kind = _(next((text for known, text in _KINDS.items() if known in types), _TEXT))
    if "ge" in bounds:
        kind = _("{kind} of at least {least}", kind=kind, least=bounds["ge"])
    if "gt" in bounds:
        kind = _("{kind} above {bound}", kind=kind, bound=bounds["gt"])
    if "le" in bounds:
        kind = _("{kind}, at most {most}", kind=kind, most=bounds["le"])
    return kind


def _holds_secret(kind: object) -> bool:
    """Return whether values of a type are, or contain, a secret."""
    if isinstance(kind, type) and is_dataclass(kind):
        return any(map(_holds_secret, get_type_hints(kind).values()))
    return kind is SecretStr or any(map(_holds_secret, get_args(kind)))


_TEXT = N_("text")
_KINDS: dict[object, str] = {int: N_("a whole number"), float: N_("a number"), Path: N_("a path")}
