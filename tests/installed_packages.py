"""Packages with plug-ins, as ``pip`` leaves them: a module, its metadata and its entry points."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(folder: Path, package: str, code: str, plugins: Mapping[str, Mapping[str, str]]) -> str:
    module = package.replace("-", "_")
    (folder / f"{module}.py").write_text(code)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = []
    for kind, named in plugins.items():
        lines += [f"[tapebot.{kind}]", *(f"{name} = {module}:{it}" for name, it in named.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return module
