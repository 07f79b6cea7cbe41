"""The three rings: imports point inward only."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "gateway"
COMMON = {
    "errors",
    "config",
    "platform_settings",
    "notice_settings",
    "bidi",
    "background",
    "sentences",
    "wrong_settings",
    "google_credentials",
    "logs",
    "__init__",
}
RING_1 = {"audio", "call", "channels"}
RING_2 = {
    *{"speech", "assets", "runtime", "records", "notices", "platforms", "services", "session"},
    "ticker",
}
RING_3 = {"server", "simulate", "load", "cli", "demo", "evaluate"}
IMPURE = {"asyncio", "socket", "threading", "time", "subprocess", "aiohttp", "websockets", "picows"}


def _files() -> list[Path]:
    return sorted(
        path for path in ROOT.rglob("*.py") if "demo/app" not in path.relative_to(ROOT).as_posix()
    )


def _house(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def _is_module(alias: ast.alias) -> bool:
    return (ROOT / alias.name).is_dir() or (ROOT / f"{alias.name}.py").is_file()


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module)
            if node.module == "gateway":
                found.update(f"gateway.{alias.name}" for alias in node.names if _is_module(alias))
    return found


def _ring(name: str) -> int:
    if name in COMMON:
        return 0
    if name in RING_1:
        return 1
    if name in RING_2:
        return 2
    assert name in RING_3, f"gateway/{name} belongs to no ring"
    return 3


@pytest.mark.parametrize("path", _files(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_imports_point_inward(path: Path) -> None:
    here = path.relative_to(ROOT).parts[0].removesuffix(".py")
    imports = {name for name in _imports(path) if name.split(".")[0] == "gateway"}
    for module in imports:
        there = _house(module)
        if here == "agent":
            assert there in COMMON | {"agent"}, f"the agent runtime imports {module}"
        elif there == "agent":
            reads_the_app = module.startswith("gateway.agent.app")
            assert _ring(here) == 3 or (_ring(here) == 2 and reads_the_app), module
        else:
            assert _ring(there) <= _ring(here), f"{here} imports {module}, which lies further out"


@pytest.mark.parametrize(
    "path",
    [p for p in _files() if p.relative_to(ROOT).parts[0] in RING_1],
    ids=lambda p: p.relative_to(ROOT).as_posix(),
)
def test_ring_1_has_no_clock_socket_or_task(path: Path) -> None:
    assert {name.split(".")[0] for name in _imports(path)}.isdisjoint(IMPURE)


@pytest.mark.parametrize("path", _files(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_no_file_is_longer_than_600_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 600
