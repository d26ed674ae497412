"""The benchmark measures the program as it is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.figures import FIGURES

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
@pytest.mark.night
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", sorted(FIGURES))
def test_the_benchmark_measures_every_figure(tmp_path, name):
    """A change of the program that the benchmark cannot follow is seen at once, not at release."""
    done = subprocess.run(
        [sys.executable, "-m", "bench", name, "--quick", "--results", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=1180,
    )
    assert done.returncode == 0, done.stderr

    stored = list(tmp_path.iterdir())
    assert [path.suffix for path in stored] == [".json"], "it leaves nothing but its figures"
    figures = json.loads(stored[0].read_text(encoding="utf-8"))["figures"]
    assert set(figures) == {name}
    for table in figures[name]:
        assert table["title"] in done.stdout
        assert table["rows"]
        assert all(1 < len(row) <= len(table["head"]) for row in table["rows"])
        numbers = [cell for row in table["rows"] for cell in row if isinstance(cell, int | float)]
        assert any(numbers), table
        assert all(number >= 0 for number in numbers), table
