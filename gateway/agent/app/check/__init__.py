"""Check an exported app: every problem at once, each with its place and the way out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gateway.agent.app.check.audio import check_audio
from gateway.agent.app.check.code import check_code
from gateway.agent.app.check.context import check_context
from gateway.agent.app.check.instructions import check_instructions
from gateway.agent.app.check.problem import Code, Problem, Problems, Severity
from gateway.agent.app.check.references import check_reach, check_references
from gateway.agent.app.check.runtime import check_runtime
from gateway.agent.app.check.secrets import check_secrets
from gateway.agent.app.check.structure import check_files, check_structure
from gateway.agent.app.check.tree import read_tree
from gateway.agent.app.files import APP_FILES, open_files
from gateway.agent.app.layout import TEMPLATE_SUFFIXES
from gateway.agent.app.read import no_app_file

__all__ = ["Code", "Problem", "Report", "Severity", "check_app"]


@dataclass(frozen=True, slots=True)
class Report:
    """All problems of an app, by place."""

    path: str
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> int:
        """How many problems are errors."""
        return sum(1 for problem in self.problems if problem.severity is Severity.ERROR)

    @property
    def warnings(self) -> int:
        """How many problems are warnings."""
        return len(self.problems) - self.errors

    def to_json(self) -> dict[str, object]:
        """The report as JSON data."""
        return {
            "app": self.path,
            "ok": self.errors == 0,
            "errors": self.errors,
            "warnings": self.warnings,
            "problems": [problem.to_json() for problem in self.problems],
        }


def check_app(path: Path) -> Report:
    """Check the app at `path`, a folder or a zip.

    Raises AppError where there is no app at all: no such path, no zip that can be opened safely,
    no app file and no template of one. An app without errors can be read and its code compiled.
    """
    files = open_files(path)
    templates = any(name.endswith(TEMPLATE_SUFFIXES) for name in files.paths())
    if not templates and not any(name in APP_FILES for name in files.paths()):
        raise no_app_file(files)
    problems = Problems()
    tree = read_tree(files, problems)
    check_structure(tree)
    check_references(tree)
    check_instructions(tree)
    check_code(tree)
    check_reach(tree)
    check_audio(tree)
    check_secrets(tree)
    check_context(tree)
    check_files(tree)
    check_runtime(tree)
    return Report(str(path), problems.sorted())
