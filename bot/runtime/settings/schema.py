"""The settings tree and its sources."""

from __future__ import annotations

import getpass
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import time
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, SecretStr, ValidationInfo, field_validator
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from bot.core.addresses import host_and_port, is_loopback, web_address
from bot.core.errors import SettingsError
from bot.core.i18n import _, current_language
from bot.core.patterns import LazyPattern
from bot.mcp_client.settings import McpServer, server_name
from bot.runtime.settings.model_presets import (
    DEFAULT_PRESET,
    PresetSettings,
    RoleSettings,
    check_presets,
    check_roles,
    runs_in_process,
)
from bot.runtime.settings.validators import (
    ModelName,
    PersonOrChat,
    absolute,
    embedding_name,
    language_code,
    local_zone,
    person_name,
    site_address,
    site_listen,
    time_zone,
)
from channels.registry import ChannelSettings

PREFIX = "TAPEBOT_"
"""Prefix of every variable's name."""

ENV_FILE = Path(".env")
"""Read from the working directory, and from the home folder."""

TABLES = ("models", "roles")
"""Settings that are tables of the TOML file, and no variables."""

_ROLE_SETTINGS = {
    "chat": ("model", "fallback_models", "context_tokens", "model_api_base", "model_api_key"),
    "judge": ("judge_model",),
    "transcription": ("transcription_model",),
    "embeddings": ("embedding_model",),
}
"""Settings of a role's model, which mean nothing if ``[roles]`` names a preset for it."""

TOML_FILE = "tapebot.toml"
_SECRET_NAME = LazyPattern(r"(?:API_KEY|ACCESS_KEY|TOKEN|SECRET|PASSWORD)$")


AbsolutePath = Annotated[Path, AfterValidator(absolute)]
WebAddress = Annotated[str, AfterValidator(web_address)]
HostAndPort = Annotated[str, AfterValidator(host_and_port)]
PeopleOrChats = Annotated[tuple[PersonOrChat, ...], NoDecode]
Names = Annotated[tuple[str, ...], NoDecode]


def setting(default: Any, description: str, **bounds: float) -> Any:
    """Declare a setting: its default, what it is, and its bounds."""
    return Field(default, description=description, **bounds)  # type: ignore[call-overload]


