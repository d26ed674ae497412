"""A tape is folded from its newest kept state, which counts only as long as it is of the tape as it is."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from erased_words import tombstone
from tape_files import live_file, opened, says

from bot.core.reasons import Reason
from bot.tape.folding import fold_tape

TAPE = "fake:1"


class Heard:
    """The texts on a tape, and how many entries were applied in this process."""

    def __init__(self):
        self.texts, self.why = [], Reason("still_running")

    def apply(self, entry):
        Heard.applied += 1
        self.texts.append(entry.payload.get("content"))


Heard.__module__ = "bot.tape.folding"
pytest.MonkeyPatch().setattr("bot.tape.folding.Heard", Heard, raising=False)


async def folded(folder, last=None):
    """Return the last texts of a tape, and how many entries were applied to know them."""
    Heard.applied = 0
    async with opened(folder) as store:
        state = await fold_tape(store, TAPE, Heard, last, past=True)
        return [text for text in state.fold.texts if text][-2:], Heard.applied


async def test_only_what_is_new_is_folded_also_in_the_past_and_never_from_a_doubtful_state(
    tmp_path,
):
    async with opened(tmp_path) as store:
        await store.create_tape(TAPE)
        for first in range(2, 9_001, 100):
            words = [says(f"word {n}") for n in range(first, min(first + 100, 9_001))]
            await store.append_many(TAPE, words)
    assert await folded(tmp_path) == (["word 8999", "word 9000"], 9_000)
    assert await folded(tmp_path) == (["word 8999", "word 9000"], 0)
    assert await folded(tmp_path, 5_000) == (["word 4999", "word 5000"], 500)
    async with opened(tmp_path) as store:
        [entry] = await store.read(TAPE, 8_700, 8_700)
        await store.erase(TAPE, [tombstone(entry)])
    held = [path.read_bytes() for path in tmp_path.rglob("Heard.*")]
    assert held
    assert not any(b"word 8700" in one for one in held)
    assert (await folded(tmp_path))[1] == 500
    file = live_file(tmp_path)
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:8_601]))
    async with opened(tmp_path) as store:
        await store.append_many(TAPE, [says(f"other {n}") for n in range(8_602, 9_001)])
    assert await folded(tmp_path) == (["other 8999", "other 9000"], 500)


class Bomb:
    """What runs code when it is read carelessly."""

    def __reduce__(self):
        return Path("pwned").touch, ()


HOSTILE = [pickle.dumps(Bomb()), b"\x80\x05}" + b")" + b"\x85" * 3_000_000 + b"K\x01s.", b""]


async def test_no_state_is_kept_during_an_erasure_and_none_that_others_wrote_is_read(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    async with opened(tmp_path) as store:
        await store.create_tape(TAPE)
        await store.append_many(TAPE, [says(f"word {n}") for n in range(2, 201)])
        # A kill in this block leaves what is there now.
        async with store.folds.erasing(TAPE, 100):
            await fold_tape(store, TAPE, Heard)
            assert not [*tmp_path.rglob("Heard.*")]
    assert await folded(tmp_path) == (["word 199", "word 200"], 200)
    for data in (*HOSTILE, None):
        [state] = tmp_path.rglob("Heard.200.*")
        good = state.read_bytes()
        state.write_bytes(good[: -len(good) // 2] if data is None else good[:4] + data)
        assert await folded(tmp_path) == (["word 199", "word 200"], 200)
        assert await folded(tmp_path) == (["word 199", "word 200"], 0)
    assert not (tmp_path / "pwned").exists()
    state.parent.rename(tmp_path / "aside")
    state.parent.symlink_to(state.parent)
    assert await folded(tmp_path) == (["word 199", "word 200"], 200)
