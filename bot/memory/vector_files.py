"""Vectors of tapes in flat files, one for each tape. Blocking.

A file is a head (what it is, the model's hash) and rows of one size, by ascending id of their entries:
id, time, checksums of the text and of the problem, the vector. A row without a vector is of an entry that
was erased, or that the model does not take. Nothing of a text is in a file, and the tape's name is hashed.

Rule 1: a file is disposable. One that is damaged, or of another model, is removed and made anew.
Rule 2: a row that was cut short by a kill does not count, and the next write takes it away.
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

from bot.core.files import PRIVATE_FILE, private_directory
from bot.llm.embeddings.base import Vector

_MAGIC = b"tapevec1"
_HEAD = struct.Struct("<8sII32s")
_SUFFIX = ".vectors"

_PORTION = 4_096
"""Rows that are read at once."""

_MANY = 100
"""Messages of a tape that may be near: what is no nearer than the last of them is not."""

_LEAST_SPREAD = 0.1
"""Standard deviation of similarities that are of a few messages alike, or of one."""

_SCALE = 3.0
"""Standard deviations above it that are as near as most questions come to what they ask for."""

_LENGTH_ERROR = 0.01
_ERASED = 0
"""Checksum of a row whose entry was erased."""


@dataclass(frozen=True, slots=True)
class VectorRow:
    """A vector and what it is of.

    Attributes:
        id: The entry's id.
        ts: When it was said, in seconds since 1970; 0 where that is not known.
        checksum: Of its text.
        problem: Checksum of the problem that it belongs to; 0 for the general one.
        vector: None where the model does not take the text.
    """

    id: int
    ts: float
    checksum: int
    problem: int
    vector: Vector | None


@dataclass(frozen=True, slots=True)
class VectorMatch:
    """An entry whose vector is near to a question's.

    Attributes:
        id: The entry's id.
        checksum: Of the text that the vector was made of.
        similarity: The cosine: 1 for the same direction.
        nearness: How far it stands out from most of the tape: 0 where it does not, about 1 for the best.
    """

    id: int
    checksum: int
    similarity: float
    nearness: float


class VectorFiles:
    """The files of one workspace and one model.

    Args:
        folder: Holds them; made with the first.
        workspace: Part of every name: the same session has another tape in another workspace.
        model: The model's name.
    """

    def __init__(self, folder: Path, workspace: str, model: str) -> None:
        self._folder = folder
        self._workspace = workspace
        self._model = sha256(model.encode()).digest()

    def remove_stale(self) -> None:
        """Remove the files of other models, and what is no such file."""
        for path in self._folder.glob(f"*{_SUFFIX}"):
            with _removed_if_damaged(path), path.open("rb") as file:
                self._dimensions(file)

    def ends(self, tape: str) -> tuple[int, int]:
        """Return the ids of the first and the last row, once the whole file has been looked at; 0 without."""
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
        """Return the checksums of the texts whose rows there are, by their entries' ids."""
        path, found = self._path(tape), dict[int, int]()
        if path.exists():
            with _removed_if_damaged(path), path.open("rb") as file:
                for rows in _Rows(file, self._dimensions(file)).portions():
                    told = zip(rows["id"].tolist(), rows["checksum"].tolist(), strict=True)
                    found.update((number, one) for number, one in told if one != _ERASED)
        return found

    def append(self, tape: str, rows: Sequence[VectorRow], *, behind: int) -> bool:
        """Add rows, at least one of them with a vector where they are the first.

        Args:
            tape: Whose.
            rows: By ascending id.
            behind: Id of the row that is the last so far; 0 where there is none.

        Returns:
            False where that is not so, or its vectors are of another kind: the file is removed, and all
            of it is to be made anew.
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
        """Overwrite the vectors of entries; a file that cannot be read is removed whole."""
        path = self._path(tape)
        if path.exists():
            with _removed_if_damaged(path), path.open("r+b") as file:
                _Rows(file, self._dimensions(file)).blank(ids)
                file.flush()
                os.fsync(file.fileno())

    def remove(self, tape: str) -> None:
        """Remove a tape's file, if there is one."""
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
        """Return the entries whose vectors are nearest, best first; None where the file is of no use.

        Args:
            tape: Whose.
            vector: The question's.
            limit: So many at most.
            since: Only what was said then or later, in seconds since 1970.
            before: Only entries with a lower id.
            skip: Id of an entry that does not count: the question itself.
            problem: Only rows with this checksum; None for all.
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
        """Return the dimensions that a file's head names.

        Raises:
            _DamagedError: It is no file of vectors, or one of another model.
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
    """A file does not hold what it should."""


