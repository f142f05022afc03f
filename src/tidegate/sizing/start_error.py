"""The one error of starting: the library, the model file or the options cannot be used."""


class StartError(Exception):
    """The backend cannot start. The message names the file or option at fault and says what to do."""
