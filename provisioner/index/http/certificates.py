"""The files of certificates that the installer's configuration names: which of them nobody can use, and who named it."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from provisioner.index.http.settings import InstallerConfigurationError

if TYPE_CHECKING:
    from provisioner.index.http.settings import IndexSettings


def unusable(settings: IndexSettings) -> InstallerConfigurationError | None:
    """The error about the first named file that holds nothing to trust, or nothing to identify with; None where all do.

    Asked after a connection failed, for to read a bundle takes 20 ms.
    """
    for path, named, load in (
        (settings.ca_bundle, settings.ca_bundle_from, _load_bundle),
        (settings.client_certificate, settings.client_certificate_from, _load_client),
    ):
        try:
            if path:
                load(path)
        except OSError as error:
            by = f" ({named})" if named else ""
            return InstallerConfigurationError(
                f"the certificate file `{path}`{by} cannot be used: {_reason(error)}",
                hints=(f"correct {named}" if named else "name another file",),
            )
    return None


def _load_bundle(path: str) -> None:
    is_folder = Path(path).is_dir()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(None if is_folder else path, path if is_folder else None)


def _load_client(path: str) -> None:
    # Whoever has a key with a password types it when it is used; here nobody is asked.
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(path, password="")


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return "there is no certificate in it that can be read"
    return "it does not exist" if isinstance(error, FileNotFoundError) else str(error.strerror).lower()
