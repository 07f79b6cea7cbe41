"""Call one operation of an OpenAPI tool: the request, the proof, the answer. Blocks its thread."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import requests

from gateway.agent.tools.auth import Authenticator, Proof
from gateway.agent.tools.openapi import (
    BODY,
    Body,
    Operation,
    Parameter,
    context_fields,
    known_fields,
)
from gateway.agent.tools.punctual import PunctualAdapter, session_in_time
from gateway.agent.tools.requests import CesResponse, fetch
from gateway.agent.tools.session_context import SessionContext
from gateway.agent.variables import text_of
from gateway.bidi import snake
from gateway.errors import AppError

MAX_ERROR_CHARS = 500


class ToolFailure(AppError):
    """A remote tool that refused or could not be reached; the model reads `message`."""

    def __init__(self, message: str, *, where: str | None = None) -> None:
        super().__init__("tool.failed", message, where=where)


@dataclass(frozen=True, slots=True)
class Api:
    """What all operations of one tool or toolset share."""

    authentication: Mapping[str, Any] = field(default_factory=dict)
    ca_certificates: tuple[bytes, ...] = ()
    ignore_unknown_fields: bool = False
    where: str = ""


@dataclass(frozen=True, slots=True)
class HttpBackend:
    """One operation, ready to be called."""

    operation: Operation
    api: Api
    authenticator: Authenticator

    def call(self, args: Mapping[str, Any], context: SessionContext) -> Any:
        """The answer as a JSON value. Raises ToolFailure, or AppError for what the app lacks."""
        operation = self.operation
        if not operation.server.startswith(("http://", "https://")):
            raise AppError(
                "app.openapi",
                f"the API has no address ({operation.server or 'no server'!r})",
                where=self.api.where,
                hint="Give servers in the API description, or url in environment.json.",
            )
        request = _Request(operation, args, context)
        proof = self.authenticator.prove(self.api.authentication, context, operation.server)
        with session_in_time() as session:
            # The operator's proxies hold; what lies in ~/.netrc is no proof of this app's.
            session.auth = _no_netrc
            if self.api.ca_certificates:
                session.mount("https://", PunctualAdapter(trusting(self.api.ca_certificates)))
            response = request.send(session, proof)
        return self._value(response)

    def _value(self, response: CesResponse) -> Any:
        if response.status_code == 0:
            raise ToolFailure("the service could not be reached", where=self.api.where)
        if not response.ok:
            words = response.text[:MAX_ERROR_CHARS]
            raise ToolFailure(f"HTTP {response.status_code}: {words}".rstrip(": "))
        if not response.content:
            return {}
        try:
            value = response.json()
        except (ValueError, RecursionError):
            return response.text
        operation = self.operation
        if self.api.ignore_unknown_fields and operation.response is not None:
            return known_fields(value, operation.response, operation.document)
        return value


def _no_netrc(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def trusting(certificates: tuple[bytes, ...]) -> ssl.SSLContext:
    """A client's TLS context with further authorities. Raises AppError app.certificate."""
    context = ssl.create_default_context()
    for data in certificates:
        try:
            context.load_verify_locations(
                cadata=data.decode() if data.startswith(b"-----") else data
            )
        except (ssl.SSLError, ValueError, UnicodeDecodeError):
            raise AppError(
                "app.certificate", "a certificate of tlsConfig cannot be read", where="tlsConfig"
            ) from None
    return context


def certificates(config: Any) -> tuple[bytes, ...]:
    """The certificates of a `tlsConfig`, decoded. Raises AppError app.certificate."""
    found = []
    entries = config.get("caCerts") or config.get("ca_certs") if isinstance(config, Mapping) else ()
    for entry in entries or ():
        text = entry.get("cert") if isinstance(entry, Mapping) else None
        if not isinstance(text, str):
            continue
        try:
            plain = text.startswith("-----")
            found.append(text.encode() if plain else base64.b64decode(text, validate=True))
        except ValueError:
            raise AppError(
                "app.certificate", "a certificate is not base64", where="tlsConfig.caCerts"
            ) from None
    return tuple(found)


