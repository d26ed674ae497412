"""Play the first day of a stranger: install the wheel on a bare Debian, talk, back up, restore, upgrade.

``sudo python -m docs.first_day.play`` needs ``mmdebstrap`` and Debian's packages. It builds the wheel of
this tree and one of a version to come, serves both from a package index on loopback, goes through
``STEPS`` as a person who has nothing but Python, checks what each prints, and writes ``docs/first-day.md``.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from docs.first_day.debian import SUITE, TOOLS, Debian, bare_debian
from docs.first_day.wheels import ROOT, build, tree_of_version

PAGE = ROOT / "docs" / "first-day.md"
NEXT_VERSION = "0.1.1"
NEWS = "### Added\n\n- An example of a newer version: only its number differs.\n"

_WARNINGS = re.compile(r"^(\[notice\]|WARNING: Cache entry).*\n?", re.MULTILINE)
_PASSPHRASE = "TAPEBOT_BACKUP_PASSPHRASE='correct horse battery'"  # noqa: S105 (of an example)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the day.

    Attributes:
        title: What the person does.
        told: What a reader should know; empty for nothing.
        commands: What they type, with what must be printed then, as a regular expression, and the exit code.
        where: ``service`` runs tapebot meanwhile; ``newer`` has the index offer the version to come.
        only_with: A subcommand of tapebot without which the step is left out.
    """

    title: str
    told: str
    commands: tuple[tuple[str, str, int], ...]
    where: str = ""
    only_with: str = ""


STEPS = (
    Step(
        "Install it",
        "A virtual environment keeps it apart from the system. `pipx install tapebot` does both lines at once.",
        (
            ("python3 -m venv tapebot", "", 0),
            (". tapebot/bin/activate", "", 0),
            ("pip install --quiet tapebot", "", 0),
            ("tapebot --version", r"^\d+\.\d+\.\d+$", 0),
        ),
    ),
    Step(
        "Talk to it",
        "No key, no account, no network: without a model it is a notebook. Without `printf` it waits for what you type.",
        (
            (
                "printf 'I live in Lisbon.\\nremember: I am allergic to peanuts.\\nWhere do I live?\\n' | tapebot",
                r"Lisbon[^\n]*\n?\Z",
                0,
            ),
        ),
    ),
    Step(
        "Set it up",
        "At a terminal, `tapebot setup` asks for model, channels, site and backups, and tries each answer.",
        (("printf 'Europe/Lisbon\\n' | tapebot setup timezone", "Lisbon", 0),),
        only_with="setup",
    ),
    Step("Check it", "", (("tapebot doctor", r"Nothing bad", 0),)),
    Step(
        "Keep it running",
        "This bare machine has no systemd, so tapebot says what to do. Here it is started by hand, and runs on.",
        (("tapebot service install", "no systemd", 2), ("tapebot run &", "", 0)),
        where="service",
    ),
    Step(
        "Back it up",
        "Encrypted backups need an extra. tapebot names the command that adds it.",
        (
            (f"{_PASSPHRASE} tapebot backup --to backups", r"tapebot\[backup\]", 2),
            ("pip install --quiet 'tapebot[backup]'", "", 0),
            (f"{_PASSPHRASE} tapebot backup --to backups", "unpacked and checked", 0),
        ),
        where="service",
    ),
    Step(
        "Restore it elsewhere",
        "Another home stands for another machine.",
        (
            (
                f"TAPEBOT_HOME=elsewhere {_PASSPHRASE} tapebot restore backups/tapebot-*",
                "restored",
                0,
            ),
            ("printf 'Where do I live?\\n' | TAPEBOT_HOME=elsewhere tapebot", "Lisbon", 0),
        ),
    ),
    Step(
        "Upgrade",
        "The same memory answers.",
        (
            ("pip install --quiet --upgrade tapebot", "", 0),
            ("tapebot --version", re.escape(NEXT_VERSION), 0),
            ("tapebot tape verify", "no problems", 0),
            ("printf 'Where do I live?\\nWhat am I allergic to?\\n' | tapebot", "peanuts", 0),
        ),
        where="newer",
    ),
)


@dataclass
class Day:
    """What happened.

    Attributes:
        debian: Where.
        newer: The wheel of the version to come.
        parts: The page's sections so far.
        seconds: How long each step took, by its title.
    """

    debian: Debian
    newer: Path
    parts: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    _service: subprocess.Popen[str] | None = None

    def play(self, step: Step) -> None:
        """Go through a step; exit if it prints something else than it must."""
        if step.only_with and self.debian.run(f"tapebot {step.only_with} --help").returncode:
            return
        if step.where == "newer":
            self.debian.add_wheel(self.newer)
        if step.where != "service":
            self.stop_service()
        began = time.monotonic()
        lines = [line for command in step.commands for line in self._type(*command)]
        self.seconds[step.title] = time.monotonic() - began
        block = "```console\n" + "\n".join(lines) + "\n```"
        self.parts.append("\n\n".join(filter(None, (f"## {step.title}", step.told, block))))

    def _type(self, command: str, expected: str, code: int) -> Iterator[str]:
        yield f"$ {command}"
        if command.endswith("&"):
            self._service = self.debian.start(command.removesuffix(" &"))
            return
        done = self.debian.run(command)
        if done.returncode != code or not re.search(expected, done.stdout):
            sys.exit(f"$ {command}\n{done.stdout}\nexit code {done.returncode}, not {code}")
        printed = _WARNINGS.sub("", done.stdout).rstrip()
        yield from printed.splitlines()

    def stop_service(self) -> None:
        """End the program that runs on, as a service is ended."""
        if self._service is not None:
            self._service.terminate()
            self._service.communicate(timeout=60)
            self._service = None

    def page(self, python: str) -> str:
        """Return what the day looked like, as a page of the documentation."""
        rows = [f"| {title} | {seconds:.1f} |" for title, seconds in self.seconds.items()]
        return "\n\n".join(
            (
                "# The first day",
                "From nothing to an assistant that was backed up, restored and upgraded, on a Debian that has "
                f"Python {python} and nothing else. `make first-day` plays it anew, checks what is printed, and "
                "writes this page. The package index is a folder of wheels on the same machine, and the newer "
                "version differs from this one by its number alone.",
                "| step | seconds |\n|---|---|\n" + "\n".join(rows),
                *self.parts,
            )
        )


def main() -> None:
    """Play the day, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--to", type=Path, default=PAGE, help="the page; default: docs/first-day.md"
    )
    parser.add_argument("--debian", type=Path, metavar="TAR", help="such a Debian, made before")
    chosen = parser.parse_args()
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        sys.exit(f"this needs {', '.join(missing)}")
    with tempfile.TemporaryDirectory(prefix="first-day-") as name:
        folder = Path(name)
        now = build(folder / "now")
        newer = build(folder / "newer", tree=tree_of_version(folder / "next", NEXT_VERSION, NEWS))
        with bare_debian(folder, chosen.debian) as debian:
            debian.fetch_needed(now, "backup")
            with debian.package_index():
                day = Day(debian, newer)
                try:
                    for step in STEPS:
                        day.play(step)
                finally:
                    day.stop_service()
                python = debian.run(
                    "python3 -c 'import platform; print(platform.python_version())'"
                )
                page = day.page(python.stdout.strip())
    chosen.to.write_text(page.rstrip() + "\n", encoding="utf-8")
    print(f"wrote {chosen.to}: {sum(day.seconds.values()):.0f} seconds on Debian {SUITE}")  # noqa: T201


if __name__ == "__main__":
    main()
