"""Texts as vectors, and the vectors of what tapes hold: optional, and disposable."""