class _Request:
    """Arguments sorted into path, query, headers, cookies and body."""

    def __init__(
        self, operation: Operation, args: Mapping[str, Any], context: SessionContext
    ) -> None:
        self._operation = operation
        self._context = context
        self._left = dict(args)
        self._path: dict[str, str] = {}
        self._query: list[tuple[str, str]] = []
        self._headers: dict[str, str] = {}
        self._cookies: dict[str, str] = {}
        for parameter in operation.parameters:
            self._place(parameter, self._of_parameter(parameter))
        self._body = self._of_body(operation.body)
        if self._left:
            raise ToolFailure(
                f"{operation.operation_id} has no parameter {', '.join(sorted(self._left))}"
            )

    def _take(self, name: str) -> Any:
        for spelling in (name, snake(name)):
            if spelling in self._left:
                return self._left.pop(spelling)
        return None

    def _of_parameter(self, parameter: Parameter) -> Any:
        if parameter.context:
            # What the session fills in is not the model's to choose.
            self._left.pop(parameter.name, None)
            return self._context.value(parameter.context)
        value = self._take(parameter.name)
        if value is None:
            value = parameter.schema.get("default")
        if value is None and parameter.required:
            raise ToolFailure(f"{self._operation.operation_id} needs {parameter.name}")
        return value

    def _place(self, parameter: Parameter, value: Any) -> None:
        if value is None:
            return
        name = parameter.name
        if parameter.place == "path":
            self._path[name] = quote(_joined(value, parameter.explode), safe="")
        elif parameter.place == "query":
            self._query += _pairs(parameter, value)
        elif parameter.place == "header":
            text = _joined(value, parameter.explode)
            self._headers[name] = text.replace("\r", " ").replace("\n", " ")
        elif parameter.place == "cookie":
            self._cookies[name] = _joined(value, parameter.explode)

    def _of_body(self, body: Body | None) -> Any:
        if body is None:
            return None
        if body.context:
            for name in (BODY, snake(BODY)):
                self._left.pop(name, None)
            return self._context.value(body.context)
        whole = self._take(BODY)
        if whole is None and not body.fields and "body" in self._left:
            whole = self._left.pop("body")
        if whole is None:
            if body.fields:
                whole = self._fields(body)
            elif body.schema.get("type") in (None, "object") and self._left:
                # An object whose fields are not named: all that is left belongs to it.
                whole, self._left = self._left, {}
        for path, reference in context_fields(body.schema, self._operation.document):
            whole = whole if isinstance(whole, dict) else {}
            inner = whole
            for key in path[:-1]:
                inner = inner.setdefault(key, {})
            inner[path[-1]] = self._context.value(reference)
        if whole is None and body.required:
            raise ToolFailure(f"{self._operation.operation_id} needs {BODY}")
        return whole

    def _fields(self, body: Body) -> dict[str, Any] | None:
        declared = self._operation.arguments()["properties"]
        named = {p.name for p in self._operation.parameters}
        values = {}
        for name in declared:
            if name in named:
                continue
            value = self._take(name)
            if value is not None:
                values[name] = value
        return values or ({} if body.required else None)

    def send(self, session: requests.Session, proof: Proof) -> CesResponse:
        """Perform the exchange."""
        operation = self._operation
        path = operation.path
        for name, text in self._path.items():
            path = path.replace("{" + name + "}", text)
        options: dict[str, Any] = {
            "params": [*self._query, *proof.query.items()],
            "headers": {"Accept": "application/json", **self._headers, **proof.headers},
            "cookies": self._cookies,
            "allow_redirects": False,
        }
        if self._body is not None and operation.body is not None:
            media_type = operation.body.media_type
            if "json" in media_type:
                options["json"] = self._body
                options["headers"]["Content-Type"] = media_type
            elif media_type == "application/x-www-form-urlencoded":
                body = self._body if isinstance(self._body, Mapping) else {}
                options["data"] = {key: text_of(value) for key, value in body.items()}
            else:
                options["data"] = text_of(self._body).encode()
                options["headers"]["Content-Type"] = media_type
        return fetch(
            operation.method, operation.server.rstrip("/") + path, session=session, **options
        )


def _joined(value: Any, explode: bool) -> str:
    if isinstance(value, list):
        return ",".join(text_of(item) for item in value)
    if isinstance(value, Mapping):
        between = "=" if explode else ","
        return ",".join(f"{key}{between}{text_of(item)}" for key, item in value.items())
    return text_of(value)


def _pairs(parameter: Parameter, value: Any) -> list[tuple[str, str]]:
    """A query parameter as `name=value` pairs, in its style."""
    name = parameter.name
    if isinstance(value, Mapping):
        if parameter.style == "deepObject":
            return [(f"{name}[{key}]", text_of(item)) for key, item in value.items()]
        if parameter.explode:
            return [(str(key), text_of(item)) for key, item in value.items()]
    if isinstance(value, list):
        if parameter.explode:
            return [(name, text_of(item)) for item in value]
        between = {"spaceDelimited": " ", "pipeDelimited": "|"}.get(parameter.style, ",")
        return [(name, between.join(text_of(item) for item in value))]
    return [(name, _joined(value, parameter.explode))]
