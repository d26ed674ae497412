"""The state of a session as folds over its tape: window, turns, memory zone, snapshots."""
