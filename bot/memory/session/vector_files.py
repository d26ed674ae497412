"""Vectors of messages in flat files, one per tape. Blocking.

A file has a head (magic number, hash of the model's name) and rows of equal size in ascending order
of entry ids: id, time, checksums of text and problem, and the vector. A row without a vector is for
an entry that was erased, or that the model rejects. Files contain no text, and file names are
hashes.

Rule 1: a file is disposable. If damaged, or of another model, it is removed and built again.
Rule 2: a row that a crash cut short does not count, and the next write overwrites it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from bot.core.files import PRIVATE_FILE, list_files, private_directory
from bot.llm.embeddings.base import Vector

_MAGIC = b"tapevec1"
_HEAD = struct.Struct("<8sII32s")
_SUFFIX = ".vectors"

_PORTION = 4_096
"""Rows read at once."""

_MANY = 100
"""Messages of a tape that can count as near; others must exceed the similarity of the last one."""

_LEAST_SPREAD = 0.1
"""Least standard deviation assumed, for tapes with few or equal similarities."""

_SCALE = 3.0
"""Standard deviations above the usual similarity that give a nearness of 1."""

_LENGTH_ERROR = 0.01
_ERASED = 0
"""Checksum of a row whose entry was erased."""


@dataclass(frozen=True, slots=True)
class VectorRow:
    """A vector with the entry that it belongs to.

    Attributes:
        id: Id of the entry.
        ts: Unix time of the message in seconds; 0 if unknown.
        checksum: Checksum of the text.
        problem: Checksum of the problem; 0 for the general one.
        vector: The vector; None if the model rejects the text.
    """

    id: int
    ts: float
    checksum: int
    problem: int
    vector: Vector | None


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

    Args:
        folder: Directory of the files; created with the first one.
        workspace: Workspace id, part of every file name: sessions of two workspaces may share a
            name.
        model: Name of the model.
    """

    def __init__(self, folder: Path, workspace: str, model: str) -> None:
        self._folder = folder
        self._workspace = workspace
        self._model = sha256(model.encode()).digest()

    def remove_stale(self) -> None:
        """Remove damaged files and those of other models."""
        for path in list_files(self._folder, f"*{_SUFFIX}"):
            with _removed_if_damaged(path), path.open("rb") as file:
                self._dimensions(file)

    def ends(self, tape: str) -> tuple[int, int]:
        """Validate a whole file and return the ids of its first and last row; 0 if none."""
        path, first, last = self._path(tape), 0, 0
        if not path.exists():
            return 0, 0
        with _removed_if_damaged(path), path.open("rb") as file:
            for rows in _Rows(file, self._dimensions(file)).portions():
                if not _sound(rows, last):
                    raise _DamagedError
                first, last = first or int(rows["id"][0]), int(rows["id"][-1])
            return first, last
        return 0, 0

    def checksums(self, tape: str) -> dict[int, int]:
        """Return the checksums of embedded texts by entry id."""
        path, found = self._path(tape), dict[int, int]()
        if path.exists():
            with _removed_if_damaged(path), path.open("rb") as file:
                for rows in _Rows(file, self._dimensions(file)).portions():
                    told = zip(rows["id"].tolist(), rows["checksum"].tolist(), strict=True)
                    found.update((number, one) for number, one in told if one != _ERASED)
        return found

    def append(self, tape: str, rows: Sequence[VectorRow], *, behind: int) -> bool:
        """Append rows; the first rows of a file must include one with a vector.

        Args:
            tape: Name of the tape.
            rows: Rows by ascending id.
            behind: Expected id of the last row in the file; 0 for an empty file.

        Returns:
            False if the last row differs or the vectors have other dimensions; the file is then
            removed and must be built again.
        """
        private_directory(self._folder)
        path = self._path(tape)
        given = next((row.vector for row in rows if row.vector is not None), None)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        with _removed_if_damaged(path), os.fdopen(descriptor, "r+b") as file:
            if given is not None and not file.seek(0, os.SEEK_END):
                file.write(_HEAD.pack(_MAGIC, len(given), 0, self._model))
            table = _Rows(file, self._dimensions(file))
            if table.last() != behind or (given is not None and len(given) != table.dimensions):
                raise _DamagedError
            table.add(rows)
            return True
        return False

    def erase(self, tape: str, ids: Collection[int]) -> None:
        """Overwrite the vectors of entries; an unreadable file is removed."""
        path = self._path(tape)
        if path.exists():
            with _removed_if_damaged(path), path.open("r+b") as file:
                _Rows(file, self._dimensions(file)).blank(ids)
                file.flush()
                os.fsync(file.fileno())

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

        Args:
            tape: Name of the tape.
            vector: Vector of the query.
            limit: Most results.
            since: Only messages from this Unix time on, in seconds.
            before: Only entries with a lower id.
            skip: Id of an entry to leave out, such as the query itself.
            problem: Only rows with this problem checksum; None for all.
        """
        path = self._path(tape)
        if not path.exists():
            return None
        with _removed_if_damaged(path), path.open("rb") as file:
            dimensions = self._dimensions(file)
            if dimensions != len(vector):
                raise _DamagedError
            near = _nearness(_Rows(file, dimensions), vector, skip, problem)
            return near.best(limit, since, before) if near is not None else []
        return None

    def _dimensions(self, file: BinaryIO) -> int:
        """Read the number of dimensions from a file's head.

        Raises:
            _DamagedError: It is not a vector file, or that of another model.
        """
        file.seek(0)
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            raise _DamagedError
        magic, dimensions, _, model = _HEAD.unpack(head)
        if magic != _MAGIC or model != self._model or not 0 < dimensions <= 65_536:
            raise _DamagedError
        return int(dimensions)

    def _path(self, tape: str) -> Path:
        name = sha256(f"{self._workspace}\0{tape}".encode("utf-8", "surrogatepass"))
        return self._folder / f"{name.hexdigest()[:32]}{_SUFFIX}"


class _DamagedError(Exception):
    """A file is not as expected."""


class _removed_if_damaged:  # noqa: N801 (used as a statement)
    """Remove the file, and end the block, if the block raises ``_DamagedError``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        """Remove the file if it is damaged."""
        if not isinstance(error, _DamagedError):
            return False
        self._path.unlink(missing_ok=True)
        return True


