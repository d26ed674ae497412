"""The index of a store's tapes: a disposable derivative that finds anchors and words."""

from bot.tape.index.tape_index import IndexSource, TapeIndex

__all__ = ["IndexSource", "TapeIndex"]
