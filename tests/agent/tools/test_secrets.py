"""Secrets of tools, through Secret Manager's own client against its service on the loopback."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from gateway import google_credentials
from gateway.agent.scope import scoped
from gateway.agent.tools import secrets
from gateway.agent.tools.account import Account
from gateway.agent.tools.auth import Authenticator
from gateway.agent.tools.secrets import Secrets
from gateway.agent.tools.session_context import SessionContext
from gateway.config import ToolSettings
from gateway.errors import AppError
from tests.agent.loopback import Api, api_server
from tests.agent.tools.secret_manager import SecretManager, secret_manager
from tests.assets.servers import certificate
from tests.runtime.ces_service import account

NAME = "projects/p/secrets/shop-key/versions/latest"
VALUE = "hunter2"


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with api_server() as server:
        server.answers["/token"] = (200, {"access_token": "ours", "expires_in": 3600})
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, api: Api) -> Path:
    """Certificate and key of the service, and the gateway's account."""
    path = tmp_path_factory.mktemp("secrets")
    certificate(path, "127.0.0.1")
    account(path, f"{api.url}/token")
    return path


@pytest.fixture
def manager(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SecretManager]:
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "ca.pem"))
    pair = ((folder / name).read_bytes() for name in ("ca.pem", "key.pem"))
    with secret_manager(*pair) as service:
        service.secrets[NAME] = VALUE.encode()
        yield service


def settings(manager: SecretManager, folder: Path, **more: Any) -> ToolSettings:
    wanted = {"secret_manager": manager.host, "credentials": folder / "account.json", **more}
    return ToolSettings.model_validate(wanted)


def made(manager: SecretManager, folder: Path, **more: Any) -> Secrets:
    wanted = settings(manager, folder, **more)
    return Secrets(wanted, Account(wanted.credentials))


def refusal(known: Secrets, name: str = NAME) -> AppError:
    with pytest.raises(AppError) as caught:
        known.value(name)
    said = f"{caught.value} {caught.value.hint}"
    assert VALUE not in said
    assert "so it is with" not in said
    return caught.value


def test_a_version_is_asked_for_once_with_the_gateways_own_token(
    manager: SecretManager, folder: Path
) -> None:
    known = made(manager, folder)
    assert [known.value(NAME) for _ in range(3)] == [VALUE] * 3
    assert manager.asked == [(NAME, "Bearer ours")]


def test_each_kind_of_authentication_finds_its_secret_there(
    manager: SecretManager, folder: Path, api: Api
) -> None:
    prover = Authenticator(settings(manager, folder))
    key = {"apiKeyConfig": {"keyName": "X-Key", "apiKeySecretVersion": NAME}}
    assert prover.prove(key, SessionContext(), "").headers == {"X-Key": VALUE}
    oauth = {"clientSecretVersion": NAME, "tokenEndpoint": f"{api.url}/token"}
    proof = prover.prove({"oauthConfig": oauth}, SessionContext(), "")
    assert proof.headers == {"Authorization": "Bearer ours"}
    assert f"client_secret={VALUE}" in api.last["body"]


@pytest.mark.parametrize("own", [NAME, "shop-key"])
def test_what_the_settings_have_wins(manager: SecretManager, folder: Path, own: str) -> None:
    known = made(manager, folder, secrets={own: "mine"})
    assert known.value(NAME) == "mine"
    assert manager.asked == []


def test_a_regional_secret_is_a_version_too(manager: SecretManager, folder: Path) -> None:
    name = "projects/p/locations/europe-west3/secrets/shop-key/versions/7"
    manager.secrets[name] = b"regional"
    assert made(manager, folder).value(name) == "regional"


@pytest.mark.parametrize("name", ["shop-key", "projects/p/secrets/shop-key", "a/b/c"])
def test_a_name_that_is_no_version_is_not_asked_for(
    manager: SecretManager, folder: Path, name: str
) -> None:
    error = refusal(made(manager, folder), name)
    assert (error.code, manager.asked) == ("tool.auth", [])
    assert str(error.hint).startswith("--set tools.secrets.")


@pytest.mark.parametrize(
    ("fault", "way_out"),
    [
        (grpc.StatusCode.NOT_FOUND, "check project, secret and version"),
        (grpc.StatusCode.PERMISSION_DENIED, "roles/secretmanager.secretAccessor"),
        (grpc.StatusCode.UNAUTHENTICATED, "tools.credentials"),
        (grpc.StatusCode.FAILED_PRECONDITION, "enable this version"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "quota"),
        (grpc.StatusCode.UNAVAILABLE, "--set tools.secrets.shop-key"),
    ],
)
def test_a_refusal_says_which_secret_why_and_the_way_out(
    manager: SecretManager, folder: Path, fault: grpc.StatusCode, way_out: str
) -> None:
    manager.fault = fault
    error = refusal(made(manager, folder))
    assert (error.code, error.where) == ("tool.secret", NAME)
    assert error.message == f"Secret Manager does not give 'shop-key': {fault.name}"
    assert way_out in str(error.hint)
    # Nobody waits for a second attempt of the client's own.
    assert len(manager.asked) == 1


