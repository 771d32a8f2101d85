"""Explaining: from a model and tables to an Explanation."""
