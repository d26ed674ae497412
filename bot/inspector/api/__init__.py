"""The documented JSON API; the pages show the same data."""
