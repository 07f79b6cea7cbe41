"""What the cloud's clients can fail with, in the words of the gateway."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gateway.errors import RecordError


def missing_extra(package: str) -> RecordError:
    """A client that is not installed."""
    return RecordError(
        "records.extra",
        f"{package} is not installed",
        hint="pip install 'voice-gateway[google]'",
    )


@contextmanager
def cloud_errors(
    service: str, where: str, permission: str, *more: type[Exception]
) -> Iterator[None]:
    """Turn what the client raises into RecordError; `more`: what it raises besides the usual."""
    import google.auth.exceptions
    import requests
    from google.api_core import exceptions

    failures: tuple[type[Exception], ...] = (
        exceptions.GoogleAPICallError,
        exceptions.RetryError,
        requests.RequestException,
        OSError,
        *more,
    )

    try:
        yield
    except exceptions.NotFound:
        raise RecordError(
            "records.not_found", f"{service} does not know it", where=where, hint="create it"
        ) from None
    except (
        exceptions.Forbidden,
        exceptions.Unauthorized,
        google.auth.exceptions.GoogleAuthError,
    ):
        raise RecordError(
            "records.forbidden",
            "the gateway may not write there",
            where=where,
            hint=f"grant {permission} to the gateway's service account",
        ) from None
    except failures as error:
        raise RecordError(
            "records.unreachable", f"{service} failed: {type(error).__name__}", where=where
        ) from None
