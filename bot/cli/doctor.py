"""``tapebot doctor``: check settings, folders, models and channels, and say what to do.

It writes nothing but a probe file in the home folder, removed at once; it calls models, platforms,
MCP servers and the search engine only with a probe, which may renew a login at an MCP server; it
shows no secrets.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import platform
import shutil
import stat
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import anyio
import anyio.to_thread
from wcwidth import width

from bot.agent.code.sandbox import missing_libraries
from bot.agent.consolidation.judge_trial import JUDGES_FILE, JudgeTrials, failed_judge_text
from bot.bus.access.access_list import AccessList
from bot.cli.check_result import AREAS, LEVELS, CheckLevel, CheckResult
from bot.cli.doctor_channels import check_channels, check_connections
from bot.cli.doctor_database import check_database
from bot.cli.doctor_mcp import check_mcp
from bot.cli.doctor_plugins import check_installed_plugins
from bot.cli.doctor_tapes import check_tape_store
from bot.cli.doctor_web_tools import check_web_tools
from bot.core.errors import SettingsError, TapebotError
from bot.core.i18n import _, format_number, ngettext
from bot.core.installation import this_installation
from bot.core.plugins import Plugins
from bot.core.telemetry.redaction import Redactor
from bot.llm.http.providers import find_server
from bot.runtime.models import RESERVED_MODELS
from bot.runtime.settings import (
    PresetSettings,
    Settings,
    export_dotenv,
    load_settings,
    runs_in_process,
)

Probe = Callable[[], Awaitable[str]]

_LITTLE_SPACE, _NO_SPACE = 500_000_000, 50_000_000  # bytes
_LARGE_BOOTSTRAP = 32_000  # bytes; it is part of every prompt
_BOOTSTRAP = ("AGENTS.md", "SOUL.md", "USER.md")
_FILES_LOOKED_AT = 10_000
_LEVEL_CELLS, _AREA_CELLS = 5, 11  # of a terminal, at least
_KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "azure": ("AZURE_API_KEY",),
    "cohere": ("COHERE_API_KEY", "CO_API_KEY"),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "together_ai": ("TOGETHERAI_API_KEY",),
    "xai": ("XAI_API_KEY",),
}
_NO_KEY = {"ollama", "ollama_chat", "lm_studio", "hosted_vllm", "llamafile"}
_BARE_NAMES = {"gpt-": "openai", "o1": "openai", "o3": "openai", "o4": "openai"}
_BARE_NAMES |= {"claude": "anthropic"}


async def run_checks(
    settings: Settings | SettingsError, *, probe: Probe | None = None
) -> list[CheckResult]:
    """Check everything that can be checked from outside the running program."""
    findings = [CheckResult("python", "ok", platform.python_version()), _terminal()]
    if isinstance(settings, SettingsError):
        lines = str(settings).splitlines()
        return [
            *(CheckResult("settings", "bad", line, _("Correct it.")) for line in lines),
            *findings,
        ]
    findings.insert(0, CheckResult("settings", "ok", _("all known and valid")))
    findings += await anyio.to_thread.run_sync(lambda: list(_on_disk(settings)))
    shared: AccessList | TapebotError | None = None
    if settings.database_url is not None:
        check_results, shared = await check_database(settings)
        findings += check_results
    elif settings.tape_store != "file":
        findings.append(await check_tape_store(settings, ask=probe is not None))
    findings += _models(settings)
    if probe is not None:
        findings.append(await _answer(probe, settings.model_timeout))
    findings += await anyio.to_thread.run_sync(lambda: list(check_installed_plugins(settings)))
    findings.append(_code(settings))
    findings.append(
        CheckResult("time", "ok", _("times are shown in {timezone}", timezone=settings.timezone))
    )
    asks = probe is not None
    findings += await anyio.to_thread.run_sync(
        lambda: list(check_channels(settings, ask=asks, access_list=shared))
    )
    findings += await check_connections(settings.home)
    findings += await check_web_tools(settings, ask=asks)
    findings += await check_mcp(settings, ask=asks)
    redact = Redactor(settings.secrets())
    return [replace(each, text=redact(each.text), remedy=redact(each.remedy)) for each in findings]


def report(findings: list[CheckResult]) -> str:
    """Format the results as text for a terminal, with a summary on the last line."""
    lines = []
    adapt = this_installation().adapt
    levels = [_(LEVELS[each.level]) for each in findings]
    areas = [_(AREAS.get(each.area, each.area)) for each in findings]
    first = max([_LEVEL_CELLS, *(width(level) + 1 for level in levels)])
    second = max([_AREA_CELLS, *(width(area) + 1 for area in areas)])
    for each, level, area in zip(findings, levels, areas, strict=True):
        lines.append(f"{_padded(level, first)}{_padded(area, second)}{adapt(each.text)}")
        if each.remedy:
            lines.append(f"{'':<{first + second}}-> {adapt(each.remedy)}")
    bad = sum(each.level == "bad" for each in findings)
    warnings = sum(each.level == "warn" for each in findings)
    counted = ngettext("{n} warning", "{n} warnings", warnings) if warnings else _("no warnings")
    if bad:
        lines.append(
            ngettext("{n} bad, {warnings}.", "{n} bad, {warnings}.", bad, warnings=counted)
        )
    else:
        lines.append(_("Nothing bad, {warnings}.", warnings=counted))
    return "\n".join(lines)


def _padded(text: str, cells: int) -> str:
    """Return a text with blanks up to a number of a terminal's cells."""
    return text + " " * (cells - width(text))


