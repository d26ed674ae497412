"""Make the pictures of the README and of the tour from the running program.

``python -m docs.pictures.make`` runs tapebot without a model in a temporary home, types
``LINES`` at its terminal, and writes ``chat.svg``. Then it writes ``SITE_LINES`` in the chat of the site,
opens the site's pages, and writes the pictures of ``SITE``. It needs Chromium: ``make browser``.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pexpect
from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

from testkit.ports import kept_port

HERE = Path(__file__).parent
CHAT, INSPECTOR = HERE / "chat.svg", HERE / "inspector.png"
LINES = (
    "My sister Lena lives in Leipzig.",
    "remember: I'm allergic to peanuts.",
    "Lena has moved to Dresden.",
    "/new",
    "Where does Lena live?",
    "/memory why 1",
)
FACT_PAGE = "/fact?tape=console:local&number=1"
SITE_LINES = ("My brother Paul works in Oslo.", "Where does Paul work?")
SITE = {
    "/": HERE / "site-chat.png",
    FACT_PAGE: INSPECTOR,
    "/memory?tape=console:local": HERE / "memory.png",
    "/timeline?tape=console:local": HERE / "timeline.png",
    "/budget": HERE / "budget.png",
}
"""Pictures of the site, by the page's address."""

_ANSWER = ".chat-row.bot:not(.growing)"
_PROMPT = "you> "
_ANSWERED = re.compile(rf"\r?\n\r?\n{_PROMPT}")  # a prompt below an empty line
_HOME = "/home/ada"  # shown in place of the temporary folder
_SECONDS = 60
_LINK = re.compile(r"http://\S+/enter#\S+")
_FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def terminal(home: Path, web: str = "off") -> Iterator[pexpect.spawn[str]]:
    """Run the program at a terminal within the block.

    Args:
        home: The person's home folder.
        web: Where the site listens.
    """
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(HERE.parents[1]),
        "LANG": "C.UTF-8",
        "TERM": "dumb",  # lines of plain text, and no cursor that moves
        "HOME": str(home),
        "TAPEBOT_MODEL": "offline",
        "TAPEBOT_USER_NAME": "Ada",
        "TAPEBOT_TIMEZONE": "UTC",
        "TAPEBOT_WEB_LISTEN": web,
    }
    child = pexpect.spawn(
        sys.executable,
        ["-m", "bot"],
        cwd=str(home),
        env=environment,
        encoding="utf-8",
        timeout=_SECONDS,
    )
    try:
        yield child
    finally:
        child.close(force=True)


def conversation(home: Path) -> list[str]:
    """Type ``LINES`` at the program's terminal; return the lines that it then shows.

    Raises:
        pexpect.ExceptionPexpect: The program ended early, or did not answer in a minute.
    """
    screen = io.StringIO()
    with terminal(home) as child:
        child.logfile_read = screen
        child.expect(_ANSWERED)
        for line in LINES:
            child.sendline(line)
            child.expect(_ANSWERED)
        child.logfile_read = None
        child.sendeof()
        child.expect(pexpect.EOF)
    text = screen.getvalue().replace("\r", "").replace(str(home), _HOME)
    # A dumb terminal keeps the empty prompt above each answer.
    lines = [line for line in text.split("\n") if line != _PROMPT]
    return lines[:-1] if lines[-1] == "" else lines


def chat_svg(lines: list[str]) -> str:
    """Return a picture of a terminal that shows these lines, with what the person typed in bold."""
    width = max(len(line) for line in lines)
    console = Console(record=True, width=width, file=io.StringIO())
    for line in lines:
        typed = line.startswith(_PROMPT)
        text = Text(line, style="bold" if typed else "")
        if typed:
            text.stylize("green", 0, len(_PROMPT))
        console.print(text, highlight=False)
    svg = console.export_svg(title="make run", unique_id="chat")
    return _FONT_FACE.sub("", svg)  # the picture loads nothing from other hosts


def photograph(home: Path, files: Mapping[str, Path]) -> None:
    """Write screenshots of the site's pages.

    Args:
        home: The home folder of a conversation.
        files: The pictures' files, by the pages' addresses on the site.
    """
    chromium = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _CHROMIUM)), None)
    if chromium is None:
        raise SystemExit("there is no Chromium, nor its path in CHROMIUM: run `make browser`")
    with kept_port() as port, terminal(home, f"127.0.0.1:{port}") as child:
        child.expect(_LINK)
        assert isinstance(child.match, re.Match)
        link = child.match[0]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(
                color_scheme="light",
                viewport={"width": 1000, "height": 700},
                device_scale_factor=1.25,
                locale="en-GB",
                timezone_id="UTC",
            )
            site = link.partition("/enter#")[0]
            page.goto(link)
            page.wait_for_url(f"{site}/")
            for said in SITE_LINES:
                answers = page.locator(_ANSWER).count()
                page.locator("#chat-text").fill(said)
                page.locator("#chat-text").press("Enter")
                page.locator(_ANSWER).nth(answers).wait_for()
            for address, file in files.items():
                if address != "/":
                    page.goto(site + address)
                page.screenshot(path=file, full_page=address == FACT_PAGE)
            browser.close()


def main() -> None:
    """Write all pictures."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        CHAT.write_text(chat_svg(conversation(home)), encoding="utf-8")
        photograph(home, SITE)


if __name__ == "__main__":
    main()
