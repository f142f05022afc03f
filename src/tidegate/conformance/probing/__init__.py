"""What a server can do, found out before the cases run."""
