"""Engines that Ray places on machines and restarts: an actor around any engine, and the server's way to it."""
