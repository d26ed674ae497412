"""The state of a session as folds over its tape: window, turns, memory zone, snapshots."""

__all__ = [
    "context_window",
    "fact_markdown",
    "fold_loader",
    "outside_fold",
    "session_fold",
    "turn_fold",
    "zone",
    "zone_snapshot",
    "zone_versions",
]
