"""The documentation as a site: Sphinx's configuration, and the pages that are made from the program."""
