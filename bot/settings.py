"""The settings: one typed tree, read from the environment, ``.env`` and an optional TOML file.

Rule 1: of two sources the nearer wins: arguments, environment, ``.env``, TOML file, default.
Rule 2: an empty value means the default, in every source.
Rule 3: a name that this version does not know is an error, never ignored.
Rule 4: an error names the variable, what was given and what is allowed; a secret is never shown.
"""

from __future__ import annotations

import difflib
import getpass
import io
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from dotenv import dotenv_values
from dotenv.parser import parse_stream
from pydantic import (
    AfterValidator,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from bot.errors import SettingsError
from bot.telemetry.redaction import redact

PREFIX = "TAPEBOT_"
"""Every variable's name starts with it."""

_ENV_FILE = Path(".env")
_TOML_FILE = "tapebot.toml"
_SECRET_NAME = re.compile(r"(?:API_KEY|ACCESS_KEY|TOKEN|SECRET|PASSWORD)$")


def _absolute(path: Path) -> Path:
    try:
        return path.expanduser().absolute()
    except RuntimeError as exc:
        raise ValueError("a folder; this user has no home folder, so ~ cannot be used") from exc


def _model_name(name: str) -> str:
    name = name.strip()
    if name.startswith("gguf:"):
        path = name.removeprefix("gguf:").strip()
        if not path:
            raise ValueError("after gguf: the path of a file")
        return f"gguf:{_absolute(Path(path))}"
    if not name or re.search(r"\s", name):
        raise ValueError(
            '"offline", "gguf:PATH", or a name of litellm\'s such as openai/gpt-5-mini'
        )
    return name


def _web_address(url: str) -> str:
    url = url.strip()
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or re.search(r"\s", url):
        raise ValueError("an address that starts with http:// or https://")
    return url


def _time_zone(name: str) -> str:
    name = name.strip()
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
        raise ValueError(f"a zone such as Europe/Berlin{_meant(name, _zones())}") from exc
    return name


def _zones() -> dict[str, str]:
    """Return the zones by what a person may call them: the name, or the city alone."""
    names = sorted(available_timezones())
    return {name.rpartition("/")[2].lower(): name for name in names} | {
        name.lower(): name for name in names
    }


def _person_name(name: str) -> str:
    name = name.strip()
    if len(name) > 64 or not name.isprintable():
        raise ValueError("one line of at most 64 characters")
    return name


ModelName = Annotated[str, AfterValidator(_model_name)]
"""``offline``, ``gguf:PATH``, or a name of litellm's."""


class Settings(BaseSettings):
    """Everything that can be set.

    Read it with ``load_settings``, whose errors are fit for a person.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=_ENV_FILE,
        env_file_encoding="utf-8",
        dotenv_filtering="match_prefix",
        extra="forbid",
        frozen=True,
        validate_default=True,
        hide_input_in_errors=True,
        allow_inf_nan=False,
    )

    home: Annotated[Path, AfterValidator(_absolute)] = Field(
        Path("~/.tapebot"), description="Folder of the tapes, logs and everything else kept."
    )
    config: Annotated[Path, AfterValidator(_absolute)] | None = Field(
        None, description="TOML file with more settings; unset: tapebot.toml in the home folder."
    )
    workspace: Annotated[Path, AfterValidator(_absolute)] | None = Field(
        None,
        description="Folder of AGENTS.md, SOUL.md, USER.md and skills/; unset: workspace in home.",
    )
    model: ModelName | None = Field(
        None, description='Name of litellm\'s, "offline" or "gguf:PATH"; unset: offline.'
    )
    model_api_base: Annotated[str, AfterValidator(_web_address)] | None = Field(
        None, description="Address of the model's API, where it is not the provider's own."
    )
    model_api_key: SecretStr | None = Field(
        None, description="Key for the model; unset: the provider's own variable (OPENAI_API_KEY)."
    )
    fallback_models: Annotated[tuple[ModelName, ...], NoDecode] = Field(
        (), description="Models tried in turn when the model fails, separated by commas."
    )
    model_timeout: float = Field(120, gt=0, le=3600, description="Seconds that one call may take.")
    model_concurrency: int = Field(8, ge=1, le=256, description="Calls that may run at once.")
    context_tokens: int | None = Field(
        None, ge=1024, le=100_000_000, description="Size of the model's window; unset: as known."
    )
    max_steps: int = Field(12, ge=1, le=100, description="Model calls that one turn may make.")
    memory_window: int = Field(
        100, ge=10, le=100_000, description="Messages not yet consolidated that start it."
    )
    memory_tokens: int | None = Field(
        None, ge=256, description="Tokens that start it as well; unset: half of the window."
    )
    retention_days: int = Field(
        30, ge=1, le=36_500, description="Days for which daily notes are kept in memory."
    )
    view_tokens: int | None = Field(
        None, ge=256, description="Tokens of a turn's prompt; unset: three quarters of the window."
    )
    archive_timeout: float = Field(
        60, gt=0, le=3600, description="Seconds that /new may take before it gives up."
    )
    timezone: Annotated[str, AfterValidator(_time_zone)] = Field(
        "UTC", description="Zone of the times that the model and the person see."
    )
    user_name: Annotated[str, AfterValidator(_person_name)] | None = Field(
        None, description="Your name in the console; unset: the system's name for you."
    )
    tape_sync: Literal["always", "os"] = Field(
        "always", description="Wait for the disk at each write (always), or leave it to the system."
    )
    session_limit: int = Field(
        100, ge=1, le=100_000, description="Messages that may wait in one session."
    )
    open_tapes: int = Field(256, ge=1, le=65_536, description="Tapes kept open at once.")
    idle_seconds: float = Field(
        300, gt=0, le=86_400, description="Seconds without a message after which a session rests."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="The lowest level that is logged."
    )

    @field_validator("*", mode="before")
    @classmethod
    def _empty_is_default(cls, value: object, info: ValidationInfo) -> object:
        if info.field_name and isinstance(value, str) and not value.strip():
            return cls.model_fields[info.field_name].default
        return value

    @field_validator("tape_sync", "log_level", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        return value.strip().lower() if isinstance(value, str) else value

    @field_validator("fallback_models", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part for part in map(str.strip, value.split(",")) if part)
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 (the library's signature)
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Put the TOML file after the others, which say where it is."""
        near = (init_settings, env_settings, dotenv_settings)
        path = _toml_path({**dotenv_settings(), **env_settings(), **init_settings()})
        if path is None:
            return near
        try:
            toml = TomlConfigSettingsSource(settings_cls, toml_file=path)
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
            raise SettingsError(f"{path} cannot be read: {exc}") from exc
        if "config" in toml.toml_data:
            raise SettingsError(f"{path}: config cannot be set in the file that it would name.")
        return (*near, toml)

    @property
    def workspace_folder(self) -> Path:
        """The folder of the bootstrap files, set or not."""
        return self.workspace or self.home / "workspace"

    @property
    def workspace_id(self) -> str | None:
        """What names this workspace in tapes; None where unset, so that the home can be moved."""
        return None if self.workspace is None else str(self.workspace.resolve())

    @property
    def console_name(self) -> str:
        """The name of the person at the console."""
        if self.user_name:
            return self.user_name
        try:
            return getpass.getuser()
        except (KeyError, OSError):  # a container's user often has no name
            return "you"

    def secrets(self) -> tuple[str, ...]:
        """Return the values that must never be shown, those of the environment included."""
        own = () if self.model_api_key is None else (self.model_api_key.get_secret_value(),)
        names = (name for name in os.environ if _SECRET_NAME.search(name.upper()))
        return (*own, *(os.environ[name] for name in names if os.environ[name]))


def load_settings(**overrides: Any) -> Settings:
    """Read the settings.

    Args:
        overrides: Values by field name that win over every source.

    Raises:
        SettingsError: A setting is wrong or unknown, or a file cannot be read; a line for each.
    """
    if bad := list(_bad_lines()):
        raise SettingsError("\n".join(bad))
    wrong = list(_unknown_in_environment())
    try:
        settings = Settings(**overrides)
    except ValidationError as exc:
        details = exc.errors(include_url=False, include_context=False)
        raise SettingsError("\n".join([*wrong, *map(_explain, details)])) from None
    if wrong:
        raise SettingsError("\n".join(wrong))
    return settings


def export_dotenv() -> None:
    """Give libraries what ``.env`` holds for them, such as OPENAI_API_KEY.

    What the environment already has stays; tapebot's own variables are not exported.

    Raises:
        SettingsError: The file cannot be read.
    """
    if not _ENV_FILE.is_file():
        return
    values = dotenv_values(stream=io.StringIO(_env_text()))
    for name, value in values.items():
        if value and not name.upper().startswith(PREFIX):
            os.environ.setdefault(name, value)


def _toml_path(given: dict[str, Any]) -> Path | None:
    """Return the TOML file to read, from the values of the nearer sources."""
    if config := str(given.get("config") or "").strip():
        path = Path(os.path.expanduser(config))  # noqa: PTH111 (this one never raises)
        if not path.is_file():
            raise SettingsError(f"{PREFIX}CONFIG: given {config!r}; allowed: a file that exists.")
        return path
    home = str(given.get("home") or "").strip() or Settings.model_fields["home"].default
    path = Path(os.path.expanduser(home)) / _TOML_FILE  # noqa: PTH111 (this one never raises)
    return path if path.is_file() else None


def _env_text() -> str:
    try:
        return _ENV_FILE.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsError(f"{_ENV_FILE} cannot be read: {exc}") from exc


def _bad_lines() -> Iterator[str]:
    """Name the lines of ``.env`` that would set nothing."""
    if _ENV_FILE.is_file():
        for binding in parse_stream(io.StringIO(_env_text())):
            if binding.error or (binding.key is not None and binding.value is None):
                yield f"{_ENV_FILE}, line {binding.original.line}: not of the form NAME=value."


def _unknown_in_environment() -> Iterator[str]:
    for name in sorted(os.environ):
        field = name.lower().removeprefix(PREFIX.lower())
        if len(field) < len(name) and field not in Settings.model_fields:
            yield _unknown(field)


def _unknown(field: str) -> str:
    known = {name: PREFIX + name.upper() for name in Settings.model_fields}
    return f"{PREFIX}{field.upper()} is not a setting of this version{_meant(field, known)}."


def _meant(given: str, known: dict[str, str]) -> str:
    """Return a hint at the nearest of the known, whose keys are lower case."""
    near = difflib.get_close_matches(given.lower(), known, n=1, cutoff=0.7)
    return f" (did you mean {known[near[0]]}?)" if near else ""


def _explain(detail: ErrorDetails) -> str:
    """Return the line that tells a person about one error."""
    field = str(detail["loc"][0])
    info = Settings.model_fields.get(field)
    if info is None:
        return _unknown(field)
    types = get_args(info.annotation) or (info.annotation,)
    given = "a secret" if SecretStr in types else redact(repr(detail["input"]))
    own_words = detail["type"] == "value_error"
    allowed = detail["msg"].removeprefix("Value error, ") if own_words else _allowed(info, types)
    return f"{PREFIX}{field.upper()}: given {given}; allowed: {allowed}."


def _allowed(info: FieldInfo, types: tuple[Any, ...]) -> str:
    """Say what a field takes, from its type and bounds."""
    if isinstance(types[0], str):
        return " or ".join(types)
    bounds = {
        key: getattr(item, key)
        for item in info.metadata
        for key in ("ge", "gt", "le")
        if hasattr(item, key)
    }
    kind = next((text for known, text in _KINDS.items() if known in types), "text")
    least = f" of at least {bounds['ge']}" if "ge" in bounds else ""
    above = f" above {bounds['gt']}" if "gt" in bounds else ""
    most = f", at most {bounds['le']}" if "le" in bounds else ""
    return f"{kind}{least}{above}{most}"


_KINDS: dict[object, str] = {int: "a whole number", float: "a number", Path: "a path"}
