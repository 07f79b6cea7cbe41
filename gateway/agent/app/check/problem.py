"""What a check finds: problems with a stable code, a place and the way out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gateway.errors import AppError


class Severity(StrEnum):
    """An error stops the app, or part of it; a warning is most likely a mistake."""

    ERROR = "error"
    WARNING = "warning"


class Code(StrEnum):
    """Every code of a problem; errors of the runtime carry the same ones."""

    # files
    JSON = "app.json"
    YAML = "app.yaml"
    SHAPE = "app.shape"
    ENCODING = "app.encoding"
    AMBIGUOUS = "app.ambiguous"
    TEMPLATE = "app.template"
    PLACEHOLDER = "app.placeholder"
    MISSING_FILE = "app.missing_file"
    PATH = "app.path"
    UNUSED_FILE = "app.unused_file"
    # objects
    DUPLICATE_KEY = "app.duplicate_key"
    UNKNOWN_KEY = "app.unknown_key"
    VALUE = "app.value"
    ENUM = "app.enum"
    DURATION = "app.duration"
    NO_AGENTS = "app.no_agents"
    DUPLICATE_NAME = "app.duplicate_name"
    RESERVED = "app.reserved"
    TOOL_KIND = "app.tool_kind"
    NOT_AVAILABLE = "app.not_available"
    NO_CODE = "app.no_code"
    VARIABLE_TYPE = "app.variable_type"
    # references
    REFERENCE = "app.reference"
    SEVERAL_PARENTS = "app.several_parents"
    ROOT_IS_CHILD = "app.root_is_child"
    CYCLE = "app.cycle"
    UNREACHABLE = "app.unreachable"
    UNDECLARED = "app.undeclared_variable"
    NOT_LISTED = "app.tool_not_listed"
    REFERENCE_SYNTAX = "app.reference_syntax"
    # code
    SYNTAX = "app.syntax"
    NO_FUNCTION = "app.no_function"
    SIGNATURE = "app.signature"
    TOOL_KWARGS = "app.tool_kwargs"
    TOOL_NONE_DEFAULT = "app.tool_none_default"
    IMPORT = "app.import"
    UNDEFINED_NAME = "app.undefined_name"
    UNKNOWN_MEMBER = "app.unknown_member"
    MODULE = "app.module"
    PAYLOAD_KEY = "app.payload_key"
    PAYLOAD_VALUE = "app.payload_value"
    AUDIO_MISSING = "app.audio_missing"
    # audio
    AUDIO_RANGE = "app.audio_range"
    AUDIO_SOURCE = "app.audio_source"
    LANGUAGE = "app.language"
    # what a runtime reads in its own way
    OPENAPI = "app.openapi"
    CERTIFICATE = "app.certificate"
    GUARDRAIL = "app.guardrail"
    TRANSFER_RULE = "app.transfer_rule"
    EXPRESSION = "app.expression"
    # the rest
    SECRET = "app.secret"


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem. `file` is a path in the app; `line` counts from 1, None: the whole file."""

    code: str
    severity: Severity
    file: str
    line: int | None
    message: str
    hint: str

    @property
    def place(self) -> str:
        """`file:line`, as editors and terminals link it."""
        return f"{self.file}:{self.line}" if self.line is not None else self.file

    def to_json(self) -> dict[str, object]:
        """The problem as JSON data."""
        return {
            "code": str(self.code),
            "severity": str(self.severity),
            "file": self.file,
            "line": self.line,
            "message": self.message,
            "hint": self.hint,
        }


class Problems:
    """Collects problems; the same one is kept once."""

    def __init__(self) -> None:
        self._found: dict[Problem, None] = {}

    def error(self, code: Code, file: str, line: int | None, message: str, hint: str) -> None:
        """Something that stops the app or part of it."""
        self._found[Problem(code, Severity.ERROR, file, line, message, hint)] = None

    def warn(self, code: Code, file: str, line: int | None, message: str, hint: str) -> None:
        """Something that is most likely a mistake."""
        self._found[Problem(code, Severity.WARNING, file, line, message, hint)] = None

    def add(self, error: AppError, file: str = "", hint: str = "") -> None:
        """What the reader raised; its `where` is `file:line`, `file:key` or a file."""
        place, _, rest = (error.where or "").partition(":")
        line = int(rest) if rest.isdigit() else None
        problem = Problem(
            error.code,
            Severity.ERROR,
            file or place,
            line,
            error.message,
            error.hint or hint or "Mend what the message names.",
        )
        self._found[problem] = None

    def known(self, file: str, line: int | None) -> bool:
        """True where an error was found at this place already."""
        return any(
            problem.severity is Severity.ERROR and (problem.file, problem.line) == (file, line)
            for problem in self._found
        )

    def known_in(self, file: str) -> bool:
        """True where an error was found in this file."""
        return any(p.severity is Severity.ERROR and p.file == file for p in self._found)

    @property
    def has_errors(self) -> bool:
        """True where an error was found."""
        return any(problem.severity is Severity.ERROR for problem in self._found)

    def sorted(self) -> tuple[Problem, ...]:
        """All problems by place."""
        return tuple(sorted(self._found, key=lambda p: (p.file, p.line or 0, p.code, p.message)))
