"""What sentences say, in any of the languages known, and how two of them differ. Pure."""