class _removed_if_damaged:  # noqa: N801 (used as a statement)
    """Removes a file that turns out to be damaged in the block, and ends the block there."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Nothing is known yet."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        """Remove it."""
        if not isinstance(error, _DamagedError):
            return False
        self._path.unlink(missing_ok=True)
        return True


@dataclass(frozen=True)
class _Rows:
    """The rows of an open file."""

    file: BinaryIO
    dimensions: int

    @cached_property
    def type(self) -> np.dtype[np.void]:
        vector = ("vector", "<f4", (self.dimensions,))
        sums = ("checksum", "<u4"), ("problem", "<u4")
        return np.dtype([("id", "<i8"), ("ts", "<f8"), *sums, vector])

    def count(self) -> int:
        """Return how many whole rows there are."""
        return (self.file.seek(0, os.SEEK_END) - _HEAD.size) // self.type.itemsize

    def portions(self) -> Iterator[NDArray[np.void]]:
        """Yield all rows in their order."""
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
        """Return the id of the last row; 0 where there is none."""
        count = self.count()
        if not count:
            return 0
        self.file.seek(_HEAD.size + (count - 1) * self.type.itemsize)
        return int.from_bytes(self.file.read(8), "little")

    def add(self, rows: Sequence[VectorRow]) -> None:
        """Write rows behind those that are there."""
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
        """Overwrite all of these entries' rows but the ids."""
        wanted = np.fromiter(ids, np.int64, len(ids))
        found = [np.isin(rows["id"], wanted) for rows in self.portions()]
        for place in np.flatnonzero(np.concatenate(found)) if found else ():
            self.file.seek(_HEAD.size + int(place) * self.type.itemsize + 8)
            self.file.write(bytes(self.type.itemsize - 8))
        # A row that was cut short may be of one of them.
        self.file.truncate(_HEAD.size + self.count() * self.type.itemsize)


def _sound(rows: NDArray[np.void], last: int) -> bool:
    """Say whether rows may be what was written: ids that grow, vectors of length 1 or none."""
    ids, vectors = rows["id"], rows["vector"]
    with np.errstate(all="ignore"):
        lengths = np.einsum("ij,ij->i", vectors, vectors)
        fits = (lengths == 0) | (np.abs(lengths - 1) < _LENGTH_ERROR)
    grows = ids[0] > last and bool((np.diff(ids) > 0).all())
    return grows and bool(fits.all())


@dataclass(frozen=True, slots=True)
class _Nearness:
    """How near rows are to a question."""

    ids: NDArray[np.int64]
    times: NDArray[np.float64]
    checksums: NDArray[np.uint32]
    own: Vector

    def best(self, limit: int, since: float, before: float) -> list[VectorMatch]:
        """Return the nearest that were said since then, and stand before that id."""
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
    """Return how far messages stand out from most of a tape, by how similar all are to a question."""
    count = len(similarities)
    if not count:
        return similarities
    # Where few were said, others are imagined that have nothing to do with the question.
    usual = float(similarities.sum()) / max(count, _MANY)
    if count > _MANY:
        usual = max(usual, float(np.partition(similarities, -_MANY)[-_MANY]))
    spread = max(float(similarities.std()), _LEAST_SPREAD)
    found: Vector = np.maximum(similarities - usual, 0) / (_SCALE * spread)
    return found


def _nearness(table: _Rows, vector: Vector, skip: int, problem: int | None) -> _Nearness | None:
    """Return how near the rows of a problem are but the one of this id; None where there are none."""
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
