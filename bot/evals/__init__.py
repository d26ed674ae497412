"""Measures of how well tapes are searched."""
