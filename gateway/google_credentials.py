"""Who this process is at Google: the operator's file, else what the machine has. Blocks."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gateway.config import CREDENTIALS_VARIABLE
from gateway.errors import ConfigError


def find(file: Path | None, scopes: Sequence[str], *, setting: str, service: str) -> Any:
    """Credentials, not yet refreshed. Raises ConfigError (config.credentials).

    `file`: of any kind that google-auth reads; None: GOOGLE_APPLICATION_CREDENTIALS, gcloud's own
    file, the metadata server. Their quota project is that of GOOGLE_CLOUD_QUOTA_PROJECT, else the
    file's. `setting` (the key that names a file) and `service` are words for the error.
    """
    import google.auth
    from google.auth.credentials import with_scopes_if_required
    from google.auth.exceptions import GoogleAuthError

    file = file or _named()
    try:
        if file is None:
            return google.auth.default(scopes=scopes)[0]
        content = json.loads(file.read_text(encoding="utf-8"))
        with warnings.catch_warnings():
            # That a file may name any address for its tokens; it is the operator's own.
            warnings.simplefilter("ignore", DeprecationWarning)
            found, _ = google.auth.load_credentials_from_dict(content)  # type: ignore[no-untyped-call]
        # Not before: a user's credentials keep the scopes that the user has granted.
        return with_scopes_if_required(found, scopes)  # type: ignore[no-untyped-call]
    except (GoogleAuthError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        # The text of the error may quote the file.
        reason = "nothing on this machine names any" if file is None else type(error).__name__
        raise ConfigError(
            "config.credentials",
            f"no credentials for {service}: {reason}",
            where=str(file or setting),
            hint=f"set {setting} or {CREDENTIALS_VARIABLE}, or run"
            " `gcloud auth application-default login`",
        ) from None


def _named() -> Path | None:
    """The file that the environment names, or gcloud's own.

    Not left to google-auth: it would run gcloud besides, for a project that nobody needs.
    """
    named = os.environ.get(CREDENTIALS_VARIABLE)
    if named:
        return Path(named)
    folder = os.environ.get("CLOUDSDK_CONFIG")
    gcloud = Path(folder) if folder else Path(os.path.expanduser("~/.config/gcloud"))
    file = gcloud / "application_default_credentials.json"
    return file if file.is_file() else None
