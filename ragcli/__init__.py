"""ragcli: ask a folder, and see why it answered."""

__version__ = "0.1.0"
