"""Errors that a user of the command line can mend."""

from __future__ import annotations


class UsageError(Exception):
    """One line for the user; the command ends with exit code 2."""
