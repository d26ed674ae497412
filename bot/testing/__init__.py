"""Shipped for whoever extends tapebot: a scripted model, a channel in memory, a clock that tests own, the whole program on top."""
