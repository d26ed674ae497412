"""Session workers: one for each active session, the only writer of its tape."""

__all__ = [
    "entries",
    "erasure",
    "services",
    "session_reset",
    "supervisor",
]
