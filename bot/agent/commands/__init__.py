"""Slash commands, the same in every channel; a file for each."""
