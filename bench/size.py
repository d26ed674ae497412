"""Count the Python lines of the program by package: ``python -m bench.size [--check]``.

``[tool.tapebot.size]`` of ``pyproject.toml`` holds the most lines that all packages may have together,
and what the design gives each. ``--check`` prints nothing unless there are more.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main() -> int:
    """Print the table, or only the sum where there are more lines than there may be; then return 1."""
    size = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["tapebot"]["size"]
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py"]
    listed = subprocess.check_output(command, cwd=ROOT, text=True).split("\0")
    lines, files = Counter[str](), Counter[str]()
    for path in map(Path, filter(None, listed)):
        if not (ROOT / path).is_file():
            continue
        top = path.parts[0]
        name = "/".join(path.parts[:2]) if top == "bot" and len(path.parts) > 2 else top
        lines[name] += (ROOT / path).read_bytes().count(b"\n")
        files[name] += 1
    held = {name for name in lines if name.split("/")[0] in size["packages"]}
    total = sum(lines[name] for name in held)
    if "--check" not in sys.argv:
        print(f"{'':24}{'lines':>8}{'files':>7}{'design':>8}")
        for name in [*sorted(held), "", *sorted(lines.keys() - held)]:
            planned = size["design"].get(name, "")
            print(f"{name:24}{lines[name]:8}{files[name]:7}{planned:>8}" if name else "")
    verdict = f"{'/'.join(size['packages'])}: {total} lines of Python, of at most {size['most']}"
    print(verdict, file=sys.stderr if total > size["most"] else sys.stdout)
    return int(total > size["most"])


if __name__ == "__main__":
    sys.exit(main())
