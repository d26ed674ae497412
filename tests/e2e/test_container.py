"""The image of the Compose file that needs no clone: built, talked to, and asked for its health."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from wheels import write_index

from docs.first_day.wheels import build

COMPOSE = Path(__file__).parents[2] / "deploy" / "compose-one.yaml"
BASE = "localhost/tapebot-test-base"
IMAGE = "localhost/tapebot-test"
SUITE = "bookworm"
"""The Debian whose Python is that of the wheels."""

TOOLS = ("buildah", "mmdebstrap")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.night,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        os.geteuid() != 0 or any(shutil.which(tool) is None for tool in TOOLS),
        reason="needs root, buildah and mmdebstrap",
    ),
]


def service() -> dict[str, object]:
    return yaml.safe_load(COMPOSE.read_text())["services"]["tapebot"]


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Iterator[list[str]]:
    folder = tmp_path_factory.mktemp("store")
    runtime = tmp_path_factory.mktemp("run")
    yield ["buildah", "--root", str(folder), "--runroot", str(runtime), "--storage-driver", "vfs"]
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def container(store, tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("image")
    archive = folder / "base.tar"
    names = "python3,python3-venv,ca-certificates"
    run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={names}", SUITE, str(archive))
    base = run(*store, "from", "scratch")
    run(*store, "add", base, str(archive), "/")
    run(*store, "commit", "--rm", base, BASE)
    write_index(folder / "wheels", [build(folder / "wheel")])
    (folder / "pip.conf").write_text("[global]\nno-index = true\nfind-links = /wheels\n")
    recipe = str(service()["build"]["dockerfile_inline"])
    # Compose reads two dollars as one.
    (folder / "Dockerfile").write_text(recipe.replace("$$", "$"))
    run(
        *store, "bud", "--isolation", "chroot", "--pull-never", "--tag", IMAGE,
        "--build-arg", f"PYTHON={BASE}", "--build-arg", "EXTRAS=",
        "--volume", f"{folder / 'wheels'}:/wheels:ro", "--volume", f"{folder / 'pip.conf'}:/etc/pip.conf:ro",
        str(folder),
    )  # fmt: skip
    return run(*store, "from", "--pull-never", IMAGE)


def run(*command: str, given: str = "") -> str:
    """Run a command; return what it printed, and fail with what it printed if it fails."""
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, (command, done.stdout[-3_000:], done.stderr[-3_000:])
    return done.stdout.strip()


def inside(store, container, data, *command, given="", **variables) -> subprocess.CompletedProcess:
    """Run a command in the container as its user, with a folder as its volume."""
    env = [part for name, value in variables.items() for part in ("--env", f"{name}={value}")]
    return subprocess.run(
        [
            *store, "run", "--isolation", "chroot", *env, "--volume", f"{data}:/data",
            container, "--", *command,
        ],
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )  # fmt: skip


@pytest.fixture
def data(tmp_path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    os.chown(folder, 10001, 10001)
    return folder


def test_it_remembers_over_containers_and_says_whether_it_is_well(store, container, data):
    talk = inside(store, container, data, "tapebot", given="I live in Lisbon.\n")
    assert talk.returncode == 0, talk.stderr
    again = inside(store, container, data, "tapebot", given="Where do I live?\n")
    assert "Lisbon" in again.stdout, again.stdout + again.stderr
    asked = [str(word) for word in service()["healthcheck"]["test"][1:]]
    well = inside(store, container, data, *asked)
    assert well.returncode == 0, well.stdout + well.stderr
    ill = inside(store, container, data, *asked, TAPEBOT_MODEL="openai/gpt-5-mini")
    assert ill.returncode != 0
    assert "bad" in ill.stdout
    assert {owner.stat().st_uid for owner in data.rglob("*")} == {10001}


def test_the_image_runs_as_a_user_without_rights(store, container, data):
    who = inside(store, container, data, "id", "-u")
    assert who.stdout.strip() == "10001"
    touched = inside(store, container, data, "touch", "/opt/tapebot/x")
    assert touched.returncode != 0
