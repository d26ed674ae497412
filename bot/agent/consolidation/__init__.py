"""Consolidation: a model condenses messages into history entries and facts."""
