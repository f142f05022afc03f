"""What is raised when MODEL cannot be resolved, wherever it was looked for."""


class ModelSourceError(Exception):
    """MODEL names nothing that can be served. The message says what to do next."""