@dataclass(frozen=True)
class _Rows:
    """Rows of an open file."""

    file: BinaryIO
    dimensions: int

    @cached_property
    def type(self) -> np.dtype[np.void]:
        vector = ("vector", "<f4", (self.dimensions,))
        sums = ("checksum", "<u4"), ("problem", "<u4")
        return np.dtype([("id", "<i8"), ("ts", "<f8"), *sums, vector])

    def count(self) -> int:
        """Return the number of whole rows."""
        return (self.file.seek(0, os.SEEK_END) - _HEAD.size) // self.type.itemsize

    def portions(self) -> Iterator[NDArray[np.void]]:
        """Yield all rows in order, in batches."""
        left = self.count()
        self.file.seek(_HEAD.size)
        while left > 0:
            data = self.file.read(min(left, _PORTION) * self.type.itemsize)
            rows = np.frombuffer(data, self.type, len(data) // self.type.itemsize)
            if not len(rows):
                return
            left -= len(rows)
            yield rows

    def last(self) -> int:
        """Return the id of the last row; 0 if there is none."""
        count = self.count()
        if not count:
            return 0
        self.file.seek(_HEAD.size + (count - 1) * self.type.itemsize)
        return int.from_bytes(self.file.read(8), "little")

    def add(self, rows: Sequence[VectorRow]) -> None:
        """Append rows, overwriting a partial one."""
        table = np.zeros(len(rows), self.type)
        for at, row in enumerate(rows):
            table["id"][at], table["ts"][at] = row.id, row.ts
            table["checksum"][at], table["problem"][at] = row.checksum, row.problem
            if row.vector is not None:
                table["vector"][at] = row.vector
        place = _HEAD.size + self.count() * self.type.itemsize
        self.file.truncate(place)
        self.file.seek(place)
        self.file.write(table.tobytes())

    def blank(self, ids: Collection[int]) -> None:
        """Overwrite everything but the ids in the rows of some entries."""
        wanted = np.fromiter(ids, np.int64, len(ids))
        found = [np.isin(rows["id"], wanted) for rows in self.portions()]
        for place in np.flatnonzero(np.concatenate(found)) if found else ():
            self.file.seek(_HEAD.size + int(place) * self.type.itemsize + 8)
            self.file.write(bytes(self.type.itemsize - 8))
        # A partial row may belong to one of them.
        self.file.truncate(_HEAD.size + self.count() * self.type.itemsize)


def _sound(rows: NDArray[np.void], last: int) -> bool:
    """Say whether rows are valid: ascending ids, and vectors of length 1 or none."""
    ids, vectors = rows["id"], rows["vector"]
    with np.errstate(all="ignore"):
        lengths = np.einsum("ij,ij->i", vectors, vectors)
        fits = (lengths == 0) | (np.abs(lengths - 1) < _LENGTH_ERROR)
    grows = ids[0] > last and bool((np.diff(ids) > 0).all())
    return grows and bool(fits.all())


@dataclass(frozen=True, slots=True)
class _Nearness:
    """Similarities of rows to a query."""

    ids: NDArray[np.int64]
    times: NDArray[np.float64]
    checksums: NDArray[np.uint32]
    own: Vector

    def best(self, limit: int, since: float, before: float) -> list[VectorMatch]:
        """Return the nearest rows from a time on and below an id."""
        fits = np.flatnonzero((self.times >= since) & (self.ids < before))
        own = self.own[fits]
        best, near = np.argsort(-own, kind="stable")[:limit], nearness(own)
        return [
            VectorMatch(
                int(self.ids[fits[i]]), int(self.checksums[fits[i]]), float(own[i]), float(near[i])
            )
            for i in best
        ]


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


def _nearness(table: _Rows, vector: Vector, skip: int, problem: int | None) -> _Nearness | None:
    """Return the similarities of a problem's rows, except one id; None if the file has no rows."""
    names = ("id", "ts", "checksum", "problem")
    read = [
        (*(rows[name].copy() for name in names), rows["vector"] @ vector)
        for rows in table.portions()
    ]
    if not read:
        return None
    ids, times, checksums, problems, own = (
        np.concatenate(column) for column in zip(*read, strict=True)
    )
    if not np.isfinite(own).all():
        raise _DamagedError
    counts = (checksums != _ERASED) & (ids != skip)
    if problem is not None:
        counts &= problems == problem
    return _Nearness(ids[counts], times[counts], checksums[counts], own[counts])
