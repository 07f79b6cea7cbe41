"""OpenAPI 3.0 and 3.1 documents as operations: what the model fills in, what the session."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from gateway.agent.tools.schema import MAX_PARTS, model_schema, resolved
from gateway.errors import AppError

CONTEXT_KEY = "x-ces-session-context"
BODY = "requestBody"
"""The argument that stands for a request body which is not an object of named fields."""
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter in the path, query, header or cookie. `context`: filled by the session."""

    name: str
    place: str
    schema: Mapping[str, Any]
    required: bool = False
    context: str = ""
    explode: bool = True
    style: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Body:
    """The request body; `fields`: its named fields become arguments of their own."""

    media_type: str
    schema: Mapping[str, Any]
    required: bool
    fields: bool
    context: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """One call that an API offers."""

    operation_id: str
    method: str
    path: str
    server: str
    description: str
    parameters: tuple[Parameter, ...]
    body: Body | None
    response: Mapping[str, Any] | None
    """Schema of the good answer, where one is declared."""
    document: Mapping[str, Any]

    def arguments(self) -> dict[str, Any]:
        """What the model fills in, as a schema; what the session fills in is not in it."""
        properties: dict[str, Any] = {}
        required: list[str] = []
        for parameter in self.parameters:
            if parameter.context:
                continue
            schema = model_schema(parameter.schema, self.document)
            if parameter.description:
                schema.setdefault("description", parameter.description)
            properties[parameter.name] = schema
            if parameter.required:
                required.append(parameter.name)
        if self.body is not None and not self.body.context:
            schema = model_schema(self.body.schema, self.document, without=CONTEXT_KEY)
            if self.body.fields:
                properties.update(schema.get("properties", {}))
                required += schema.get("required", [])
            else:
                properties[BODY] = schema
                required += [BODY] if self.body.required else []
        result: dict[str, Any] = {"type": "OBJECT", "properties": properties}
        if required:
            result["required"] = list(dict.fromkeys(required))
        return result


def parse_operations(text: str, where: str, server: str = "") -> tuple[Operation, ...]:
    """The operations of a document; `server` overrides the document's own.

    Raises AppError app.openapi naming the place.
    """
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        raise AppError(
            "app.openapi", "the API description is neither YAML nor JSON", where=f"{where}{line}"
        ) from None
    version = str(document.get("openapi", "")) if isinstance(document, Mapping) else ""
    if not version.startswith(("3.0", "3.1")):
        raise AppError(
            "app.openapi",
            f"openapi {version or 'version'} is not one that can be read",
            where=where,
            hint="Write it as openapi 3.0.x or 3.1.x.",
        )
    paths = document.get("paths") or {}
    if not isinstance(paths, Mapping):
        raise AppError("app.openapi", "paths is not a mapping", where=f"{where}:paths")
    return tuple(_operations(document, paths, where, server))


def _operations(
    document: Mapping[str, Any], paths: Mapping[str, Any], where: str, server: str
) -> Iterator[Operation]:
    known: set[str] = set()
    for path, item in paths.items():
        item = resolved(item, document) if isinstance(item, Mapping) else {}
        for method in _METHODS:
            body = item.get(method)
            if not isinstance(body, Mapping):
                continue
            place = f"{where}:paths.{path}.{method}"
            operation_id = str(body.get("operationId") or _made_up(method, str(path)))
            if operation_id in known:
                raise AppError(
                    "app.openapi", f"two operations are called {operation_id!r}", where=place
                )
            known.add(operation_id)
            yield Operation(
                operation_id=operation_id,
                method=method.upper(),
                path=str(path),
                server=server or _server(document, item, body),
                description=str(body.get("description") or body.get("summary") or ""),
                parameters=tuple(_parameters(document, item, body)),
                body=_body(document, body.get("requestBody")),
                response=_response(document, body.get("responses")),
                document=document,
            )


def _made_up(method: str, path: str) -> str:
    words = [word for word in path.replace("{", "").replace("}", "").split("/") if word]
    return "_".join([method, *words])


