"""Times in words, in each language of the program. Pure."""
