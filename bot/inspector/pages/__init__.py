"""HTML pages, rendered on the server from the data that the API returns."""
