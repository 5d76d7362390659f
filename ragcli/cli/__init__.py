"""The command line: one module per command, and the one boundary for errors."""
