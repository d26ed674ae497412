"""Analyse sentences of several languages by rules; compare claims with evidence. Pure."""
