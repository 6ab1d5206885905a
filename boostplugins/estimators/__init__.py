"""Estimators for scikit-learn, one family of models a file."""
