"""Linking identities: one person's facts and compartments move between scopes."""
