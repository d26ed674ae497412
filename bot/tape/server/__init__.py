"""The tape server: a tape store over HTTP."""
