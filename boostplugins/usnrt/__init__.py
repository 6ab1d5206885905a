"""Variance networks in the leaves of a tree grown by Levene's test: kernels, splits, growth, files."""
