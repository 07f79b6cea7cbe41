"""OpenAPI tools against a real API on the loopback: requests, proofs, answers."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from gateway.agent.scope import scoped
from gateway.agent.tools.auth import Authenticator
from gateway.agent.tools.http import Api as ApiSettings
from gateway.agent.tools.http import HttpBackend, ToolFailure, certificates
from gateway.agent.tools.openapi import parse_operations
from gateway.agent.tools.session_context import SessionContext
from gateway.config import ToolSettings
from gateway.errors import AppError
from tests.agent.loopback import Api, api_server
from tests.assets.servers import certificate
from tests.google_accounts import IMPERSONATED, google_accounts, impersonating, user, written

CONTEXT = SessionContext(
    project_id="p",
    project_number=7,
    location="l",
    app_id="a",
    session_id="s-1",
    turn_index=3,
    variables={"customer": "4711", "token": "t-1", "address": {"city": "Bonn"}},
)
DOCUMENT = """
openapi: 3.0.0
paths:
  /orders/{order_id}:
    put:
      operationId: put_order
      parameters:
        - {name: order_id, in: path, required: true, schema: {type: string}}
        - {name: turn, in: query, schema: {type: integer}, x-ces-session-context: $context.turn_index}
        - {name: tag, in: query, schema: {type: array, items: {type: string}}}
        - {name: near, in: query, explode: false, schema: {type: array, items: {type: string}}}
        - {name: where, in: query, style: deepObject, schema: {type: object}}
        - {name: X-Session, in: header, schema: {type: string}, x-ces-session-context: $context.session_id}
        - {name: flavour, in: cookie, schema: {type: string, default: plain}}
      requestBody:
        content:
          application/json:
            schema:
              type: object
              properties:
                status: {type: string}
                customer: {type: object, properties: {id: {type: string, x-ces-session-context: $context.variables.customer}}}
  /all:
    post:
      operationId: all_variables
      requestBody:
        content: {application/json: {schema: {$ref: "#/components/schemas/All"}}}
  /form:
    post:
      operationId: form
      requestBody:
        content: {application/x-www-form-urlencoded: {schema: {type: object, properties: {a: {type: string}}}}}
  /answer:
    get:
      operationId: answer
      responses:
        "200": {content: {application/json: {schema: {type: object, properties: {known: {type: integer}}}}}}
  /hang:
    get: {operationId: hang}
components:
  schemas:
    All: {type: object, x-ces-session-context: $context.variables}