class Settings(ChannelSettings, BaseSettings):
    """All settings of the program, those of platforms included.

    Load them with ``load_settings``, whose errors are readable for people.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=ENV_FILE,
        env_file_encoding="utf-8",
        dotenv_filtering="match_prefix",
        extra="forbid",
        frozen=True,
        validate_default=True,
        hide_input_in_errors=True,
        allow_inf_nan=False,
    )

    home: AbsolutePath = setting(Path("~/.tapebot"), "Folder for tapes, logs and all other data.")
    config: AbsolutePath | None = setting(
        None, "TOML file with more settings; unset: tapebot.toml in the home folder."
    )
    workspace: AbsolutePath | None = setting(
        None, "Folder of AGENTS.md, SOUL.md, USER.md and skills/; unset: workspace in home."
    )
    model: ModelName | None = setting(
        None,
        'litellm model name, "offline", "gguf:PATH" or "PLUGIN:NAME"; unset: offline, a notebook.',
    )
    model_api_base: WebAddress | None = setting(
        None, "Address of the model's API; unset: the provider's own."
    )
    model_api_key: SecretStr | None = setting(
        None, "Key for the model; unset: the provider's own variable (OPENAI_API_KEY)."
    )
    model_client: Literal["http", "litellm"] = setting(
        "http", 'Client of providers whose protocol is known; "litellm" calls all by litellm.'
    )
    fallback_models: Annotated[tuple[ModelName, ...], NoDecode] = setting(
        (), "Models tried in turn when the model fails, separated by commas."
    )
    judge_model: ModelName | None = setting(
        None, 'Model that judges proposed memories, or "none"; unset: the model itself.'
    )
    model_timeout: float = setting(120, "Timeout of a model call in seconds.", gt=0, le=3600)
    model_concurrency: int = setting(32, "Concurrent model calls.", ge=1, le=256)
    context_tokens: int | None = setting(
        None, "Tokens of the model's context window; unset: as known.", ge=1024, le=100_000_000
    )
    max_steps: int = setting(12, "Model calls per turn at most.", ge=1, le=100)
    memory_window: int = setting(
        100, "Unconsolidated messages that start a consolidation.", ge=10, le=100_000
    )
    memory_tokens: int | None = setting(
        None, "Unconsolidated tokens that start one, too; unset: half of the window.", ge=256
    )
    retention_days: int = setting(
        30, "Days for which daily notes are kept in memory.", ge=1, le=36_500
    )
    view_tokens: int | None = setting(
        None, "Tokens of a turn's prompt; unset: three quarters of the window.", ge=256
    )
    gate_severe: float = setting(
        0.9, "Confidence that the gate requires of facts for everyone.", ge=0, le=1
    )
    gate_moderate: float = setting(
        0.7, "Confidence that it requires of facts for all chats of a person.", ge=0, le=1
    )
    gate_minimal: float = setting(
        0.5, "Confidence that it requires of facts for one memory.", ge=0, le=1
    )
    gate_grounded: float = setting(
        0.6, "Source quality below which it only records, without believing.", ge=0, le=1
    )
    gate_aligned: float = setting(
        0.5, "Alignment with the priorities below which it accepts no belief.", ge=0, le=1
    )
    gate_pending_hours: float = setting(
        2, "Hours that a contested assumption waits for a person's decision.", gt=0, le=24
    )
    working_set_hours: float = setting(
        2, "Hours after which an unused working set expires.", gt=0, le=24
    )
    context_builder: str = setting(
        "default", "Context builder: default, exact, with-recall or summary-first."
    )
    recall_tokens: int = setting(
        400, "Tokens of automatic recall per turn; 0: none.", ge=0, le=20_000
    )
    facts_tokens: int | None = setting(
        None,
        "Tokens of facts in a prompt; unset: a 64th of the window, from 1,000 to 4,000.",
        ge=100,
        le=200_000,
    )
    embedding_model: Annotated[str, AfterValidator(embedding_name)] | None = setting(
        None, '"local" or a litellm model name; unset: recall by words only.'
    )
    archive_timeout: float = setting(60, "Timeout of /new in seconds.", gt=0, le=3600)
    timezone: Annotated[str, AfterValidator(time_zone)] = Field(
        default_factory=local_zone,
        description="Time zone of shown times; unset: the machine's.",
    )
    language: Annotated[str, AfterValidator(language_code)] | None = setting(
        None, "Language of people who choose none, and whose app states none; unset: the system's."
    )
    web_listen: Annotated[str | None, AfterValidator(site_listen)] = setting(
        "127.0.0.1:8020", "Where the site listens on this machine, or off."
    )
    web_url: str | None = setting(
        None, "Public https address of the site; unset: the local address."
    )
    mcp_token: SecretStr | None = setting(
        None, "Token of tapebot mcp; unset: it acts for whoever runs the bot."
    )
    web_search: Literal["off", "ddgs", "searxng", "brave", "tavily"] | None = setting(
        None, "Search engine of the model; unset: ddgs if web-tools is installed."
    )
    web_search_url: WebAddress | None = setting(
        None, "Address of the SearXNG server, or of another engine's interface."
    )
    web_search_key: SecretStr | None = setting(None, "Key for Brave or Tavily.")
    web_fetch: Literal["off", "on"] | None = setting(
        None, "Whether the model may read web pages; unset: on if web-tools is installed."
    )
    web_fetch_ports: Annotated[tuple[Annotated[int, Field(ge=1, le=65_535)], ...], NoDecode] = (
        setting((80, 443), "Ports of pages that it may read, separated by commas.")
    )
    code: Literal["off", "on"] | None = setting(
        None, "Whether the model may run Python in a sandbox; unset: on if code is installed."
    )
    owners: PeopleOrChats = setting(
        (), "People who own the bot, such as telegram:42, separated by commas."
    )
    allow: PeopleOrChats = setting(
        (), "People, chats and servers that may use it, separated by commas."
    )
    always_answer: PeopleOrChats = setting((), "Group chats where the bot answers every message.")
    group_context: int = setting(
        0, "Unanswered group messages kept as context for the next answer.", ge=0, le=200
    )
    transcription_model: str | None = setting(
        None, "litellm model name for voice messages; unset: no transcription."
    )
    max_file_mb: int = setting(20, "Largest accepted file in megabytes.", ge=1, le=2_000)
    files_mb: int = setting(
        200, "Megabytes of files that each person and group can keep; 0: none.", ge=0, le=100_000
    )
    user_name: Annotated[str, AfterValidator(person_name)] | None = setting(
        None, "Your name in the console; unset: the system's name for you."
    )
    mcp: dict[Annotated[str, AfterValidator(server_name)], McpServer] = Field(
        default_factory=dict,
        description="MCP servers by name, as JSON; in tapebot.toml tables [mcp.NAME].",
    )
    plugins: Names = setting(
        ("all",), "Packages whose plug-ins run, separated by commas, or off; unset: all installed."
    )
    tape_sync: Literal["always", "os"] = setting(
        "always", "always: wait for the disk at each write; os: leave it to the system."
    )
    tape_store: str = setting(
        "file", 'Where tapes are: "file", "memory", a tape server\'s address, or a store\'s name.'
    )
    tape_store_token: SecretStr | None = setting(None, "Token for that tape server.")
    database_url: SecretStr | None = setting(
        None,
        "postgresql://user:password@host/name for all data that processes share; unset: files in the home folder.",
    )
    lease_seconds: float = setting(
        30, "Seconds until another process takes over from a dead one.", ge=1, le=600
    )
    operate_listen: HostAndPort | None = setting(
        None, "Where metrics and health are served, such as 127.0.0.1:9464; unset: off."
    )
    tape_server_listen: HostAndPort = setting(
        "127.0.0.1:8383", "Where tapebot tape-server listens on this machine."
    )
    tape_server_tokens: AbsolutePath | None = setting(
        None, "File of the tape server's tokens; unset: tape-tokens.json in home."
    )
    tape_server_max_mb: int = setting(
        8, "Largest request to the tape server in megabytes.", ge=1, le=256
    )
    backup_to: AbsolutePath | None = setting(
        None, "Folder for a backup each day; unset: none is made by itself."
    )
    backup_passphrase: SecretStr | None = setting(
        None, "Passphrase that encrypts and opens backups."
    )
    backup_recipients: Names = setting(
        (), "Public keys of age (age1...) that backups are for, instead of a passphrase."
    )
    backup_at: time = setting(time(3, 30), "Local time of the daily backup, in TAPEBOT_TIMEZONE.")
    backup_keep: int = setting(14, "Backups kept; older ones go.", ge=1, le=10_000)
    session_limit: int = setting(
        5_000,
        "Messages that may wait in one session; more are refused, with a notice.",
        ge=1,
        le=100_000,
    )
    open_tapes: int = setting(256, "Tapes kept open at once.", ge=1, le=65_536)
    idle_seconds: float = setting(
        300, "Seconds without a message after which a session is unloaded.", gt=0, le=86_400
    )
    log_level: Literal["debug", "info", "warning", "error"] = setting(
        "info", "The lowest level that is logged."
    )
    models: dict[str, PresetSettings] = setting({}, "Model presets, [models.NAME] in tapebot.toml.")
    roles: RoleSettings = setting(
        RoleSettings(), "The preset of each role, [roles] in tapebot.toml."
    )

    @field_validator("*", mode="before")
    @classmethod
    def _empty_is_default(cls, value: object, info: ValidationInfo) -> object:
        if info.field_name and isinstance(value, str) and not value.strip():
            return cls.model_fields[info.field_name].get_default(call_default_factory=True)
        return value

    @field_validator("tape_sync", "log_level", "web_search", "web_fetch", "code", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        return value.strip().lower() if isinstance(value, str) else value

    @field_validator("*", mode="before")
    @classmethod
    def _split(cls, value: object, info: ValidationInfo) -> object:
        lists = isinstance(cls.model_fields[info.field_name or ""].default, tuple)
        if lists and isinstance(value, str):
            return tuple(part for part in map(str.strip, value.split(",")) if part)
        return value

    @field_validator("models")
    @classmethod
    def _consistent(cls, presets: dict[str, PresetSettings]) -> dict[str, PresetSettings]:
        check_presets(presets)
        return presets

    @field_validator("roles")
    @classmethod
    def _known_presets(cls, roles: RoleSettings, info: ValidationInfo) -> RoleSettings:
        if (presets := info.data.get("models")) is not None:
            check_roles(roles, presets)
        for role, names in _ROLE_SETTINGS.items():
            given = next((name for name in names if info.data.get(name)), None)
            if getattr(roles, role) is not None and given is not None:
                raise ValueError(
                    _(
                        "{role}, or {setting}, which means nothing beside it; remove one",
                        role=role,
                        setting=PREFIX + given.upper(),
                    )
                )
        return roles

    @field_validator("context_builder")
    @classmethod
    def _installed(cls, name: str) -> str:
        # Import it only if one is set: the builders import modules that settings do not need.
        from bot.agent.views.registry import builder_names, has_builder

        if not has_builder(name):
            raise ValueError(_(" or ").join(builder_names()))
        return name

    @field_validator("web_url")
    @classmethod
    def _reached_safely(cls, url: str | None, info: ValidationInfo) -> str | None:
        if url is not None:
            return site_address(url)
        # Missing if it is invalid itself; that error is reported then.
        listen: str | None = info.data.get("web_listen")
        if listen is not None and not is_loopback(listen.rpartition(":")[0]):
            raise ValueError(
                _(
                    "an https:// address, because TAPEBOT_WEB_LISTEN={listen} lets other machines in: "
                    "give the address of your HTTPS proxy, or listen on 127.0.0.1:8020 only",
                    listen=listen,
                )
            )
        return None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 (the library's signature)
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Add the TOML file as the last source; the others name its path."""
        # A source goes through all settings, which takes milliseconds: none for a file that is not there.
        near = [init_settings, env_settings, *([dotenv_settings] if ENV_FILE.exists() else [])]
        given = {name: value for source in reversed(near) for name, value in source().items()}
        in_home = _settings_in_home(settings_cls, home_folder(given))
        if in_home is not None:
            near.append(in_home)
            given = {**in_home(), **given}
        path = _toml_path(given)
        if path is None:
            return tuple(near)
        try:
            toml = TomlConfigSettingsSource(settings_cls, toml_file=path)
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
            raise SettingsError(_("{path} cannot be read: {exc}", path=path, exc=exc)) from exc
        if "config" in toml.toml_data:
            raise SettingsError(
                _("{path}: config cannot be set in the TOML file itself.", path=path)
            )
        return (*near, toml)

    def presets(self) -> dict[str, PresetSettings]:
        """Return the model presets by name, the chat's first; ``default`` is what the settings say.

        There is no ``default`` if ``[roles]`` names another preset for the chat. Presets that only
        transcribe or embed are among them; see ``chat_presets``.
        """
        if (first := self.roles.chat) is not None:
            return {first: self.models[first], **self.models}
        model = self.model or "offline"
        default = PresetSettings(
            model=model,
            fallbacks=self.fallback_models,
            context_tokens=self.context_tokens,
            api_base=self.model_api_base,
            api_key=self.model_api_key,
            private=all(map(self._is_private, (model, *self.fallback_models))),
        )
        return {DEFAULT_PRESET: default, **self.models}

    def chat_presets(self) -> dict[str, PresetSettings]:
        """Return the presets of chat models: all but those that only transcribe or embed."""
        named = self.roles.named()
        chats = {
            name for role, name in named.items() if role not in ("transcription", "embeddings")
        }
        others = set(named.values()) - chats
        return {name: preset for name, preset in self.presets().items() if name not in others}

    def _is_private(self, name: str) -> bool:
        preset = self.models.get(name)
        return preset.private if preset is not None else runs_in_process(name)

    @property
    def workspace_folder(self) -> Path:
        """The folder of the bootstrap files."""
        return self.workspace or self.home / "workspace"

    @property
    def workspace_id(self) -> str | None:
        """The workspace's name on tapes; None by default, so that the home folder can be moved."""
        return None if self.workspace is None else str(self.workspace.resolve())

    @property
    def shown_language(self) -> str:
        """The language that is set, else the one that is spoken now."""
        return self.language or current_language()

    @property
    def web_base(self) -> str | None:
        """The site's public address without a trailing slash; None if the site is off."""
        if self.web_listen is None:
            return None
        return self.web_url or f"http://{self.web_listen}"

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
        """Return the values that must never be shown, including those in the environment."""
        own = [
            secret.get_secret_value() for _unused, value in self for secret in _secrets_in(value)
        ]
        names = (name for name in os.environ if _SECRET_NAME.search(name.upper()))
        return (*own, *(os.environ[name] for name in names if os.environ[name]))


