"""The whole server as a Ray Serve application (docs/deploy.md). Only `application.py` imports Ray."""
