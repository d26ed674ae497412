"""Slash commands, the same in every channel; one module or package per command."""
