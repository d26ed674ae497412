"""``tapebot setup --web``: the setup's pages, before anybody can log in."""

from __future__ import annotations

from urllib.parse import urlsplit

import anyio

from bot.core.i18n import _
from bot.inspector.single_visit import serve_visit
from bot.runtime.settings import Settings, load_settings
from bot.runtime.setup.next_steps import next_steps
from bot.runtime.setup.pages import setup_router
from bot.runtime.setup.setup import Setup


def serve_setup(settings: Settings) -> int:
    """Print a link, and serve the setup until it is finished.

    Returns:
        0, or 130 after Ctrl-C.
    """

    async def serve() -> None:
        await serve_visit(
            lambda visit: setup_router(settings, visit.guard, ends=True), "/setup", _print_link
        )

    try:
        anyio.run(serve)
    except KeyboardInterrupt:
        print("\n" + _("Stopped. What was saved stays; `tapebot setup` goes on."))
        return 130
    print(_("What next:"))
    for line in anyio.run(next_steps, Setup(load_settings(home=settings.home))):
        print(f"- {line}")
    return 0


def _print_link(link: str) -> None:
    port = urlsplit(link).port
    print(_("Open this link in a browser on this machine. It works once:"))
    print(f"  {link}")
    print(_("If your browser is on another machine, run this there first:"))
    print(f"  ssh -L {port}:127.0.0.1:{port} USER@HOST")  # words for programs
    print(_("Ctrl-C ends it."), flush=True)
