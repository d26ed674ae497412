"""``tapebot doctor``: what is right and wrong here, and what to do about it.

Nothing is written but a probe file in the home folder, removed at once; nothing is called over the
network unless a probe is given; no secret is shown.
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

from bot.bus.access.roster import Roster
from bot.cli.doctor_channels import channel_findings
from bot.cli.doctor_database import database_findings
from bot.cli.doctor_tapes import store_finding
from bot.cli.finding import Finding, Level
from bot.core.errors import SettingsError, TapebotError
from bot.core.telemetry.redaction import Redactor
from bot.runtime.settings import Settings

Probe = Callable[[], Awaitable[str]]

_LITTLE_SPACE, _NO_SPACE = 500_000_000, 50_000_000  # bytes
_LARGE_BOOTSTRAP = 32_000  # bytes; it is part of every prompt
_BOOTSTRAP = ("AGENTS.md", "SOUL.md", "USER.md")
_FILES_LOOKED_AT = 10_000
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


async def examine(
    settings: Settings | SettingsError, *, probe: Probe | None = None
) -> list[Finding]:
    """Look at everything that can be looked at from outside the running program.

    Args:
        settings: The settings, or why they could not be read; then the rest needs them too.
        probe: Makes one small call of the model and returns its answer.
    """
    findings = [Finding("python", "ok", platform.python_version()), _terminal()]
    if isinstance(settings, SettingsError):
        lines = str(settings).splitlines()
        return [*(Finding("settings", "bad", line, "Correct it.") for line in lines), *findings]
    findings.insert(0, Finding("settings", "ok", "all known and valid"))
    findings += await anyio.to_thread.run_sync(lambda: list(_on_disk(settings)))
    shared: Roster | TapebotError | None = None
    if settings.database_url is not None:
        found, shared = await database_findings(settings)
        findings += found
    elif settings.tape_store != "file":
        findings.append(await store_finding(settings, ask=probe is not None))
    findings += _models(settings)
    if probe is not None:
        findings.append(await _answer(probe, settings.model_timeout))
    findings.append(Finding("time", "ok", f"times are shown in {settings.timezone}"))
    asks = probe is not None
    findings += await anyio.to_thread.run_sync(
        lambda: list(channel_findings(settings, ask=asks, roster=shared))
    )
    redact = Redactor(settings.secrets())
    return [replace(each, text=redact(each.text), remedy=redact(each.remedy)) for each in findings]


def report(findings: list[Finding]) -> str:
    """Return the findings as text for a terminal, the verdict last."""
    lines = []
    for each in findings:
        lines.append(f"{each.level:<5}{each.area:<11}{each.text}")
        if each.remedy:
            lines.append(f"{'':<16}-> {each.remedy}")
    bad = sum(each.level == "bad" for each in findings)
    warnings = sum(each.level == "warn" for each in findings)
    lines.append(f"{bad or 'Nothing'} bad, {warnings or 'no'} warning{'s' * (warnings != 1)}.")
    return "\n".join(lines)


def exit_code(findings: list[Finding]) -> int:
    """Return 1 where something is bad, else 0."""
    return int(any(each.level == "bad" for each in findings))


def _terminal() -> Finding:
    encoding = (getattr(sys.stdout, "encoding", None) or "none").lower()
    if encoding.replace("-", "") != "utf8":
        remedy = "Set PYTHONUTF8=1, or a locale such as C.UTF-8."
        return Finding("terminal", "warn", f"its encoding is {encoding}", remedy)
    attached = sys.stdin is not None and sys.stdin.isatty()
    return Finding("terminal", "ok", "yes" if attached else "none; lines are read from a pipe")


def _on_disk(settings: Settings) -> Iterator[Finding]:
    home = settings.home
    yield from _private(Path(".env"), ".env", 0o600)
    if settings.config is not None:
        yield from _private(settings.config, "the TOML file", 0o600)
    try:
        is_folder = stat.S_ISDIR(home.stat().st_mode)
    except FileNotFoundError:
        yield _can_be_made(home)
    except OSError as exc:
        remedy = "Set TAPEBOT_HOME to a folder of yours."
        yield Finding("home", "bad", f"{home} cannot be reached: {exc.strerror}", remedy)
    else:
        if is_folder:
            yield _writable(home)
            yield from _modes(home)
            if settings.tape_store == "file" and settings.database_url is None:
                yield _lock(home / "tapes")
        else:
            yield Finding("home", "bad", f"{home} is a file", "Set TAPEBOT_HOME to a folder.")
    yield _space(_nearest(home))
    yield from _workspace(settings)


def _nearest(path: Path) -> Path:
    """Return the path or its nearest parent that exists."""
    return next(each for each in (path, *path.parents) if os.access(each, os.F_OK))


def _can_be_made(home: Path) -> Finding:
    parent = _nearest(home)
    if parent.is_dir() and os.access(parent, os.W_OK | os.X_OK):
        return Finding("home", "ok", f"{home} will be made at the first start")
    remedy = "Set TAPEBOT_HOME to a folder of yours."
    return Finding("home", "bad", f"{home} cannot be made in {parent}", remedy)


def _writable(home: Path) -> Finding:
    try:
        with tempfile.NamedTemporaryFile(dir=home, prefix=".doctor-") as file:
            file.write(b"tapebot")
            file.flush()
            os.fsync(file.fileno())
    except OSError as exc:
        remedy = "Make the folder writable for this user, or free space."
        return Finding("home", "bad", f"{home} takes no durable write: {exc.strerror}", remedy)
    return Finding("home", "ok", f"{home} is writable, and writes reach the disk")


def _modes(home: Path) -> Iterator[Finding]:
    yield from _private(home, "the home folder", 0o700)
    inside = islice(home.rglob("*"), _FILES_LOOKED_AT)
    open_files = [path for path in inside if not path.is_symlink() and _is_open(path)]
    # Whoever cannot enter the home folder cannot reach what is in it.
    if open_files and _is_open(home):
        text = f"others can open what is in it, e.g. {open_files[0]}"
        yield Finding("home", "warn", text, f"chmod -R go-rwx '{home}'")


def _is_open(path: Path) -> bool:
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
    except FileNotFoundError:  # a running tapebot renames files
        return False


def _private(path: Path, what: str, mode: int) -> Iterator[Finding]:
    if path.exists() and _is_open(path):
        found = stat.S_IMODE(path.stat().st_mode)
        text = f"others can open {what} (mode {found:04o})"
        yield Finding("home", "warn", text, f"chmod {mode:o} '{path}'")


def _space(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    text = f"{free / 1e9:.1f} GB free"
    remedy = f"Free some space on the disk of {folder}."
    if free < _NO_SPACE:
        return Finding("disk", "bad", text, remedy)
    return (
        Finding("disk", "warn", text, remedy)
        if free < _LITTLE_SPACE
        else Finding("disk", "ok", text)
    )


def _lock(tapes: Path) -> Finding:
    try:
        # Opened to read and locked with others for an instant: a holder's own lock is not touched.
        with (tapes / ".lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return Finding("tapes", "ok", f"in use by a running tapebot ({_owner(tapes)})")
    except FileNotFoundError:
        return Finding("tapes", "ok", "none yet")
    except OSError as exc:
        remedy = f"Give the folder to the user that runs tapebot: {tapes}"
        return Finding("tapes", "bad", f"the lock cannot be looked at: {exc.strerror}", remedy)
    return Finding("tapes", "ok", "no tapebot is running on them")


def _owner(tapes: Path) -> str:
    try:
        pid = (tapes / ".owner").read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        pid = ""
    return f"process {pid}" if pid.isdigit() else "its process is not known"


def _workspace(settings: Settings) -> Iterator[Finding]:
    folder = settings.workspace_folder
    if settings.workspace is not None and not os.access(folder, os.R_OK | os.X_OK):
        remedy = "Make the folder, or correct TAPEBOT_WORKSPACE."
        yield Finding("workspace", "bad", f"{folder} cannot be opened", remedy)
        return
    sizes = []
    for name in _BOOTSTRAP:
        try:
            size = len((folder / name).read_text(encoding="utf-8").encode())
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as exc:
            yield Finding("workspace", "bad", f"{name} cannot be read: {exc}", "Save it as UTF-8.")
            continue
        sizes.append(f"{name} {size} bytes")
        if size > _LARGE_BOOTSTRAP:
            text = f"{name} has {size} bytes, and every prompt repeats them"
            yield Finding("workspace", "warn", text, "Shorten it.")
    yield Finding("workspace", "ok", ", ".join(sizes) or f"no bootstrap files in {folder}")


def _models(settings: Settings) -> Iterator[Finding]:
    main = settings.model or "offline"
    yield _model(main, settings)
    for name in settings.fallback_models:
        yield _model(name, settings, "fallback ")
    if settings.judge_model not in (None, "none", "offline"):
        yield _model(settings.judge_model, settings, "judge ")


def _model(name: str, settings: Settings, role: str = "") -> Finding:
    found = _usable(name, settings)
    text = f"{role}{name}: {found.text}"
    level: Level = "warn" if role and found.level == "bad" else found.level
    return replace(found, text=text, level=level)


def _usable(name: str, settings: Settings) -> Finding:
    if name == "offline":
        return Finding("model", "ok", "the offline responder; TAPEBOT_MODEL sets a language model")
    if name.startswith("gguf:"):
        return _gguf(Path(name.removeprefix("gguf:")))
    if importlib.util.find_spec("litellm") is None:
        return Finding("model", "bad", "litellm is missing", "pip install 'tapebot[models]'")
    return _key(_provider(name), settings)


def _gguf(path: Path) -> Finding:
    if importlib.util.find_spec("xllamacpp") is None:
        return Finding("model", "bad", "xllamacpp is missing", "pip install 'tapebot[local]'")
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as exc:
        remedy = "Correct the path in TAPEBOT_MODEL."
        return Finding("model", "bad", f"cannot be read: {exc.strerror}", remedy)
    if magic != b"GGUF":
        return Finding("model", "bad", "is not a GGUF file", "Get the model in GGUF format.")
    return Finding("model", "ok", f"{path.stat().st_size / 1e6:.0f} MB, run in this process")


def _provider(name: str) -> str:
    provider, slash, _ = name.partition("/")
    if slash:
        return provider
    return next((known for start, known in _BARE_NAMES.items() if name.startswith(start)), "")


def _key(provider: str, settings: Settings) -> Finding:
    names = _KEYS.get(provider, ())
    if provider in _NO_KEY:
        return Finding("model", "ok", f"{provider} needs no key")
    main = _provider(settings.model or "")
    if settings.model_api_key is not None and provider == main:
        return Finding("model", "ok", "its key is in TAPEBOT_MODEL_API_KEY")
    if held := next((name for name in names if os.environ.get(name)), None):
        return Finding("model", "ok", f"its key is in {held}")
    if not names:
        return Finding("model", "ok", "whether it needs a key is not known here")
    remedy = f"Set {names[0]}, or TAPEBOT_MODEL_API_KEY for the main model."
    own_address = settings.model_api_base is not None and provider == main
    return Finding("model", "warn" if own_address else "bad", "it has no key", remedy)


async def _answer(probe: Probe, seconds: float) -> Finding:
    try:
        with anyio.fail_after(seconds):
            text = await probe()
    except TimeoutError:
        return Finding("model", "bad", f"no answer within {seconds:g} seconds", "Try again later.")
    except TapebotError as exc:
        return Finding(
            "model", "bad", f"the call failed: {exc}", "Check its name, key and address."
        )
    return Finding("model", "ok", f"it answers: {text.strip()[:60]!r}")
