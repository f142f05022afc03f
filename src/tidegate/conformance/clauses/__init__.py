"""What was promised, and where it is written."""
