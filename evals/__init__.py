"""Evaluations that the program's own command does not run."""