def exit_code(findings: list[CheckResult]) -> int:
    """Return 1 if any result is bad, else 0."""
    return int(any(each.level == "bad" for each in findings))


def _terminal() -> CheckResult:
    encoding = (getattr(sys.stdout, "encoding", None) or "none").lower()
    if encoding.replace("-", "") != "utf8":
        remedy = _("Set PYTHONUTF8=1, or a locale such as C.UTF-8.")
        return CheckResult(
            "terminal", "warn", _("its encoding is {encoding}", encoding=encoding), remedy
        )
    attached = sys.stdin is not None and sys.stdin.isatty()
    return CheckResult(
        "terminal", "ok", _("yes") if attached else _("none; input is read from a pipe")
    )


def _on_disk(settings: Settings) -> Iterator[CheckResult]:
    home = settings.home
    yield from _private(Path(".env"), ".env", 0o600)
    if settings.config is not None:
        yield from _private(settings.config, _("the TOML file"), 0o600)
    try:
        is_folder = stat.S_ISDIR(home.stat().st_mode)
    except FileNotFoundError:
        yield _can_be_made(home)
    except OSError as exc:
        remedy = _("Set TAPEBOT_HOME to a folder that you own.")
        yield CheckResult(
            "home",
            "bad",
            _("{home} cannot be reached: {strerror}", home=home, strerror=exc.strerror),
            remedy,
        )
    else:
        if is_folder:
            yield _writable(home)
            yield from _modes(home)
            if settings.tape_store == "file" and settings.database_url is None:
                yield _lock(home / "tapes")
        else:
            yield CheckResult(
                "home", "bad", _("{home} is a file", home=home), _("Set TAPEBOT_HOME to a folder.")
            )
    yield _space(_nearest(home))
    yield from _workspace(settings)


def _nearest(path: Path) -> Path:
    """Return the path, or its nearest parent that exists."""
    return next(each for each in (path, *path.parents) if os.access(each, os.F_OK))


def _can_be_made(home: Path) -> CheckResult:
    parent = _nearest(home)
    if parent.is_dir() and os.access(parent, os.W_OK | os.X_OK):
        return CheckResult("home", "ok", _("{home} will be created at the first start", home=home))
    remedy = _("Set TAPEBOT_HOME to a folder that you own.")
    return CheckResult(
        "home", "bad", _("{home} cannot be created in {parent}", home=home, parent=parent), remedy
    )


def _writable(home: Path) -> CheckResult:
    try:
        with tempfile.NamedTemporaryFile(dir=home, prefix=".doctor-") as file:
            file.write(b"tapebot")
            file.flush()
            os.fsync(file.fileno())
    except OSError as exc:
        remedy = _("Make the folder writable for this user, or free disk space.")
        return CheckResult(
            "home",
            "bad",
            _("{home}: writing to disk fails: {strerror}", home=home, strerror=exc.strerror),
            remedy,
        )
    return CheckResult("home", "ok", _("{home} is writable, and writes reach the disk", home=home))


def _modes(home: Path) -> Iterator[CheckResult]:
    yield from _private(home, _("the home folder"), 0o700)
    inside = islice(home.rglob("*"), _FILES_LOOKED_AT)
    open_files = [path for path in inside if not path.is_symlink() and _is_open(path)]
    # If others cannot enter the home folder, the modes inside it do not matter.
    if open_files and _is_open(home):
        text = _("other users can open its files, e.g. {path}", path=open_files[0])
        yield CheckResult("home", "warn", text, f"chmod -R go-rwx '{home}'")


def _is_open(path: Path) -> bool:
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
    except FileNotFoundError:  # a running tapebot renames files
        return False


def _private(path: Path, what: str, mode: int) -> Iterator[CheckResult]:
    if path.exists() and _is_open(path):
        found = stat.S_IMODE(path.stat().st_mode)
        text = _("other users can open {what} (mode {mode})", what=what, mode=f"{found:04o}")
        yield CheckResult("home", "warn", text, f"chmod {mode:o} '{path}'")


