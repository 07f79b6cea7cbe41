"""A speech worker: a process of its own that loads the engines once and does one job at a time.

Started by `gateway.speech.pool` as `python -m gateway.speech.worker PLAN`. Jobs come on standard
input, answers go to what was standard output; it ends when its input ends, so it never outlives
the gateway.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import BinaryIO

import msgspec

from gateway.background import end_with_parent, yield_to_media
from gateway.errors import SpeechError
from gateway.speech.engines import EnginePlan, load_engines
from gateway.speech.jobs import LENGTH_BYTES, Answer, Failed, Ready, pack, perform, read_job


def _say(out: BinaryIO, answer: Answer) -> None:
    out.write(pack(answer))
    out.flush()


def serve(source: BinaryIO, out: BinaryIO, plan: EnginePlan) -> None:
    """Load, report ready or failed, then answer jobs until the input ends."""
    try:
        engines = load_engines(plan)
    except SpeechError as error:
        _say(out, Failed(error.code, error.message, error.hint))
        return
    _say(out, Ready())
    while len(head := source.read(LENGTH_BYTES)) == LENGTH_BYTES:
        body = source.read(int.from_bytes(head, "big"))
        _say(out, perform(read_job(body), engines))


def main() -> None:
    """Entry point of the process."""
    # The gateway ends its workers itself; a Ctrl-C meant for it must not cut a goodbye short.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    yield_to_media()
    # What a library prints would garble the answers: it goes to standard error instead.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    plan = msgspec.json.decode(sys.argv[1].encode(), type=EnginePlan)
    with contextlib.suppress(BrokenPipeError), out:
        serve(sys.stdin.buffer, out, plan)


if __name__ == "__main__":
    main()