def _secrets_in(value: object) -> Iterator[SecretStr]:
    """Yield the secrets in a setting's value."""
    if isinstance(value, SecretStr):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _secrets_in(item)
    elif isinstance(value, dict):
        yield from _secrets_in(tuple(value.values()))
    elif isinstance(value, BaseModel):
        yield from _secrets_in(tuple(part for _unused, part in value))
    elif is_dataclass(value):
        for attribute in fields(value):
            yield from _secrets_in(getattr(value, attribute.name))


def _settings_in_home(
    settings_cls: type[BaseSettings], home: Path
) -> PydanticBaseSettingsSource | None:
    """Return the settings in the home's own ``.env``; None if it has none.

    Raises:
        SettingsError: They name the home.
    """
    if not (home / ENV_FILE).exists():
        return None
    source = DotEnvSettingsSource(settings_cls, env_file=home / ENV_FILE)
    if source().get("home"):
        raise SettingsError(
            _(
                "{file}: {name} cannot be set in the home itself.",
                file=source.env_file,
                name=f"{PREFIX}HOME",
            )
        )
    return source


def _toml_path(given: dict[str, Any]) -> Path | None:
    """Return the TOML file to read, given the values of the other sources."""
    if config := str(given.get("config") or "").strip():
        path = Path(os.path.expanduser(config))  # noqa: PTH111 (this one never raises)
        if not path.is_file():
            raise SettingsError(
                _(
                    "{setting}: given {config!r}; allowed: a file that exists.",
                    setting=f"{PREFIX}CONFIG",
                    config=config,
                )
            )
        return path
    path = home_folder(given) / TOML_FILE
    return path if path.is_file() else None


def home_folder(given: Mapping[str, Any]) -> Path:
    """Return the home folder, given the values of the sources that can name it."""
    home = str(given.get("home") or "").strip() or Settings.model_fields["home"].default
    return Path(os.path.expanduser(home))  # noqa: PTH111 (this one never raises)
