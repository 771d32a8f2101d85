"""Input and storage: tables, files on disk, provenance, model files."""
