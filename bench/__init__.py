"""Measures the program's real parts, with the machine's own limits beside the figures."""
