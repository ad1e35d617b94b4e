"""Estimators of machine learning over rows of features: trees, probabilities of classes."""
