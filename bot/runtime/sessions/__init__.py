"""Session workers: one for each active session, the only writer of its tape."""

__all__ = [
    "derived_files",
    "services",
    "session_reset",
    "supervisor",
]