def _server(*levels: Mapping[str, Any]) -> str:
    """The nearest level's first server with its variables at their defaults."""
    for level in reversed(levels):
        servers = level.get("servers")
        if isinstance(servers, list) and servers and isinstance(servers[0], Mapping):
            url = str(servers[0].get("url", ""))
            variables = servers[0].get("variables")
            for name, one in variables.items() if isinstance(variables, Mapping) else ():
                if isinstance(one, Mapping):
                    url = url.replace("{" + str(name) + "}", str(one.get("default", "")))
            return url
    return ""


def _parameters(
    document: Mapping[str, Any], item: Mapping[str, Any], operation: Mapping[str, Any]
) -> Iterator[Parameter]:
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for level in (item, operation):
        for one in level.get("parameters") or ():
            if isinstance(one, Mapping):
                one = resolved(one, document)
                found[str(one.get("name")), str(one.get("in"))] = one
    for (name, place), one in found.items():
        schema = one.get("schema")
        schema = resolved(schema, document) if isinstance(schema, Mapping) else {}
        style = str(one.get("style") or ("form" if place in ("query", "cookie") else "simple"))
        explode = one.get("explode")
        yield Parameter(
            name=name,
            place=place,
            schema=schema,
            required=one.get("required") is True or place == "path",
            context=str(one.get(CONTEXT_KEY) or schema.get(CONTEXT_KEY) or ""),
            explode=explode if isinstance(explode, bool) else style == "form",
            style=style,
            description=str(one.get("description") or ""),
        )


def _body(document: Mapping[str, Any], value: Any) -> Body | None:
    if not isinstance(value, Mapping):
        return None
    value = resolved(value, document)
    media = _media(value.get("content"))
    if media is None:
        return None
    media_type, schema = media
    target = resolved(schema, document)
    # Four levels: what stands in allOf within allOf counts among the body's own fields.
    plain = model_schema(target, document, levels=4)
    context = value.get(CONTEXT_KEY) or target.get(CONTEXT_KEY) or ""
    return Body(
        media_type=media_type,
        schema=target,
        required=value.get("required") is True,
        fields=plain.get("type") == "OBJECT" and bool(plain.get("properties")),
        context=str(context),
    )


def _media(content: Any) -> tuple[str, Mapping[str, Any]] | None:
    """The media type to speak (JSON where offered) and its schema."""
    if not isinstance(content, Mapping) or not content:
        return None
    media_type = next((one for one in content if "json" in str(one)), next(iter(content)))
    entry = content[media_type]
    schema = entry.get("schema") if isinstance(entry, Mapping) else None
    return str(media_type), schema if isinstance(schema, Mapping) else {}


def _response(document: Mapping[str, Any], responses: Any) -> Mapping[str, Any] | None:
    if not isinstance(responses, Mapping):
        return None
    by_code = {str(code): one for code, one in responses.items()}
    for code in ("200", "201", "202", "2XX", "default"):
        if isinstance(by_code.get(code), Mapping):
            media = _media(resolved(by_code[code], document).get("content"))
            return media[1] if media is not None else None
    return None


def context_fields(
    schema: Mapping[str, Any], document: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Where in a body the session fills values in: (path of keys, `$context.…`), nearest first.

    A schema within itself is not gone into again: the session would fill in a body without end.
    """
    due: deque[tuple[tuple[str, ...], Mapping[str, Any], frozenset[int]]]
    due = deque([((), schema, frozenset())])
    for _ in range(MAX_PARTS):
        if not due:
            return
        path, one, within = due.popleft()
        one = resolved(one, document)
        if path and one.get(CONTEXT_KEY):
            yield path, str(one[CONTEXT_KEY])
            continue
        properties = one.get("properties")
        if not isinstance(properties, Mapping) or id(properties) in within:
            continue
        due += [
            ((*path, str(name)), inner, within | {id(properties)})
            for name, inner in properties.items()
            if isinstance(inner, Mapping)
        ]


def known_fields(value: Any, schema: Mapping[str, Any], document: Mapping[str, Any]) -> Any:
    """An answer without the fields that its schema does not declare."""
    schema = resolved(schema, document)
    properties = schema.get("properties")
    if isinstance(value, dict) and isinstance(properties, Mapping):
        more = schema.get("additionalProperties")
        return {
            key: known_fields(item, properties.get(key) or {}, document)
            for key, item in value.items()
            if key in properties or more is True or isinstance(more, Mapping)
        }
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, Mapping):
        return [known_fields(item, items, document) for item in value]
    return value
