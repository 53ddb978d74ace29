"""The version, which the package and the command line tell."""

__version__ = "0.1.0"
