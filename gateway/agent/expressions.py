"""Conditions over session variables, in the common subset of CEL: `tier == "gold" && tries > 2`.

Literals, names, `.field`, `[index]`, arithmetic, comparison, `in`, `!`, `&&`, `||`, `?:`, lists,
`size()`, `has()`, `string()`, `int()`, `double()`, `bool()` and the text methods `contains`,
`startsWith`, `endsWith`, `matches`, `size`, `lowerAscii`, `upperAscii`. A name is a variable;
`variables.x`, `state.x`, `context.variables.x` and `$context.variables.x` mean the same. What is
not there is null, so a condition over it is simply false.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.errors import AppError

MAX_CHARS = 4000
MAX_DEPTH = 50
MAX_TEXT = 10_000
"""Longer texts are not searched by regular expressions."""

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>\d+\.\d+(?:[eE][+-]?\d+)?|\d+)
    | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<name>\$?[A-Za-z_]\w*)
    | (?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]])
    )""",
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}

Evaluate = Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Expression:
    """A condition that has been read; `value` may be asked at any time."""

    text: str
    _evaluate: Evaluate

    def value(self, variables: Mapping[str, Any]) -> Any:
        """What the expression comes to; None where it cannot be computed."""
        try:
            return self._evaluate(variables)
        except (TypeError, ValueError, ArithmeticError, LookupError, re.error, RecursionError):
            return None

    def holds(self, variables: Mapping[str, Any]) -> bool:
        """Whether the condition is true."""
        return self.value(variables) is True


def parse_expression(text: str, where: str) -> Expression:
    """Read a condition. Raises AppError app.expression with the place of the fault."""
    if len(text) > MAX_CHARS:
        raise AppError("app.expression", "the condition is too long", where=where)
    parser = _Parser(text, where)
    evaluate = parser.ternary(0)
    parser.end()
    return Expression(text, evaluate)


class _Parser:
    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._where = where
        self._tokens: list[tuple[str, str, int]] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                raise self._fault("cannot read this", position)
            kind = match.lastgroup or ""
            self._tokens.append((kind, match[kind], match.start(kind)))
            position = match.end()
        self._next = 0

    def _fault(self, what: str, position: int) -> AppError:
        rest = self._text[position : position + 20].strip() or "the end"
        return AppError("app.expression", f"{what}: {rest!r} in {self._text!r}", where=self._where)

    def _here(self) -> tuple[str, str, int]:
        if self._next < len(self._tokens):
            return self._tokens[self._next]
        return "end", "", len(self._text)

    def _take(self, *signs: str) -> str | None:
        kind, value, _ = self._here()
        if (kind == "sign" and value in signs) or (kind == "name" and value in signs):
            self._next += 1
            return value
        return None

    def _expect(self, sign: str) -> None:
        if self._take(sign) is None:
            raise self._fault(f"{sign!r} is missing before", self._here()[2])

    def end(self) -> None:
        """Nothing may follow."""
        kind, _, position = self._here()
        if kind != "end":
            raise self._fault("unexpected", position)

    # ---- from the loosest to the tightest binding

    def ternary(self, depth: int) -> Evaluate:
        if depth > MAX_DEPTH:
            raise self._fault("nested too deeply", self._here()[2])
        condition = self._or(depth)
        if self._take("?") is None:
            return condition
        yes = self.ternary(depth + 1)
        self._expect(":")
        no = self.ternary(depth + 1)
        return lambda v: yes(v) if condition(v) is True else no(v)

    def _or(self, depth: int) -> Evaluate:
        options = [self._and(depth)]
        while self._take("||"):
            options.append(self._and(depth))
        if len(options) == 1:
            return options[0]
        return lambda v: any(option(v) is True for option in options)

    def _and(self, depth: int) -> Evaluate:
        conditions = [self._relation(depth)]
        while self._take("&&"):
            conditions.append(self._relation(depth))
        if len(conditions) == 1:
            return conditions[0]
        return lambda v: all(condition(v) is True for condition in conditions)

    def _relation(self, depth: int) -> Evaluate:
        left = self._sum(depth)
        while (sign := self._take("==", "!=", "<", "<=", ">", ">=", "in")) is not None:
            left = _relation(sign, left, self._sum(depth))
        return left

    def _sum(self, depth: int) -> Evaluate:
        left = self._product(depth)
        while (sign := self._take("+", "-")) is not None:
            left = _arithmetic(sign, left, self._product(depth))
        return left

    def _product(self, depth: int) -> Evaluate:
        left = self._unary(depth)
        while (sign := self._take("*", "/", "%")) is not None:
            left = _arithmetic(sign, left, self._unary(depth))
        return left

    def _unary(self, depth: int) -> Evaluate:
        if depth > MAX_DEPTH:
            raise self._fault("nested too deeply", self._here()[2])
        if self._take("!"):
            negated = self._unary(depth + 1)
            return lambda v: negated(v) is not True
        if self._take("-"):
            positive = self._unary(depth + 1)
            return lambda v: -positive(v)
        return self._member(depth)

    def _member(self, depth: int) -> Evaluate:
        value = self._primary(depth)
        while True:
            if self._take("."):
                kind, name, position = self._here()
                if kind != "name":
                    raise self._fault("a name is missing before", position)
                self._next += 1
                if self._take("("):
                    value = self._method(name, value, self._arguments(depth), position)
                else:
                    value = _field(value, name)
            elif self._take("["):
                index = self.ternary(depth + 1)
                self._expect("]")
                value = _index(value, index)
            else:
                return value

    def _arguments(self, depth: int) -> list[Evaluate]:
        arguments: list[Evaluate] = []
        while self._take(")") is None:
            if arguments:
                self._expect(",")
            arguments.append(self.ternary(depth + 1))
        return arguments

    def _method(
        self, name: str, value: Evaluate, arguments: list[Evaluate], position: int
    ) -> Evaluate:
        method = _METHODS.get(name)
        if method is None or len(arguments) != method[0]:
            raise self._fault("there is no such method", position)
        call = method[1]
        return lambda v: call(value(v), *(argument(v) for argument in arguments))

    def _primary(self, depth: int) -> Evaluate:
        kind, text, position = self._here()
        self._next += 1
        if kind == "number":
            number: float = float(text) if "." in text else int(text)
            return lambda v: number
        if kind == "text":
            plain = re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), text[1:-1])
            return lambda v: plain
        if kind == "sign" and text == "(":
            inner = self.ternary(depth + 1)
            self._expect(")")
            return inner
        if kind == "sign" and text == "[":
            return self._list(depth)
        if kind == "name":
            if text in _CONSTANTS:
                constant = _CONSTANTS[text]
                return lambda v: constant
            if self._take("("):
                return self._function(text, self._arguments(depth), position)
            if text in ("$context", "context"):
                return lambda v: v.get(text, {"variables": v, "state": v})
            if text in ("variables", "state"):
                return lambda v: v.get(text, v)
            return lambda v: v.get(text)
        raise self._fault("a value is missing before", position)

    def _list(self, depth: int) -> Evaluate:
        items: list[Evaluate] = []
        while self._take("]") is None:
            if items:
                self._expect(",")
            items.append(self.ternary(depth + 1))
        return lambda v: [item(v) for item in items]

    def _function(self, name: str, arguments: list[Evaluate], position: int) -> Evaluate:
        function = _FUNCTIONS.get(name)
        if function is None or len(arguments) != 1:
            raise self._fault("there is no such function", position)
        (argument,) = arguments
        return lambda v: function(argument(v))


