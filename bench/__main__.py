"""The command ``python -m bench``."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from bench.figures import FIGURES, run
from bench.processes import ROOT
from bench.report import markdown, write_section

_RESULTS = ROOT / "bench" / "results"
_PAGES = {
    "peers": ROOT / "README.md",
    "recall": ROOT / "docs" / "performance.md",
}
"""Pages that show the tables of a figure."""


def main() -> int:
    """Measure what was asked for, print it, and store it as JSON; return 1 where something could not be measured."""
    chosen = _parser().parse_args()
    if chosen.write and (chosen.quick or not _PAGES.keys() & chosen.names):
        _parser().error(f"--write is for the whole of {', '.join(_PAGES)}")
    chosen.results.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {}
    failed = []
    for name in chosen.names or FIGURES:
        began = perf_counter()
        # Beside the results: the system's folder for such may be in memory, which is no disk.
        with TemporaryDirectory(dir=chosen.results) as folder:
            try:
                tables = run(name, Path(folder), quick=chosen.quick)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                print(f"{name}: {error}", file=sys.stderr)
                failed.append(name)
                continue
        results[name] = [table.as_json() for table in tables]
        for table in tables:
            print(f"{table.render()}\n")
        print(f"({name}: {perf_counter() - began:.0f} s)\n", flush=True)
    _store(chosen.results, results, quick=chosen.quick)
    for name in results.keys() & _PAGES if chosen.write else ():
        write_section(_PAGES[name], name, "\n\n".join(map(markdown, results[name])))
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure tapebot, with the machine's own limits beside the figures.",
        epilog="figures: " + "; ".join(f"{name} ({what})" for name, what in FIGURES.items()),
    )
    parser.add_argument("names", nargs="*", metavar="FIGURE", type=_figure)
    parser.add_argument(
        "--results",
        type=Path,
        default=_RESULTS,
        help="folder of the stored figures, on the disk measured",
    )
    parser.add_argument("--quick", action="store_true", help="seconds; the figures are rough")
    parser.add_argument(
        "--write", action="store_true", help="put the tables into the pages that show them"
    )
    return parser


def _figure(name: str) -> str:
    if name not in FIGURES:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(FIGURES)}")
    return name


def _store(folder: Path, results: dict[str, Any], *, quick: bool) -> None:
    now = datetime.now(UTC)
    path = folder / f"{now:%Y%m%dT%H%M%SZ}{'-quick' if quick else ''}.json"
    record = {"at": now.isoformat(timespec="seconds"), "quick": quick, "figures": results}
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"stored in {path}")


if __name__ == "__main__":
    sys.exit(main())
