"""tapebot as a stranger has it: a wheel that is installed from a folder of wheels."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from wheels import write_index

from docs.first_day.wheels import build

_LONGEST = 100

UV = shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv"
"""The path of uv."""


@dataclass(frozen=True)
class Install:
    folder: Path
    wheel: Path
    index: Path

    @property
    def python(self) -> Path:
        return self.folder / "venv" / "bin" / "python"

    def environment(self, home: Path, **variables: str) -> dict[str, str]:
        return {
            "HOME": str(self.folder),
            "PATH": f"{self.folder / 'venv' / 'bin'}:{os.environ['PATH']}",
            "TAPEBOT_HOME": str(home),
            "TZ": "UTC",
            **variables,
        }

    def run(
        self, arguments: str, *, home: Path, stdin: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run ``tapebot`` with arguments, outside the repository."""
        return subprocess.run(
            [str(self.python.with_name("tapebot")), *arguments.split()],
            cwd=self.folder,
            env=self.environment(home, **variables),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_LONGEST,
            check=False,
        )


def install(folder: Path, *others: Path, packages: tuple[str, ...] = ()) -> Install:
    """Build the wheel, and install it without extras into a virtual environment."""
    folder.mkdir(exist_ok=True)
    wheel = build(folder / "dist")
    index = folder / "index"
    write_index(index, [wheel, *others], extra=packages)
    venv = str(folder / "venv")
    offline = ["--quiet", "--offline", "--no-index", "--find-links", str(index), "--python", venv]
    for command in (
        [UV, "venv", "--quiet", "--python", sys.executable, venv],
        [UV, "pip", "install", *offline, str(wheel), *packages],
    ):
        subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "UV_CACHE_DIR": str(folder / "uv")},
            timeout=_LONGEST,
            check=True,
        )
    return Install(folder, wheel, index)
