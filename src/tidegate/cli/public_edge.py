"""What the public listener shows to the outside: TLS files and origins, checked before anything starts."""

from pathlib import Path

from tidegate.cli.settings import Settings
from tidegate.http.cors import CorsPolicy
from tidegate.http.listener import ListenError
from tidegate.http.tls import TlsError, TlsFiles, check_pair
from tidegate.system import SystemClock


def tls_files(settings: Settings) -> TlsFiles | None:
    """Returns the files of `tls.*`; None without TLS. Raises TlsError when only one is named."""
    tls = settings.tls
    if tls.certificate_file is None and tls.key_file is None:
        return None
    if tls.certificate_file is None or tls.key_file is None:
        missing = "certificate_file" if tls.certificate_file is None else "key_file"
        raise TlsError(f"TLS needs a certificate and its key: tls.{missing} is not set")
    return TlsFiles(Path(tls.certificate_file).expanduser().absolute(), Path(tls.key_file).expanduser().absolute())


def check_edge(settings: Settings) -> list[str]:
    """Returns what the operator should know. Raises ListenError for what cannot be served."""
    try:
        CorsPolicy(settings.cors.origins, settings.cors.max_age_s)
    except ValueError as error:
        raise ListenError(f"cors.origins: {error}") from error
    files = tls_files(settings)
    return [] if files is None else check_pair(files, SystemClock().wall())
