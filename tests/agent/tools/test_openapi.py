"""OpenAPI documents become operations: arguments for the model, places for the session."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.tools.openapi import (
    BODY,
    Operation,
    context_fields,
    known_fields,
    parse_operations,
)
from gateway.errors import AppError

DOCUMENT = """
openapi: 3.0.3
info: {title: Shop, version: "1"}
servers:
  - url: https://{region}.shop.example/v1
    variables: {region: {default: eu}}
paths:
  /orders/{order_id}:
    parameters:
      - {name: order_id, in: path, required: true, schema: {type: string}}
    get:
      operationId: get_order
      summary: One order.
      parameters:
        - {name: session, in: query, schema: {type: string}, x-ces-session-context: $context.session_id}
        - name: expand
          in: query
          description: What to add.
          schema: {type: array, items: {type: string, enum: [lines, history]}}
      responses:
        "200":
          content:
            application/json: {schema: {$ref: "#/components/schemas/Order"}}
    patch:
      requestBody:
        required: true
        content:
          application/json: {schema: {$ref: "#/components/schemas/Change"}}
      responses: {"204": {description: done}}
  /notes:
    post:
      operationId: note
      requestBody:
        content:
          text/plain: {schema: {type: string}}
components:
  schemas:
    Order:
      type: object
      properties:
        id: {type: string}
        lines: {type: array, items: {$ref: "#/components/schemas/Line"}}
    Line: {type: object, properties: {sku: {type: string}}}
    Change:
      type: object
      required: [status, customer]
      properties:
        status: {type: string, description: The new status.}
        customer: {type: string, x-ces-session-context: $context.variables.customer}
"""  # noqa: E501


def _operations(text: str = DOCUMENT, **more: Any) -> dict[str, Operation]:
    return {one.operation_id: one for one in parse_operations(text, "api.yaml", **more)}


def test_an_operation_has_its_method_path_server_and_description() -> None:
    operation = _operations()["get_order"]
    assert (operation.method, operation.path) == ("GET", "/orders/{order_id}")
    assert operation.server == "https://eu.shop.example/v1"
    assert operation.description == "One order."


def test_the_model_fills_in_what_the_session_does_not() -> None:
    operations = _operations()
    assert operations["get_order"].arguments() == {
        "type": "OBJECT",
        "properties": {
            "order_id": {"type": "STRING"},
            "expand": {
                "type": "ARRAY",
                "items": {"type": "STRING", "enum": ["lines", "history"]},
                "description": "What to add.",
            },
        },
        "required": ["order_id"],
    }


def test_fields_of_a_body_are_arguments_and_an_operation_without_a_name_gets_one() -> None:
    arguments = _operations()["patch_orders_order_id"].arguments()
    assert arguments["properties"] == {
        "order_id": {"type": "STRING"},
        "status": {"type": "STRING", "description": "The new status."},
    }
    assert arguments["required"] == ["order_id", "status"]


def test_a_body_without_fields_is_one_argument() -> None:
    assert _operations()["note"].arguments()["properties"] == {BODY: {"type": "STRING"}}


def test_the_server_can_be_overridden() -> None:
    assert _operations(server="http://127.0.0.1:9")["note"].server == "http://127.0.0.1:9"


def test_version_3_1_may_say_null_by_a_list_of_types() -> None:
    document = yaml.safe_load(DOCUMENT)
    document["openapi"] = "3.1.0"
    schema = document["components"]["schemas"]["Change"]["properties"]["status"]
    schema["type"] = ["string", "null"]
    arguments = _operations(json.dumps(document))["patch_orders_order_id"].arguments()
    assert arguments["properties"]["status"] == {
        "type": "STRING",
        "nullable": True,
        "description": "The new status.",
    }


def test_an_answer_can_be_cut_to_what_is_declared() -> None:
    operation = _operations()["get_order"]
    assert operation.response is not None
    value = {"id": "1", "secret": 2, "lines": [{"sku": "a", "cost": 3}]}
    assert known_fields(value, operation.response, operation.document) == {
        "id": "1",
        "lines": [{"sku": "a"}],
    }


def test_a_schema_that_contains_itself_ends() -> None:
    text = """
    openapi: 3.0.0
    paths:
      /tree:
        post:
          requestBody:
            content: {application/json: {schema: {$ref: "#/components/schemas/Node"}}}
    components:
      schemas:
        Node:
          type: object
          properties: {name: {type: string}, children: {type: array, items: {$ref: "#/components/schemas/Node"}}}
    """  # noqa: E501
    (operation,) = _operations(text).values()
    assert operation.arguments()["properties"]["name"] == {"type": "STRING"}


def _web(fields: int, more: str = "") -> Operation:
    """An operation whose body has fields that all have the body's own schema again."""
    node = "{$ref: '#/components/schemas/Node'}"
    properties = ", ".join(f"p{number}: {node}" for number in range(fields))
    text = f"""
    openapi: 3.1.0
    paths:
      /web:
        post: {{requestBody: {{content: {{application/json: {{schema: {node}}}}}}}}}
    components:
      schemas: {{Node: {{type: object, properties: {{{properties}{more}}}}}}}
    """
    (operation,) = _operations(text).values()
    return operation


@pytest.mark.parametrize("fields", [3, 40])
def test_schemas_that_refer_to_each_other_stay_small_enough_to_be_read(fields: int) -> None:
    arguments = _web(fields).arguments()
    assert len(json.dumps(arguments)) < 100_000
    assert set(arguments["properties"]) == {f"p{number}" for number in range(fields)}
    assert arguments["properties"]["p0"]["type"] == "OBJECT"


def test_an_operation_of_very_many_arguments_names_them_all() -> None:
    many = "".join(f", q{number}: {{type: string}}" for number in range(3_000))
    assert len(_web(1, many).arguments()["properties"]) == 3_001


def test_the_session_fills_in_a_schema_within_itself_once() -> None:
    operation = _web(3, ", caller: {type: string, x-ces-session-context: $context.session_id}")
    assert "caller" not in operation.arguments()["properties"]
    assert operation.body is not None
    assert list(context_fields(operation.body.schema, operation.document)) == [
        (("caller",), "$context.session_id")
    ]


@pytest.mark.parametrize(
    "text",
    ["", "[1]", "{", "swagger: '2.0'", "openapi: 3.0.0\npaths: 7"],
)
def test_what_cannot_be_read_is_told_with_its_place(text: str) -> None:
    with pytest.raises(AppError) as caught:
        parse_operations(text, "api.yaml")
    assert caught.value.code == "app.openapi"
    assert str(caught.value.where).startswith("api.yaml")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ("get", "post", "parameters", "name", "in", "schema", "$ref", "type", "properties")
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)


@given(_JSON)
def test_any_document_gives_operations_or_a_clear_error(paths: Any) -> None:
    text = json.dumps({"openapi": "3.1.0", "paths": {"/a": paths}, "components": paths})
    with contextlib.suppress(AppError):
        for operation in parse_operations(text, "api.yaml"):
            operation.arguments()
