"""What comes in and what is kept: tables, files on disk, provenance, portable explainers, model files."""
