"""Split text into sentences, under the name by which erasure knows it."""

from bot.core.folding import split_sentences

__all__ = ["split_sentences"]