def _space(folder: Path) -> CheckResult:
    free = shutil.disk_usage(folder).free
    text = _("{size} GB free", size=format_number(round(free / 1e9, 1)))
    remedy = _("Free disk space in {folder}.", folder=folder)
    if free < _NO_SPACE:
        return CheckResult("disk", "bad", text, remedy)
    return (
        CheckResult("disk", "warn", text, remedy)
        if free < _LITTLE_SPACE
        else CheckResult("disk", "ok", text)
    )


def _lock(tapes: Path) -> CheckResult:
    try:
        # A shared lock for an instant, which does not disturb a holder's own lock.
        with (tapes / ".lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return CheckResult(
            "tapes", "ok", _("in use by a running tapebot ({owner})", owner=_owner(tapes))
        )
    except FileNotFoundError:
        return CheckResult("tapes", "ok", _("none yet"))
    except OSError as exc:
        remedy = _("Make the user that runs tapebot the owner of {tapes}", tapes=tapes)
        return CheckResult(
            "tapes",
            "bad",
            _("the lock cannot be checked: {strerror}", strerror=exc.strerror),
            remedy,
        )
    return CheckResult("tapes", "ok", _("not in use"))


def _owner(tapes: Path) -> str:
    try:
        pid = (tapes / ".owner").read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        pid = ""
    return _("process {pid}", pid=pid) if pid.isdigit() else _("unknown process")


def _workspace(settings: Settings) -> Iterator[CheckResult]:
    folder = settings.workspace_folder
    if settings.workspace is not None and not os.access(folder, os.R_OK | os.X_OK):
        remedy = _("Create the folder, or correct TAPEBOT_WORKSPACE.")
        yield CheckResult("workspace", "bad", _("{folder} cannot be opened", folder=folder), remedy)
        return
    sizes = []
    for name in _BOOTSTRAP:
        try:
            size = len((folder / name).read_text(encoding="utf-8").encode())
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as exc:
            yield CheckResult(
                "workspace",
                "bad",
                _("{name} cannot be read: {exc}", name=name, exc=exc),
                _("Save it as UTF-8."),
            )
            continue
        sizes.append(ngettext("{name} {n} byte", "{name} {n} bytes", size, name=name))
        if size > _LARGE_BOOTSTRAP:
            text = _("{name} has {size} bytes, and every prompt repeats them", name=name, size=size)
            yield CheckResult("workspace", "warn", text, _("Shorten it."))
    yield CheckResult(
        "workspace", "ok", ", ".join(sizes) or _("no bootstrap files in {folder}", folder=folder)
    )


def _models(settings: Settings) -> Iterator[CheckResult]:
    if settings.roles.chat is None:
        yield _model(settings.model or "offline", settings)
    for name, preset in settings.models.items():
        yield _preset(name, preset, settings)
    for name in settings.fallback_models:
        if name not in settings.models:
            yield _model(name, settings, _("fallback "))
    judge = settings.judge_model
    if judge is not None and judge not in ("none", "off", "offline", *settings.models):
        yield _model(judge, settings, _("judge "))
    named = {judge or settings.model, *(preset.model for preset in settings.models.values())}
    for name, trial in JudgeTrials(settings.home / JUDGES_FILE).failed().items():
        if name in named:
            text = failed_judge_text(name, trial)
            yield CheckResult("model", "warn", text, _("Try it again with `tapebot models`."))


def _preset(name: str, preset: PresetSettings, settings: Settings) -> CheckResult:
    role = _("preset {name}, ", name=name)
    if preset.api_key is not None and not runs_in_process(preset.model):
        return CheckResult(
            "model", "ok", _("{model}: its key is in tapebot.toml", model=role + preset.model)
        )
    found = _model(preset.model, settings, role)
    # A server at another address may need no key.
    return replace(found, level="warn") if preset.api_base and found.level == "bad" else found


def _model(name: str, settings: Settings, role: str = "") -> CheckResult:
    check_result = _usable(name, settings)
    text = f"{role}{name}: {check_result.text}"
    level: CheckLevel = "warn" if role and check_result.level == "bad" else check_result.level
    return replace(check_result, text=text, level=level)


def _usable(name: str, settings: Settings) -> CheckResult:
    if name == "offline":
        return CheckResult(
            "model", "ok", _("a notebook, without a language model; TAPEBOT_MODEL sets one")
        )
    if name.startswith("gguf:"):
        return _gguf(Path(name.removeprefix("gguf:")))
    kind, colon, _rest = name.partition(":")
    plugin = Plugins(settings.plugins).find("models", kind) if colon else None
    if plugin is not None:
        return CheckResult("model", "ok", _("a plug-in's, of {package}", package=plugin.package))
    if colon and kind.isidentifier() and kind not in RESERVED_MODELS:
        remedy = _("Install its package, correct TAPEBOT_PLUGINS, or write provider/model.")
        return CheckResult("model", "bad", _("no plug-in here offers {kind}", kind=kind), remedy)
    direct = find_server(name, settings.model_api_base) and settings.model_client == "http"
    library = "aiohttp" if direct else "litellm"
    if importlib.util.find_spec(library) is None:
        missing = _("{library} is missing", library=library)
        return CheckResult("model", "bad", missing, "pip install 'tapebot[models]'")
    return _key(_provider(name), settings)


