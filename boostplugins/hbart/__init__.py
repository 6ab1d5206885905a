"""Bayesian additive regression trees with homoskedastic, log-linear or forest variance."""
