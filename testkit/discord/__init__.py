"""A Discord server for tests: gateway and REST API, version 10."""
