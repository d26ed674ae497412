"""What all HTTP servers of the program share: serving, errors as JSON, limits, tokens."""
