"""Dataset rows: reading them from bytes, their formats and turns, their hashes."""
