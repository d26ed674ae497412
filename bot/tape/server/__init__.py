"""Serve a tape store over HTTP: the tape server."""
