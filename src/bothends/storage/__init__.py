"""Places where files are, records in them, and digests of their content."""