"""  # noqa: E501


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with api_server() as server:
        yield server


def _call(
    api: Api, name: str, _settings: ToolSettings | None = None, _shared: Any = None, **args: Any
) -> Any:
    operations = {o.operation_id: o for o in parse_operations(DOCUMENT, "api.yaml", api.url)}
    shared = ApiSettings(**(_shared or {}), where="api.yaml")
    backend = HttpBackend(operations[name], shared, Authenticator(_settings or ToolSettings()))
    return backend.call(args, CONTEXT)


# ---- requests


def test_arguments_reach_their_places_and_the_session_fills_in_its_own(api: Api) -> None:
    _call(
        api,
        "put_order",
        order_id="a/b c",
        tag=["x", "y"],
        near=["u", "v"],
        where={"city": "Ulm"},
        status="done",
        turn=99,
    )
    seen = api.last
    assert (seen["method"], seen["path"]) == ("PUT", "/orders/a/b c")
    assert sorted(seen["query"]) == [
        ["near", "u,v"],
        ["tag", "x"],
        ["tag", "y"],
        ["turn", "3"],
        ["where[city]", "Ulm"],
    ]
    assert seen["headers"]["x-session"] == "s-1"
    assert seen["cookies"] == {"flavour": "plain"}
    assert seen["body"] == {"status": "done", "customer": {"id": "4711"}}


def test_all_variables_can_be_the_body(api: Api) -> None:
    _call(api, "all_variables", requestBody={"mine": 1})
    assert api.last["body"] == CONTEXT.variables


def test_a_form_is_sent_as_a_form(api: Api) -> None:
    _call(api, "form", a="b c")
    assert api.last["body"] == "a=b+c"


@pytest.mark.parametrize(
    ("args", "words"),
    [({}, "needs order_id"), ({"order_id": "1", "colour": "red"}, "no parameter colour")],
)
def test_wrong_arguments_are_told_so_that_the_model_can_mend_them(
    api: Api, args: dict[str, Any], words: str
) -> None:
    with pytest.raises(ToolFailure, match=words):
        _call(api, "put_order", **args)


# ---- answers


def test_an_error_of_the_service_is_an_error_to_the_model(api: Api) -> None:
    api.answers["/answer"] = (404, "no such order")
    with pytest.raises(ToolFailure, match="HTTP 404: no such order"):
        _call(api, "answer")


@pytest.mark.parametrize(
    ("ignore", "result"), [(True, {"known": 1}), (False, {"known": 1, "new": 2})]
)
def test_unknown_fields_of_an_answer_can_be_ignored(
    api: Api, ignore: bool, result: dict[str, Any]
) -> None:
    api.answers["/answer"] = (200, {"known": 1, "new": 2})
    assert _call(api, "answer", _shared={"ignore_unknown_fields": ignore}) == result


def test_plain_text_is_text_and_nothing_is_an_empty_object(api: Api) -> None:
    api.answers["/answer"] = (200, "hello")
    assert _call(api, "answer") == "hello"
    api.answers["/answer"] = (200, "")
    assert _call(api, "answer") == {}


def test_a_service_that_hangs_is_left_at_the_deadline(api: Api) -> None:
    call = scoped(lambda: _call(api, "hang"), "s", None, 0.2)
    with pytest.raises(ToolFailure, match="could not be reached"):
        call()
    api.hold.set()


def test_an_api_without_an_address_says_what_to_set() -> None:
    with pytest.raises(AppError) as caught:
        _call(Api(url=""), "answer")
    assert "environment.json" in str(caught.value.hint)


def test_a_service_is_trusted_by_the_tools_own_certificate(tmp_path: Path) -> None:
    tls, authority = certificate(tmp_path, "127.0.0.1")
    config = {"caCerts": [{"cert": base64.b64encode(authority.read_bytes()).decode()}]}
    with api_server(tls) as secure:
        trusted = {"ca_certificates": certificates(config)}
        _call(secure, "answer", None, trusted)
        assert secure.last["path"] == "/answer"
        with pytest.raises(ToolFailure, match="could not be reached"):
            _call(secure, "answer")
    with pytest.raises(AppError) as caught:
        certificates({"caCerts": [{"cert": "?"}]})
    assert caught.value.code == "app.certificate"


# ---- proofs


def _settings(**values: Any) -> ToolSettings:
    return ToolSettings.model_validate(values)


@pytest.mark.parametrize("key", ["projects/p/secrets/shop-key/versions/2", "shop-key"])
def test_an_api_key_goes_into_a_header_or_the_query(api: Api, key: str) -> None:
    api.answers.pop("/answer", None)
    config = {"keyName": "X-Key", "apiKeySecretVersion": "projects/p/secrets/shop-key/versions/2"}
    settings = _settings(secrets={key: "hunter2"})
    _call(api, "answer", settings, {"authentication": {"apiKeyConfig": config}})
    assert api.last["headers"]["x-key"] == "hunter2"
    config = {**config, "requestLocation": "QUERY_STRING"}
    _call(api, "answer", settings, {"authentication": {"apiKeyConfig": config}})
    assert api.last["query"] == [["X-Key", "hunter2"]]


def test_a_secret_that_is_not_set_is_named_and_how_to_set_it(api: Api) -> None:
    config = {"apiKeyConfig": {"keyName": "k", "apiKeySecretVersion": "x"}}
    with pytest.raises(AppError) as caught:
        _call(api, "answer", None, {"authentication": config})
    assert caught.value.code == "tool.auth"
    assert caught.value.hint == "--set tools.secrets.x=…"


def test_a_bearer_token_comes_from_the_session(api: Api) -> None:
    api.answers.pop("/answer", None)
    token = {"bearerTokenConfig": {"token": "$context.variables.token"}}
    _call(api, "answer", None, {"authentication": token})
    assert api.last["headers"]["authorization"] == "Bearer t-1"
    for wrong in ("plain", "$context.variables.nothing", "$context.nonsense"):
        with pytest.raises(AppError):
            _call(api, "answer", None, {"authentication": {"bearerTokenConfig": {"token": wrong}}})


def test_client_credentials_are_exchanged_once_for_a_token(api: Api) -> None:
    api.answers.pop("/answer", None)
    api.answers["/token"] = (200, {"access_token": "granted", "expires_in": 3600})
    config = {
        "oauthConfig": {
            "oauthGrantType": "CLIENT_CREDENTIAL",
            "clientId": "me",
            "clientSecretVersion": "secret",
            "tokenEndpoint": f"{api.url}/token",
            "scopes": ["a", "b"],
        }
    }
    operation = next(o for o in parse_operations(DOCUMENT, "x", api.url) if o.path == "/answer")
    authenticator = Authenticator(_settings(secrets={"secret": "s3"}))
    backend = HttpBackend(operation, ApiSettings(authentication=config), authenticator)
    api.requests.clear()
    backend.call({}, CONTEXT)
    backend.call({}, CONTEXT)
    assert [seen["path"] for seen in api.requests] == ["/token", "/answer", "/answer"]
    body = api.requests[0]["body"]
    assert "grant_type=client_credentials" in body
    assert "scope=a+b" in body
    assert "client_id=me&client_secret=s3" in body
    assert api.last["headers"]["authorization"] == "Bearer granted"


def test_a_secret_does_not_follow_a_redirect(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(api.answers, "/moved", (307, {}))
    elsewhere = api.url.replace("127.0.0.1", "localhost")
    monkeypatch.setattr(api, "headers", {"Location": f"{elsewhere}/thief"})
    config = {
        "oauthConfig": {
            "oauthGrantType": "CLIENT_CREDENTIAL",
            "clientId": "me",
            "clientSecretVersion": "secret",
            "tokenEndpoint": f"{api.url}/moved",
        }
    }
    authenticator = Authenticator(_settings(secrets={"secret": "s3"}))
    api.requests.clear()
    with pytest.raises(AppError) as caught:
        authenticator.prove(config, CONTEXT, api.url)
    assert caught.value.code == "tool.auth"
    assert [seen["path"] for seen in api.requests] == ["/moved"]


@pytest.fixture(scope="module")
def key_file(api: Api, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A service account key whose token endpoint is the loopback API."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = tmp_path_factory.mktemp("key") / "key.json"
    path.write_text(
        json.dumps(
            {
                "type": "service_account",
                "client_email": "gateway@p.iam.gserviceaccount.com",
                "private_key": pem.decode(),
                "private_key_id": "1",
                "token_uri": f"{api.url}/google-token",
            }
        )
    )
    return path


def _jwt(claims: dict[str, Any]) -> str:
    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part(claims)}.{part('')}"


def test_the_service_agent_proves_itself_by_an_id_token(api: Api, key_file: Path) -> None:
    token = _jwt({"exp": int(time.time()) + 3600, "aud": api.url})
    api.answers.pop("/answer", None)
    api.answers["/google-token"] = (200, {"id_token": token})
    config = {"serviceAgentIdTokenAuthConfig": {}}
    _call(api, "answer", _settings(credentials=key_file), {"authentication": config})
    assert api.last["headers"]["authorization"] == f"Bearer {token}"


def test_who_acts_as_an_account_has_its_id_token(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = _jwt({"exp": int(time.time()) + 3600, "aud": api.url})
    api.answers.pop("/answer", None)
    path = f"/v1/projects/-/serviceAccounts/{IMPERSONATED}:generateIdToken"
    file = written(tmp_path / "as.json", impersonating())
    with google_accounts(tmp_path, monkeypatch) as accounts:
        accounts.answers[path] = (200, {"token": token})
        config = {"serviceAgentIdTokenAuthConfig": {}}
        _call(api, "answer", _settings(credentials=file), {"authentication": config})
    assert api.last["headers"]["authorization"] == f"Bearer {token}"
    assert accounts.last["body"]["audience"] == api.url


MACHINE = """
import sys
from gateway.agent.tools.auth import Authenticator
from gateway.agent.tools.session_context import SessionContext
from gateway.config import ToolSettings
prover = Authenticator(ToolSettings())
proof = prover.prove({"serviceAgentIdTokenAuthConfig": {}}, SessionContext(), "https://shop.example")
print(proof.headers["Authorization"])
"""


def test_on_googles_machines_the_id_token_is_the_machines_own(tmp_path: Path) -> None:
    with api_server() as machine:
        machine.headers["Metadata-Flavor"] = "Google"
        token = _jwt({"exp": int(time.time()) + 3600})
        place = "/computeMetadata/v1/instance/service-accounts/default"
        machine.answers[f"{place}/identity"] = (200, token)
        about = {"email": "machine@ours.example", "scopes": [], "aliases": ["default"]}
        machine.answers[f"{place}/"] = (200, about)
        host = machine.url.removeprefix("http://")
        done = subprocess.run(
            [sys.executable, "-c", MACHINE],
            env={
                **{"PATH": "/usr/bin:/bin", "PYTHONPATH": ".", "HOME": str(tmp_path)},
                **{"GCE_METADATA_HOST": host, "GCE_METADATA_IP": host},
            },
            cwd=Path(__file__).parents[3],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert done.stdout.strip() == f"Bearer {token}"
        asked = next(seen for seen in machine.requests if seen["path"].endswith("/identity"))
        assert ["audience", "https://shop.example"] in asked["query"]


def test_a_user_makes_no_id_token_and_is_told_who_does(api: Api, tmp_path: Path) -> None:
    settings = _settings(credentials=written(tmp_path / "user.json", user()))
    config = {"serviceAgentIdTokenAuthConfig": {}}
    with pytest.raises(AppError) as caught:
        _call(api, "answer", settings, {"authentication": config})
    assert caught.value.code == "tool.auth"
    assert "service account" in str(caught.value.hint)


def test_a_user_too_may_stand_behind_another_service_account(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.answers.pop("/answer", None)
    path = "/v1/projects/-/serviceAccounts/shop@p.iam:generateAccessToken"
    api.answers[path] = (200, {"accessToken": "theirs"})
    config = {"serviceAccountAuthConfig": {"serviceAccount": "shop@p.iam"}}
    file = written(tmp_path / "user.json", user())
    with google_accounts(tmp_path, monkeypatch):
        settings = _settings(credentials=file, iam_url=api.url)
        _call(api, "answer", settings, {"authentication": config})
    asked = next(seen for seen in reversed(api.requests) if seen["path"] == path)
    assert asked["headers"]["authorization"] == "Bearer of-user"
    assert api.last["headers"]["authorization"] == "Bearer theirs"


def test_another_service_account_is_impersonated(api: Api, key_file: Path) -> None:
    api.answers.pop("/answer", None)
    api.answers["/google-token"] = (200, {"access_token": "ours", "expires_in": 3600})
    path = "/v1/projects/-/serviceAccounts/shop@p.iam:generateAccessToken"
    api.answers[path] = (200, {"accessToken": "theirs"})
    config = {"serviceAccountAuthConfig": {"serviceAccount": "shop@p.iam", "scopes": ["s"]}}
    settings = _settings(credentials=key_file, iam_url=api.url)
    _call(api, "answer", settings, {"authentication": config})
    asked = next(seen for seen in reversed(api.requests) if seen["path"] == path)
    assert asked["headers"]["authorization"] == "Bearer ours"
    assert asked["body"] == {"scope": ["s"], "lifetime": "3600s"}
    assert api.last["headers"]["authorization"] == "Bearer theirs"


@pytest.mark.parametrize(
    "content", [None, "{", "{}", '{"type": "impersonated_service_account"}', "[]"]
)
def test_no_google_credentials_is_told_with_the_way_out(
    api: Api, tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "none.json").write_text(content)
    settings = _settings(credentials=tmp_path / "none.json")
    config = {"serviceAgentIdTokenAuthConfig": {}}
    with pytest.raises(AppError) as caught:
        _call(api, "answer", settings, {"authentication": config})
    assert "tools.credentials" in str(caught.value.hint)
