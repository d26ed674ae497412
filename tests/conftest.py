"""Fixtures that every test may use."""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from databases import RUN, drop, end_server, fresh_database
from hypothesis import HealthCheck, settings
from hypothesis.internal.entropy import deterministic_PRNG
from sampling import SAMPLE, left_out

from bot.agent.consolidation.judge_trial import known_claims
from bot.runtime.settings import PREFIX
from testkit.openai_server import ScriptedOpenAI

HERE = Path(__file__).parent

# Whatever the machine's language, the program speaks English unless a test says otherwise.
os.environ["LANG"] = "C.UTF-8"
for _name in ("LC_ALL", "LC_MESSAGES", "TAPEBOT_LANGUAGE"):
    os.environ.pop(_name, None)

# A failed assertion of the contracts then shows its values.
pytest.register_assert_rewrite("bot.testing.channel_contract", "bot.testing.tool_contract")
pytest.register_assert_rewrite("bot.testing.command_contract", "bot.testing.model_contract")

# Hypothesis would import these in the middle of a test. Python 3.11 cannot parse a file while a task's failure is
# logged, which parses a line of it, too: it ends in a SystemError ("AST constructor recursion depth mismatch").
for _module in (
    "hypothesis.internal.conjecture.optimiser",
    "hypothesis.internal.constants_ast",
    "hypothesis.strategies._internal.attrs",
    "hypothesis.strategies._internal.random",
    "hypothesis.strategies._internal.types",
):
    importlib.import_module(_module)

# The same examples each time, however slow the machine is: what is found is found by everybody.
for _profile, _examples in (("day", 50), ("night", 200)):
    settings.register_profile(
        _profile,
        max_examples=_examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
settings.load_profile("day")

# The scripted judge is a right one where it is tried.
ScriptedOpenAI.unsupported = frozenset(
    str(one["claim"]) for one in known_claims() if not one["holds"]
)

# A shell starts what runs in its background without Ctrl-C, and so would every program be that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def anyio_backend() -> str:
    """Tests run on the event loop that the program runs on."""
    return "asyncio"


@pytest.fixture
def url() -> Iterator[str]:
    """The address of a database of the test's own, which is set up and empty."""
    made = fresh_database()
    yield made
    drop(made)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which one is and lives, and no variable that names a setting or a key."""
    for name in list(os.environ):
        if name.upper().startswith(PREFIX) or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pytest_configure(config: pytest.Config) -> None:
    """Say what is run, and make the folder that the processes of a run share."""
    if (seed := config.getoption("--sample")) is not None:
        os.environ[SAMPLE] = seed
    if not hasattr(config, "workerinput"):
        os.environ[RUN] = tempfile.mkdtemp(prefix="tapebot-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End what the processes of a run shared."""
    if not hasattr(config, "workerinput"):
        run = Path(os.environ.pop(RUN))
        end_server(run)
        for pid in run.glob("*.pid"):
            with suppress(ProcessLookupError):
                os.killpg(int(pid.read_text()), signal.SIGKILL)
        shutil.rmtree(run, ignore_errors=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the choice of a sample."""
    parser.addoption(
        "--sample",
        metavar="SEED",
        help="of n slow files, tests of a file, cases or repetitions run about the square root of n, chosen by this seed",
    )


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say which sample is run, so that it can be run again."""
    seed = config.getoption("--sample")
    return None if seed is None else f"a sample of the slow cases: --sample {seed}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Have the processes of a run begin at different files: what one has compiled no other does."""
    mine = getattr(session.config, "workerinput", None)
    if mine is None or [Path(one).resolve() for one in session.config.args] != [HERE]:
        return
    paths = sorted(HERE.rglob("test_*.py"))
    for folder in dict.fromkeys(str(path.parent) for path in paths):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    first = len(paths) * int(mine["workerid"].removeprefix("gw")) // mine["workercount"]
    for path in paths[first:] + paths[:first]:
        # What is wrong with it is told when it is collected.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(path.stem)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs a database, and leave out what is not in the sample."""
    for item in items:
        # What needs a PostgreSQL server is a slow proof: each test of it takes a database of its own.
        if "postgres" in item.nodeid or "/database/" in item.nodeid:
            item.add_marker(pytest.mark.slow)
    # First of the cases of each test, then of the tests of each file, then of the files.
    for families in (_cases_by_test, _tests_by_file, _files):
        if left := left_out(families(items)):
            gone = {
                one.nodeid
                for one in items
                if {one.nodeid, _test_of(one), _file_of(one)} & left and _is_slow(one)
            }
            config.hook.pytest_deselected(items=[one for one in items if one.nodeid in gone])
            items[:] = [one for one in items if one.nodeid not in gone]


def _cases_by_test(items: list[pytest.Item]) -> dict[str, list[str]]:
    """Return the ids of slow cases by what they are sampled with: their marker's family, else their own test."""
    families: defaultdict[str, list[str]] = defaultdict(list)
    for item in items:
        if _is_slow(item):
            marker = item.get_closest_marker("family")
            families[_test_of(item) if marker is None else marker.args[0]].append(item.nodeid)
    return families


def _tests_by_file(items: list[pytest.Item]) -> dict[str, list[str]]:
    """Return the ids of slow tests that belong to no marker's family, by their file."""
    families: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for item in items:
        if _is_slow(item) and not item.get_closest_marker("family"):
            families[_file_of(item)][_test_of(item)] = None
    return {file: list(tests) for file, tests in families.items()}


def _files(items: list[pytest.Item]) -> dict[str, list[str]]:
    """Return the files that hold slow tests, as one family."""
    return {"files": list(dict.fromkeys(_file_of(item) for item in items if _is_slow(item)))}


def _is_slow(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None


def _file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _test_of(item: pytest.Item) -> str:
    """Return the id of a case's test."""
    return item.nodeid.partition("[")[0]


def pytest_collection_finish() -> None:
    """Have the garbage collector pass over what all tests share."""
    # Hypothesis asks the collector who refers to its random numbers. It finds nobody in what is passed over, and
    # warns (Python 3.14, which counts no reference for a variable): so it asks before.
    with deterministic_PRNG():
        gc.collect()
    gc.freeze()
