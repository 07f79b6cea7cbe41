"""Secrets that stand in an app's files. What is found is never shown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gateway.agent.app.check.problem import Code
from gateway.agent.app.check.tree import Object, Place, Tree
from gateway.agent.app.layout import TEMPLATE_SUFFIXES

_TEXT_SUFFIXES = (
    *(".py", ".txt", ".md", ".json", ".yaml", ".yml", ".env", ".cfg", ".ini", ".toml", ".sh"),
    *(".pem", ".key", *TEMPLATE_SUFFIXES),
)
MAX_TEXT_BYTES = 4 << 20

_KNOWN: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")),
    ("a Google API key", re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b")),
    ("a Google OAuth secret", re.compile(r"\bGOCSPX-[0-9A-Za-z_-]{20,}")),
    ("a Google access token", re.compile(r"\bya29\.[0-9A-Za-z_-]{20,}")),
    ("an AWS access key", re.compile(r"\bA(KIA|SIA)[0-9A-Z]{16}\b")),
    ("a GitHub token", re.compile(r"\b(gh[pousr]_[0-9A-Za-z]{36}|github_pat_[0-9A-Za-z_]{50,})")),
    ("a Slack token", re.compile(r"\bxox[abprs]-[0-9A-Za-z-]{10,}")),
    ("a Stripe key", re.compile(r"\b[rs]k_live_[0-9A-Za-z]{16,}")),
    ("a model provider's key", re.compile(r"\bsk-(proj-|ant-)?[0-9A-Za-z_-]{32,}")),
    ("a Twilio key", re.compile(r"\bSK[0-9a-f]{32}\b")),
    ("a signed token", re.compile(r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}")),
    (
        "a password in an address",
        re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@\"'{}$]+:[^\s/@\"'{}$]+@"),
    ),
)
_ASSIGNED = re.compile(
    r"""(?ix) ["']? \b [\w-]*
    (password|passwd|secret|api[_-]?key|access[_-]?token|auth[_-]?token|private[_-]?key)
    ["']? \s* [:=] \s* ["'] (?P<value>[^"'\s]{8,}) ["']"""
)
_HARMLESS = re.compile(
    r"[$<{]|://|^projects/|example|placeholder|changeme|dummy|x{4,}|\*{3,}|\.\.\."
)
CONTEXT_KINDS = (
    ("tools", ("openApiTool", "mcpTool")),
    ("toolsets", ("openApiToolset", "mcpToolset")),
)
"""Objects that log in somewhere: folder, kinds."""
_SECRET_VERSION = re.compile(r"projects/[^/]+/secrets/[^/]+/versions/[^/]+")
_VERSION_KEYS: tuple[Place, ...] = (
    ("apiKeyConfig", "apiKeySecretVersion"),
    ("oauthConfig", "clientSecretVersion"),
)


def check_secrets(tree: Tree) -> None:
    """Report what looks like a secret; files and keys where only a reference belongs."""
    for path in sorted(tree.paths):
        if not path.endswith(_TEXT_SUFFIXES):
            continue
        data = tree.files.read(path)
        if len(data) > MAX_TEXT_BYTES:
            continue
        text = data.decode("utf-8", "replace")
        for number, line in enumerate(text.splitlines(), 1):
            _line(tree, path, number, line)
    for folder, kinds in CONTEXT_KINDS:
        for item in tree.objects[folder]:
            for kind in kinds:
                _authentication(tree, item, kind)
    if tree.app is not None:
        place: Place = ("clientCertificateSettings", "privateKey")
        _version(tree, tree.app, place)


def _line(tree: Tree, path: str, number: int, line: str) -> None:
    for what, pattern in _KNOWN:
        if pattern.search(line):
            tree.problems.error(
                Code.SECRET,
                path,
                number,
                f"this looks like {what}",
                "Take it out and revoke it; keep secrets in a secret store or in a variable.",
            )
            return
    for match in _ASSIGNED.finditer(line):
        if not _HARMLESS.search(match["value"]) and not match["value"].isidentifier():
            tree.problems.warn(
                Code.SECRET,
                path,
                number,
                f"the value of {match[1].lower()!r} looks like a secret",
                "Keep secrets in a secret store or in a variable.",
            )
            return


def _authentication(tree: Tree, item: Object, kind: str) -> None:
    place: Place = (kind, "apiAuthentication")
    for inner in _VERSION_KEYS:
        _version(tree, item, (*place, *inner))
    for where, value in contextual(item, kind):
        if not value.startswith("$context."):
            tree.problems.error(
                Code.SECRET,
                item.file,
                item.line(*where),
                f"{where[-1]} holds a value of its own",
                "Write $context.variables.NAME, and set the variable when the session starts.",
            )


def contextual(item: Object, kind: str) -> Iterator[tuple[Place, str]]:
    """Values that must come from the session, with their places."""
    place: Place = (kind, "apiAuthentication", "bearerTokenConfig", "token")
    token = item.get(*place)
    if isinstance(token, str) and token:
        yield place, token
    headers = item.get(kind, "customHeaders")
    if isinstance(headers, dict):
        for name, value in headers.items():
            if isinstance(value, str) and value:
                yield (kind, "customHeaders", name), value


def _version(tree: Tree, item: Object, place: Place) -> None:
    value = item.get(*place)
    if not isinstance(value, str) or not value or value.startswith("$"):
        return
    if not _SECRET_VERSION.fullmatch(value):
        tree.problems.error(
            Code.SECRET,
            item.file,
            item.line(*place),
            f"{place[-1]} is not the name of a secret",
            "Write it like projects/P/secrets/S/versions/latest.",
        )
