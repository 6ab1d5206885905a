"""Soft trees: gates, growth, forests and boosting."""
