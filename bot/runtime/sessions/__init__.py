"""Session workers: one for each active session, the only writer of its tape."""
