"""`python -m bench`: all measurements; `python -m bench engine pacing`: some of them."""

from __future__ import annotations

import sys
from importlib import import_module

ALL = ("engine", "resampling", "speech", "barge_in", "pacing", "isolation", "flood")


def main() -> int:
    """Run what was asked for; 2 for an unknown name."""
    names = sys.argv[1:] or ALL
    unknown = [name for name in names if name not in ALL]
    if unknown:
        print(f"no measurement {unknown[0]!r}; there are: {', '.join(ALL)}", file=sys.stderr)
        return 2
    for name in names:
        print(f"== {name}", flush=True)
        import_module(f"bench.{name}").main()
        print(flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
