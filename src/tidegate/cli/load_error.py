"""LoadError: the model cannot be served."""


class LoadError(Exception):
    """The model cannot be served; the message says what to do."""
