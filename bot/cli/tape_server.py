"""``tapebot tape-server``: serve tapes over HTTP, and manage its access tokens."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import anyio

from bot.cli.tape import printable
from bot.core.errors import SettingsError
from bot.core.i18n import _
from bot.core.telemetry.logging import configure_logging
from bot.runtime.app.tape_stores import open_tape_store
from bot.runtime.settings import Settings
from bot.tape.http_protocol import TokenScope
from bot.tape.server.tokens import TOKEN_FILE, TokenStore

logger = logging.getLogger(__name__)


def run_tape_server(settings: Settings) -> int:
    """Serve the configured store until a signal.

    Raises:
        SettingsError: There is no token, the port is taken, a package is missing, or the store is
            itself a tape server.
        TapeLocked: Another process has the tapes.
    """
    tokens = TokenStore(_path(settings))
    if not tokens.list():
        raise SettingsError(
            _(
                "the tape server has no token, so nobody can use it. Create one: tapebot tape-server "
                "token add NAME --scope append"
            )
        )
    shared = settings.database_url is not None
    if not shared and settings.tape_store.startswith(("http://", "https://")):
        raise SettingsError(
            _(
                "TAPEBOT_TAPE_STORE: a tape server serves its own tapes; unset the address of "
                "another server"
            )
        )
    try:
        from bot.tape.server.server import bind_socket, serve_store
    except ModuleNotFoundError as error:
        raise SettingsError(
            _("the tape server needs {name}: pip install 'tapebot[tape-server]'", name=error.name)
        ) from error

    async def serve() -> None:
        in_files = settings.tape_store == "file" and not shared
        async with open_tape_store(settings) as store:
            await serve_store(
                store,
                tokens,
                bound,
                most=settings.tape_server_max_mb * 1_000_000,
                folder=settings.home / "tapes" if in_files else None,
                ready=_say,
            )

    stop = configure_logging(settings.home, settings.log_level, settings.secrets())
    try:
        with bind_socket(settings.tape_server_listen) as bound:
            anyio.run(serve)
    finally:
        stop()
    return 0


def _say(address: str) -> None:
    logger.info("the tape server listens on %s", address)
    print(_("tape server on {address} (Ctrl-C stops it)", address=address), flush=True)


def add_token(settings: Settings, name: str, scope: TokenScope, tapes: Sequence[str]) -> int:
    """Create a token, for all tapes if none are named, and print it; it cannot be shown again.

    Raises:
        SettingsError: The name is taken, or the file cannot be used.
    """
    print(TokenStore(_path(settings)).add(name, scope, tapes or ["*"]))
    return 0


def list_tokens(settings: Settings) -> int:
    """Print the tokens' names, scopes and patterns.

    Raises:
        SettingsError: The file cannot be read.
    """
    for grant in TokenStore(_path(settings)).list():
        print(printable(f"{grant.name}\t{grant.scope}\t{' '.join(grant.tapes)}"))
    return 0


def remove_token(settings: Settings, name: str) -> int:
    """Revoke a token, at once also for a running server.

    Raises:
        SettingsError: There is none of this name, or the file cannot be used.
    """
    if not TokenStore(_path(settings)).remove(name):
        raise SettingsError(
            _(
                "there is no token {name}; tapebot tape-server token list shows the tokens",
                name=name,
            )
        )
    return 0


def _path(settings: Settings) -> Path:
    return settings.tape_server_tokens or settings.home / TOKEN_FILE
