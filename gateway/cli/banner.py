"""What `voice-gateway serve` prints once it serves: where it is, and what to type next."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from gateway import __version__, demo
from gateway.channels.ces import NATIVE
from gateway.channels.dialect import Dialect, Proof
from gateway.channels.dialects import DIALECTS
from gateway.channels.proofs import AuthorizationProof
from gateway.config import Settings
from gateway.server.auth import platform_proofs, public_origin, shares_timelines
from gateway.simulate.platforms import side

SCENARIO: Final = "SCENARIO.yaml"
"""In place of a scenario where none is known."""


def banner(settings: Settings, url: str) -> str:
    """`url`: the server as this machine reaches it."""
    app = _far(settings) or settings.app or "the demo app (an energy supplier's line)"
    lines = [
        f"voice-gateway {__version__} serves {app}",
        f"  {url}    what is here; /healthz /readyz /metrics",
        *_platforms(settings, url),
        "Call it:",
        *_calls(settings, url),
        "  a CX Agent Studio client:",
        f"    {_wire(url)}{NATIVE.format(version='v1', location='local')}",
    ]
    if not _configured(settings):
        lines.append("  a Twilio number (through a tunnel): voice webhook POST /twilio/voice")
    return "\n".join([*lines, "Ctrl-C ends it."])


def _configured(settings: Settings) -> list[Dialect[Any]]:
    """The dialects that somebody from outside can prove themselves for."""
    return [DIALECTS[name] for name in platform_proofs(settings)]


def _platforms(settings: Settings, url: str) -> Iterator[str]:
    configured = _configured(settings)
    if configured:
        yield "Platforms connect to:"
    for dialect in configured:
        origin = public_origin(settings, dialect) or url
        if any(route.proof is Proof.TOKEN for route in dialect.routes):
            hook = dialect.webhooks[0]
            yield f"  {dialect.name:<12} {hook.methods[0]} {origin}{hook.pattern}"
        else:
            yield f"  {dialect.name:<12} {_wire(origin)}{dialect.routes[0].pattern}"


def _calls(settings: Settings, url: str) -> Iterator[str]:
    scenario, program = _scenario(settings), _program()
    token = " --token TOKEN" if settings.auth.tokens else ""
    yield f"  {program} call {url} {scenario}{token}"
    configured = _configured(settings)
    twilio = settings.platforms.twilio
    if not configured and twilio.enabled and not public_origin(settings, DIALECTS["twilio"]):
        yield f"  {program} call {url} {scenario} --channel twilio{token}"
    for dialect in configured:
        # What is signed covers the public address, and the answer leads there.
        origin = public_origin(settings, dialect) or url
        own = dialect.settings(settings.platforms)
        bearer = dialect.proof is AuthorizationProof and own.password is None
        proof = "--secret AUTH_TOKEN" if bearer else side(dialect.name).proof
        yield f"  {program} call {origin} {scenario} --channel {dialect.name} {proof}{token}"
    if not shares_timelines(settings):
        yield "  (`call` follows the timeline: set server.share_timeline=true and auth.tokens)"


def _wire(origin: str) -> str:
    return origin.replace("http", "ws", 1)


def _far(settings: Settings) -> str:
    """Where calls are answered, if that is not here."""
    return settings.runtime.google.app or settings.runtime.url or ""


def _scenario(settings: Settings) -> str:
    """A scenario that this app can pass: the demo's own says nothing about other apps."""
    if settings.app is None:
        return SCENARIO if _far(settings) else _shown(demo.SCENARIOS_PATH / "barge_in.yaml")
    own = sorted((settings.app / "scenarios").glob("*.yaml"))
    return _shown(own[0]) if own else SCENARIO


def _program() -> str:
    """The command as this person can type it."""
    return "voice-gateway" if shutil.which("voice-gateway") else _shown(Path(sys.argv[0]))


def _shown(path: Path) -> str:
    """A path from the current folder where it lies below it."""
    with contextlib.suppress(ValueError):
        return str(path.resolve().relative_to(Path.cwd()))
    return str(path)
