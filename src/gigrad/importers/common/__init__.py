"""What importers of several libraries share."""
