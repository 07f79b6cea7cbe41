"""The C byte operations behind codecs and mixing: `audioop`, wherever this Python keeps it."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    # Standard until 3.12, where importing it warns; the audioop-lts package from 3.13 on.
    warnings.simplefilter("ignore", DeprecationWarning)
    import audioop

__all__ = ["audioop"]
