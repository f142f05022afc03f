"""ExporterWords: what OpenTelemetry's exporter says of its failures, kept instead of logged with each batch.

It says them to a logger. Words of exceptions are left out, since one may quote a header, and with it a secret: their
kind stays.
"""

import logging

from tidegate.observability.redact import clean_text

LOGGER = "opentelemetry.exporter"
MAX_CHARS = 200


class ExporterWords(logging.Handler):
    """`listen`, in the end `stop`. Keeps the first and the last of what was said since `take`."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._first = self._last = ""

    def listen(self) -> None:
        """From here on the exporter speaks to this, and to nobody else."""
        logger = logging.getLogger(LOGGER)
        logger.propagate = False
        logger.addHandler(self)

    def stop(self) -> None:
        """Ends that. Idempotent."""
        logging.getLogger(LOGGER).removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler.emit`."""
        said = record.args if isinstance(record.args, tuple) else ()
        words = tuple(type(word).__name__ if isinstance(word, BaseException) else word for word in said)
        try:
            text = str(record.msg) % words
        except TypeError:
            text = "it says so in words of its own"
        self._first, self._last = self._first or text, text

    def take(self) -> str:
        """Returns what was said since the last call; "" for nothing."""
        first, last, self._first, self._last = self._first, self._last, "", ""
        return clean_text(last if first == last else f"{first} {last}", MAX_CHARS)