_CONSTANTS: dict[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
}


def _field(value: Evaluate, name: str) -> Evaluate:
    def get(v: Mapping[str, Any]) -> Any:
        owner = value(v)
        return owner.get(name) if isinstance(owner, Mapping) else None

    return get


def _index(value: Evaluate, index: Evaluate) -> Evaluate:
    def get(v: Mapping[str, Any]) -> Any:
        owner, key = value(v), index(v)
        if isinstance(owner, Mapping):
            return owner.get(key)
        if isinstance(owner, list) and isinstance(key, int) and 0 <= key < len(owner):
            return owner[key]
        return None

    return get


def _same(left: Any, right: Any) -> bool:
    # True is 1 to Python, not to a condition.
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    return bool(left == right)


_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _relation(sign: str, left: Evaluate, right: Evaluate) -> Evaluate:
    if sign == "==":
        return lambda v: _same(left(v), right(v))
    if sign == "!=":
        return lambda v: not _same(left(v), right(v))
    if sign == "in":

        def contains(v: Mapping[str, Any]) -> bool:
            owner, item = right(v), left(v)
            return item in owner if isinstance(owner, Mapping | list) else False

        return contains
    compare = _ORDER[sign]
    return lambda v: bool(compare(left(v), right(v)))


def _arithmetic(sign: str, left: Evaluate, right: Evaluate) -> Evaluate:
    def compute(v: Mapping[str, Any]) -> Any:
        a, b = left(v), right(v)
        if sign == "+" and isinstance(a, str) and isinstance(b, str):
            return a + b
        if not (_is_number(a) and _is_number(b)):
            raise TypeError(sign)
        if sign == "+":
            return a + b
        if sign == "-":
            return a - b
        if sign == "*":
            return a * b
        if sign == "%":
            return a % b
        whole = isinstance(a, int) and isinstance(b, int)
        return int(a / b) if whole else a / b

    return compute


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _matches(text: str, pattern: str) -> bool:
    return len(text) <= MAX_TEXT and re.search(pattern, text) is not None


_METHODS: dict[str, tuple[int, Callable[..., Any]]] = {
    "contains": (1, lambda text, part: part in text),
    "startsWith": (1, lambda text, part: text.startswith(part)),
    "endsWith": (1, lambda text, part: text.endswith(part)),
    "matches": (1, _matches),
    "size": (0, len),
    "lowerAscii": (0, lambda text: text.lower()),
    "upperAscii": (0, lambda text: text.upper()),
}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "size": len,
    "has": lambda value: value is not None,
    "string": lambda value: value if isinstance(value, str) else str(value),
    "int": int,
    "double": float,
    "bool": lambda value: value is True or str(value).lower() == "true",
}
