"""Folders of files of people and groups: keep, read, write, send and delete files."""

__all__ = ["service"]
