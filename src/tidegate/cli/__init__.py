"""Commands, settings, and the server's composition root."""
