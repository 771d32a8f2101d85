"""scikit-learn's models, one file for each family."""
