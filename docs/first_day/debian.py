"""A bare Debian with nothing but Python, in a folder: ``mmdebstrap`` makes it, ``chroot`` runs in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SUITE = "trixie"
PERSON = "ada"
HOME = f"/home/{PERSON}"
PACKAGES = ("python3", "python3-venv")
TOOLS = ("mmdebstrap", "chroot", "mount", "umount")

_CHROOT = shutil.which("chroot") or "/usr/sbin/chroot"
_INDEX = "/srv/index"
_PORT = 8060
_SECONDS = 600
_CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"


class Debian:
    """A Debian in a folder, with one person.

    Args:
        root: Its root folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(
        self, command: str, *, user: str = PERSON, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of the shell in the person's home; return what it printed, errors among it."""
        return subprocess.run(  # noqa: S603
            self._inside(command, user),
            env=self._environment(user) | dict(variables or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS,
            check=False,
        )

    def start(self, command: str, *, user: str = PERSON) -> subprocess.Popen[str]:
        """Start a program that runs on; its input is empty, as a service's is."""
        return subprocess.Popen(  # noqa: S603
            self._inside(f"exec {command}", user),
            env=self._environment(user),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def add_wheel(self, wheel: Path) -> None:
        """Put a wheel into the package index."""
        project = wheel.name.partition("-")[0].replace("_", "-").lower()
        folder = self.root / _INDEX[1:] / "simple" / project
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(wheel, folder)

    def fetch_needed(self, wheel: Path, extras: str) -> None:
        """Download what a wheel needs into the package index, with the pip and for the Python in here."""
        shutil.copy(wheel, self.root / "tmp")
        done = self.run(
            "python3 -m venv /tmp/pip && /tmp/pip/bin/pip --quiet download --dest /tmp/wheels "
            f"'/tmp/{wheel.name}[{extras}]'",
            user="root",
            variables={name: os.environ[name] for name in _NETWORK if name in os.environ},
        )
        if done.returncode:
            sys.exit(f"what the wheel needs cannot be downloaded: {done.stdout[-2_000:]}")
        for one in (self.root / "tmp" / "wheels").iterdir():
            self.add_wheel(one)
        for name in ("pip", "wheels"):
            shutil.rmtree(self.root / "tmp" / name)
        (self.root / "tmp" / wheel.name).unlink()

    @contextmanager
    def package_index(self) -> Iterator[None]:
        """Serve the package index on this machine's loopback; pip in here knows no other."""
        config = self.root / "etc" / "pip.conf"
        config.write_text(f"[global]\nindex-url = http://127.0.0.1:{_PORT}/simple\n")
        server = self.start(
            f"python3 -m http.server --bind 127.0.0.1 --directory {_INDEX} {_PORT}", user="root"
        )
        try:
            wait_for = f"import socket; socket.create_connection(('127.0.0.1', {_PORT})).close()"
            for _ in range(100):
                if self.run(f'python3 -c "{wait_for}"').returncode == 0:
                    break
                time.sleep(0.1)
            yield
        finally:
            server.kill()
            server.communicate()

    def _inside(self, command: str, user: str) -> list[str]:
        home = HOME if user == PERSON else "/root"
        spec = f"--userspec={user}:{user}"
        return [_CHROOT, spec, str(self.root), "/bin/sh", "-c", f"cd {home} && {command}"]

    def _environment(self, user: str) -> dict[str, str]:
        home = HOME if user == PERSON else "/root"
        path = "/usr/bin:/bin"
        if user == PERSON:
            path = f"{HOME}/tapebot/bin:{path}"
        return {"HOME": home, "USER": user, "PATH": path, "LANG": "C.UTF-8"}


_NETWORK = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "http_proxy", "https_proxy", "no_proxy")


@contextmanager
def bare_debian(folder: Path, archive: Path | None) -> Iterator[Debian]:
    """Make a Debian; it is removed at the end.

    Args:
        folder: An empty folder.
        archive: A ``.tar`` that ``mmdebstrap`` made of such a Debian; None makes one now.
    """
    root = folder / "debian"
    root.mkdir()
    if archive is None:
        archive = folder / "debian.tar"
        names = ",".join(PACKAGES)
        command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={names}", SUITE]
        subprocess.run([*command, str(archive)], check=True, timeout=_SECONDS)  # noqa: S603
    with tarfile.open(archive) as packed:
        packed.extractall(root, filter="fully_trusted")  # noqa: S202 (made by mmdebstrap)
    debian = Debian(root)
    for name in ("etc/resolv.conf", _CERTIFICATES):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(f"/{name}", root / name)
    subprocess.run(["mount", "-t", "proc", "proc", str(root / "proc")], check=True)  # noqa: S603, S607
    try:
        debian.run(f"/usr/sbin/useradd --create-home {PERSON}", user="root")
        yield debian
    finally:
        subprocess.run(["umount", str(root / "proc")], check=True)  # noqa: S603, S607
        shutil.rmtree(root)
