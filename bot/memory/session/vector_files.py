"""Vectors of messages in flat files, one per tape, which hold no text. Blocking.

Rule 1: a file is disposable. If it is damaged, or of another model, it is removed and built again.
Rule 2: a row that a crash cut short does not count, and the next write overwrites it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bot.core.files import PRIVATE_FILE, list_files, private_directory, replace_file
from bot.llm.embeddings.base import Vector

_HEAD = Struct("<Q")
_MOST_DIMENSIONS = 65_536
_PORTION = 4_096
"""Rows that are compared at once."""

_MANY = 100
"""Messages of a tape that can count as near; others must exceed the similarity of the last one."""

_LEAST_SPREAD = 0.1
"""Least standard deviation assumed, for tapes with few or equal similarities."""

_SCALE = 3.0
"""Standard deviations above the usual similarity that give a nearness of 1."""

_LENGTH_ERROR = 0.01


@dataclass(frozen=True, slots=True)
class VectorRow:
    """A vector with the entry that it belongs to.

    Attributes:
        id: Id of the entry.
        ts: Unix time of the message in seconds; 0 if unknown.
        checksum: Checksum of the text.
        problem: Checksum of the problem; 0 for the general one.
        vector: The vector, of length 1.
    """

    id: int
    ts: float
    checksum: int
    problem: int
    vector: Vector


@dataclass(frozen=True, slots=True)
class VectorMatch:
    """An entry whose vector is near a query's.

    Attributes:
        id: Id of the entry.
        checksum: Checksum of the text that was embedded.
        similarity: Cosine similarity; 1 for the same direction.
        nearness: How far it stands out from the rest of the tape: from 0 to about 1 for the best.
    """

    id: int
    checksum: int
    similarity: float
    nearness: float


class VectorFiles:
    """The vector files of one workspace and one model.

    A file is the number of dimensions and rows in ascending order of ids.

    Args:
        folder: Directory of the files, and of nothing else; created with the first one.
        workspace: Workspace id: sessions of two workspaces may share a name.
        model: Name of the model.
    """

    def __init__(self, folder: Path, workspace: str, model: str) -> None:
        self._folder = folder
        self._workspace = workspace
        self._model = sha256(model.encode()).hexdigest()[:16]

    def remove_stale(self) -> None:
        """Remove the files of other models."""
        for path in list_files(self._folder, "*"):
            if not path.name.startswith(self._model):
                path.unlink(missing_ok=True)

    def ends(self, tape: str) -> tuple[int, int]:
        """Return the ids of the first and the last entry with a vector, once all are sound; else 0."""
        rows = self._read(tape)
        if not len(rows):
            return 0, 0
        with np.errstate(all="ignore"):
            lengths = np.einsum("ij,ij->i", rows["vector"], rows["vector"])
        sound = (np.abs(lengths - 1) < _LENGTH_ERROR).all() and (np.diff(rows["id"]) > 0).all()
        if not sound:
            self.remove(tape)
            return 0, 0
        return int(rows["id"][0]), int(rows["id"][-1])

    def checksums(self, tape: str) -> dict[int, int]:
        """Return the checksums of embedded texts by entry id."""
        rows = self._read(tape)
        return dict(zip(rows["id"].tolist(), rows["checksum"].tolist(), strict=True))

    def add(self, tape: str, rows: Sequence[VectorRow], *, behind: int) -> bool:
        """Append rows by ascending id.

        Return False, with nothing added, if the last row is not ``behind``, such as after another
        process wrote, or if there are vectors of other dimensions, which go.
        """
        table = np.array(
            [(one.id, one.ts, one.checksum, one.problem, one.vector) for one in rows],
            _row_type(len(rows[0].vector)),
        )
        before = self._read(tape)
        if before.dtype != table.dtype and len(before):
            self.remove(tape)
            return False
        if behind != (before["id"][-1] if len(before) else 0):
            return False
        private_directory(self._folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        with os.fdopen(os.open(self._path(tape), flags, PRIVATE_FILE), "wb") as file:
            file.write(_HEAD.pack(len(rows[0].vector)))
            file.truncate(file.seek(before.nbytes, os.SEEK_CUR))
            file.write(table.tobytes())
        return True

    def erase(self, tape: str, ids: Collection[int]) -> None:
        """Write the file anew without the vectors of some entries."""
        rows, path = self._read(tape), self._path(tape)
        if path.exists():
            left = rows[~np.isin(rows["id"], list(ids))]
            replace_file(path, _HEAD.pack(rows["vector"].shape[-1]) + left.tobytes())

    def remove(self, tape: str) -> None:
        """Remove a tape's file if there is one."""
        self._path(tape).unlink(missing_ok=True)

    def nearest(
        self,
        tape: str,
        vector: Vector,
        *,
        limit: int,
        since: float,
        before: float,
        skip: int,
        problem: int | None,
    ) -> list[VectorMatch] | None:
        """Return the entries with the nearest vectors, best first; None if the file is unusable.

        They are from the Unix time ``since`` on, in seconds, have an id below ``before`` and not ``skip``, such as
        the query itself, and one checksum of a problem, unless that is None.
        """
        rows = self._read(tape)
        if not len(rows) or rows.dtype != _row_type(len(vector)):
            return None
        parts = (rows["vector"][at : at + _PORTION] for at in range(0, len(rows), _PORTION))
        own: Vector = np.concatenate([part @ vector for part in parts])
        if not np.isfinite(own).all():
            return None
        counts = rows["id"] != skip
        if problem is not None:
            counts &= rows["problem"] == problem
        rows, own = rows[counts], own[counts]
        fits = np.flatnonzero((rows["ts"] >= since) & (rows["id"] < before))
        own = own[fits]
        best, near = np.argsort(-own, kind="stable")[:limit], nearness(own)
        return [
            VectorMatch(
                int(rows["id"][fits[i]]),
                int(rows["checksum"][fits[i]]),
                float(own[i]),
                float(near[i]),
            )
            for i in best
        ]

    def _read(self, tape: str) -> NDArray[np.void]:
        """Return the whole rows of a tape's file, as they are on the disk; none if it is damaged."""
        path = self._path(tape)
        size = path.stat().st_size if path.exists() else 0
        with path.open("rb") if size > _HEAD.size else BytesIO(_HEAD.pack(1)) as file:
            [dimensions] = _HEAD.unpack(file.read(_HEAD.size))
        row = _row_type(dimensions if 0 < dimensions <= _MOST_DIMENSIONS else 1)
        whole = max(0, size - _HEAD.size) // row.itemsize
        if not whole:
            return np.zeros(0, row)
        return np.memmap(path, row, "r", offset=_HEAD.size, shape=whole)

    def _path(self, tape: str) -> Path:
        name = sha256(f"{self._workspace}\0{tape}".encode("utf-8", "surrogatepass"))
        return self._folder / f"{self._model}-{name.hexdigest()[:32]}"


def _row_type(dimensions: int) -> np.dtype[Any]:
    sums = ("checksum", "<u4"), ("problem", "<u4")
    return np.dtype([("id", "<i8"), ("ts", "<f8"), *sums, ("vector", "<f4", (dimensions,))])


def nearness(similarities: Vector) -> Vector:
    """Return how far each similarity stands out from the usual one on the tape."""
    count = len(similarities)
    if not count:
        return similarities
    # A short tape is treated as if it had more messages, of similarity 0.
    usual = float(similarities.sum()) / max(count, _MANY)
    if count > _MANY:
        usual = max(usual, float(np.partition(similarities, -_MANY)[-_MANY]))
    spread = max(float(similarities.std()), _LEAST_SPREAD)
    vector: Vector = np.maximum(similarities - usual, 0) / (_SCALE * spread)
    return vector