def _gguf(path: Path) -> CheckResult:
    if importlib.util.find_spec("xllamacpp") is None:
        return CheckResult(
            "model", "bad", _("xllamacpp is missing"), "pip install 'tapebot[local]'"
        )
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as exc:
        remedy = _("Correct the path in TAPEBOT_MODEL.")
        return CheckResult(
            "model", "bad", _("cannot be read: {strerror}", strerror=exc.strerror), remedy
        )
    if magic != b"GGUF":
        return CheckResult(
            "model", "bad", _("is not a GGUF file"), _("Get the model in GGUF format.")
        )
    return CheckResult(
        "model", "ok", _("{size} MB, run in this process", size=f"{path.stat().st_size / 1e6:.0f}")
    )


def _provider(name: str) -> str:
    provider, slash, _rest = name.partition("/")
    if slash:
        return provider
    return next((known for start, known in _BARE_NAMES.items() if name.startswith(start)), "")


def _key(provider: str, settings: Settings) -> CheckResult:
    names = _KEYS.get(provider, ())
    if provider in _NO_KEY:
        return CheckResult("model", "ok", _("{provider} needs no key", provider=provider))
    main = _provider(settings.model or "")
    if settings.model_api_key is not None and provider == main:
        return CheckResult("model", "ok", _("its key is in TAPEBOT_MODEL_API_KEY"))
    if held := next((name for name in names if os.environ.get(name)), None):
        return CheckResult("model", "ok", _("its key is in {held}", held=held))
    if not names:
        return CheckResult("model", "ok", _("it is unknown whether it needs a key"))
    remedy = _("Set {name}, or TAPEBOT_MODEL_API_KEY for the main model.", name=names[0])
    own_address = settings.model_api_base is not None and provider == main
    return CheckResult("model", "warn" if own_address else "bad", _("it has no key"), remedy)


def _code(settings: Settings) -> CheckResult:
    missing = missing_libraries()
    if settings.code == "off":
        return CheckResult("code", "ok", _("the model runs no code: TAPEBOT_CODE=off"))
    if not missing:
        return CheckResult("code", "ok", _("the model may run Python in a sandbox"))
    remedy = "pip install 'tapebot[code]'"
    if settings.code == "on":
        return CheckResult(
            "code", "bad", _("{missing} is missing", missing=", ".join(missing)), remedy
        )
    return CheckResult("code", "ok", _("the model runs no code: there is no sandbox"))


async def _answer(probe: Probe, seconds: float) -> CheckResult:
    try:
        with anyio.fail_after(seconds):
            text = await probe()
    except TimeoutError:
        return CheckResult(
            "model",
            "bad",
            _("no answer within {seconds} seconds", seconds=f"{seconds:g}"),
            _("Try again later."),
        )
    except TapebotError as exc:
        return CheckResult(
            "model",
            "bad",
            _("the call failed: {exc}", exc=exc),
            _("Check its name, key and address."),
        )
    return CheckResult("model", "ok", _("it answers: {text!r}", text=text.strip()[:60]))


def run_doctor(*, probe: bool, as_json: bool) -> int:
    """Print the results of all checks; return 1 if any is bad."""
    return anyio.run(_check, probe)


async def _check(probe: bool) -> int:
    settings: Settings | SettingsError
    try:
        export_dotenv()
        settings = load_settings()
    except SettingsError as error:
        settings = error

    refused: tuple[str, ...] = ()

    async def answer() -> str:
        from bot.llm.base import ModelRequest, ToolSpec
        from bot.runtime.app import make_model

        assert isinstance(settings, Settings)
        model = make_model(settings)
        try:
            # for the model
            asked = [{"role": "user", "content": "Answer with one word: ready"}]
            # for the model
            tool = ToolSpec("wait", "Wait.", {"type": "object", "properties": {}})
            return (await model.complete(ModelRequest(asked, (tool,)))).content
        finally:
            nonlocal refused
            refused = model.profile.without
            await model.aclose()

    findings = await run_checks(settings, probe=answer if probe else None)
    if refused:
        said = _("its server refuses: {parts}", parts=", ".join(refused))
        findings.append(CheckResult("model", "warn", said, _("Another model may take them.")))
    print(report(findings))
    return exit_code(findings)
