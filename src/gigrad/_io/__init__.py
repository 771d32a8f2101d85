"""What comes in and what is kept: tables, files on disk, provenance, model files."""
