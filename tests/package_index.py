"""A package index on this machine, as pip, pipx and uv ask one: pages in JSON (PEP 691) or HTML (PEP 503)."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_JSON = "application/vnd.pypi.simple.v1+json"
_HTML = "text/html"
_BYTES = "application/octet-stream"
_METADATA = ".metadata"
"""What a wheel says of itself lies beside it (PEP 658), so that nobody reads into it."""


@contextmanager
def serving(folder: Path, *, only_html: bool = False) -> Iterator[str]:
    """Serve a folder of wheels and sdists; yield the index's address. What is added to it later is served, too."""
    handler = partial(_Handler, folder, only_html=only_html)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/simple"
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    """Answers for the list of projects, for a project's files, and for a file."""

    def __init__(self, folder: Path, *args: object, only_html: bool) -> None:
        self._folder = folder
        self._only_html = only_html
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        page = re.fullmatch(r"/simple/(?:([a-z0-9-]+)/)?", self.path)
        path = self._folder / self.path.removeprefix("/files/").removesuffix(_METADATA)
        if page is None and path in self._files():
            described = self.path.endswith(_METADATA)
            self._send(_BYTES, _metadata(path) if described else path.read_bytes())
        elif page is not None and page[1] is None:
            self._list({_project(one) for one in self._files()})
        elif page is not None and (files := [f for f in self._files() if _project(f) == page[1]]):
            self._list_files(page[1], files)
        else:
            self.send_error(404)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _files(self) -> list[Path]:
        return sorted(one for one in self._folder.iterdir() if one.is_file())

    def _list(self, projects: set[str]) -> None:
        names = sorted(projects)
        self._send_page(
            {"projects": [{"name": one} for one in names]},
            [f'<a href="/simple/{one}/">{one}</a>' for one in names],
        )

    def _list_files(self, project: str, files: list[Path]) -> None:
        found = [
            {
                "filename": file.name,
                "url": f"/files/{file.name}",
                "hashes": {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()},
                "core-metadata": file.suffix == ".whl",
            }
            for file in files
        ]
        links = [
            f'<a href="{one["url"]}#sha256={one["hashes"]["sha256"]}">{one["filename"]}</a>'
            for one in found
        ]
        self._send_page({"name": project, "files": found}, links)

    def _send_page(self, content: dict[str, object], links: list[str]) -> None:
        if _JSON in self.headers.get("Accept", "") and not self._only_html:
            text, kind = json.dumps({"meta": {"api-version": "1.0"}, **content}), _JSON
        else:
            text, kind = f"<!DOCTYPE html><html><body>{'<br>'.join(links)}</body></html>", _HTML
        self._send(kind, text.encode())

    def _send(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        with suppress(ConnectionError):  # somebody may want no more of it
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)


def _project(file: Path) -> str:
    """Return the normalised name of the project whose file this is."""
    name = file.name.partition("-")[0] if file.suffix == ".whl" else file.name.rpartition("-")[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def _metadata(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as opened:
        (name,) = [one for one in opened.namelist() if one.endswith(".dist-info/METADATA")]
        return opened.read(name)
