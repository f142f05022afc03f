"""A run of cases against a server: planned, bounded, watched."""
