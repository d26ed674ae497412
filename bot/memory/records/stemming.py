"""The terms by which texts are compared, under the name by which erasure knows them."""

from bot.tape.index.terms import telling_terms as stemmed_words

__all__ = ["stemmed_words"]
