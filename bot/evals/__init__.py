"""Evaluations with labelled data: search recall, claims that memory believes, and answers."""
