"""The command line: a file holds one command, or a few that belong together."""
