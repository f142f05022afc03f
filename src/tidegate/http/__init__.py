"""The HTTP boundary: a plain ASGI application, and the servers that run it."""
