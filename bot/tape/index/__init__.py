"""Index anchors and full text of tapes in a file that can be rebuilt from the tapes at any time."""

from bot.tape.index.keeper import IndexSource
from bot.tape.index.tape_index import TapeIndex

__all__ = [
    "IndexSource",
    "TapeIndex",
    "groups",
    "terms",
]
