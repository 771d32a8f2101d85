"""Code shared by importers of several libraries."""
