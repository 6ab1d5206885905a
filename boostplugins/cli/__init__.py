"""The command line: ``python -m boostplugins``."""