def test_a_service_that_hangs_is_left_before_the_tools_deadline(
    manager: SecretManager, folder: Path
) -> None:
    known = made(manager, folder)
    known.value(NAME)
    manager.hang = threading.Event()
    other = NAME.replace("shop", "other")
    ask = scoped(lambda: refusal(known, other), "s", None, 0.6)
    assert "DEADLINE_EXCEEDED" in ask().message


def test_a_secret_is_asked_for_again_and_the_last_one_serves_while_the_service_is_away(
    manager: SecretManager, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "KEPT_S", 0.0)
    known = made(manager, folder)
    known.value(NAME)
    manager.secrets[NAME] = b"changed"
    assert known.value(NAME) == "changed"
    manager.fault = grpc.StatusCode.UNAVAILABLE
    assert known.value(NAME) == "changed"
    manager.fault = grpc.StatusCode.FAILED_PRECONDITION
    assert refusal(known).code == "tool.secret"


def test_only_so_many_are_kept(
    manager: SecretManager, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "KEPT", 2)
    known = made(manager, folder)
    names = [f"projects/p/secrets/s{n}/versions/1" for n in range(3)]
    manager.secrets.update(dict.fromkeys(names, b"x"))
    for name in (*names, names[2], names[0]):
        known.value(name)
    assert [name for name, _ in manager.asked] == [*names, names[0]]


def test_a_secret_that_is_no_text_is_refused(manager: SecretManager, folder: Path) -> None:
    manager.secrets[NAME] = b"\xff\xfe"
    assert refusal(made(manager, folder)).message.endswith("no text")


def test_a_server_that_nobody_vouches_for_gets_no_token(
    manager: SecretManager, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, stranger = certificate(tmp_path, "127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(stranger))
    assert refusal(made(manager, folder)).code == "tool.secret"
    assert manager.asked == []


def test_authorities_that_cannot_be_read_are_named(
    manager: SecretManager, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "nowhere.pem"))
    assert "SSL_CERT_FILE" in refusal(made(manager, folder)).message


def test_the_end_of_a_line_is_no_part_of_a_secret(manager: SecretManager, folder: Path) -> None:
    manager.secrets[NAME] = f"{VALUE}\n".encode()
    assert made(manager, folder).value(NAME) == VALUE


def test_an_account_that_gets_no_token_asks_for_nothing(
    manager: SecretManager, folder: Path, tmp_path: Path, api: Api
) -> None:
    api.answers["/refuses"] = (400, {"error": "invalid_grant"})
    wrong = json.loads((folder / "account.json").read_text())
    (tmp_path / "wrong.json").write_text(json.dumps({**wrong, "token_uri": f"{api.url}/refuses"}))
    error = refusal(made(manager, folder, credentials=tmp_path / "wrong.json"))
    assert error.code == "tool.auth"
    assert "RefreshError" in error.message
    assert manager.asked == []


def test_without_credentials_both_ways_out_are_named_and_not_searched_for_each_time(
    manager: SecretManager, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = made(manager, folder, credentials=folder / "nowhere.json")
    error = refusal(known)
    assert error.code == "tool.auth"
    assert "the secret 'shop-key' is not set, and no credentials" in error.message
    assert "--set tools.secrets.shop-key=" in str(error.hint)
    assert "tools.credentials" in str(error.hint)
    monkeypatch.setattr(google_credentials, "find", None)
    assert refusal(known).message == error.message


WITHOUT = """
import sys
sys.modules["google.cloud.secretmanager_v1"] = None
from gateway.agent.tools.account import Account
from gateway.agent.tools.secrets import Secrets
from gateway.config import ToolSettings
from gateway.errors import AppError
try:
    Secrets(ToolSettings(), Account(None)).value("projects/p/secrets/shop-key/versions/1")
except AppError as error:
    print(error.code, error.message, error.hint)
"""


def test_without_the_client_the_error_names_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=60, check=True
    )
    assert "tool.auth the secret 'shop-key' is not set" in done.stdout
    assert "--set tools.secrets.shop-key=…, or pip install 'voice-gateway[google]'" in done.stdout


def test_neither_settings_nor_their_errors_show_a_secret(
    manager: SecretManager, folder: Path
) -> None:
    wanted = settings(manager, folder, secrets={"a": VALUE})
    assert VALUE not in f"{wanted!r} {wanted}"
