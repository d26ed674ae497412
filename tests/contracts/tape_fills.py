"""How the contract's tests fill a tape with numbered messages."""

from __future__ import annotations

from tape_talk import TAPE, says

from bot.tape.store import TapeStore


async def fill(store: TapeStore, count: int, tape: str = TAPE) -> None:
    await store.create_tape(tape)
    await store.append_many(tape, [says(str(number)) for number in range(count)])
