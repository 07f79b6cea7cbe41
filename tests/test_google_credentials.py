"""Who the process is at Google: each kind of credentials, each place, over the real client."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.auth.transport.requests import Request

from gateway import google_credentials
from gateway.config import CREDENTIALS_VARIABLE, ToolSettings
from gateway.errors import ConfigError
from tests.agent.loopback import Api, api_server
from tests.google_accounts import google_accounts, impersonating, pooled, user, written
from tests.runtime.ces_service import account

SCOPE = "https://www.googleapis.com/auth/cloud-platform"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that has no credentials yet."""
    for name in (CREDENTIALS_VARIABLE, "CLOUDSDK_CONFIG", "GOOGLE_CLOUD_QUOTA_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    return tmp_path


@pytest.fixture
def accounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    with google_accounts(tmp_path, monkeypatch) as api:
        yield api


def find(file: Path | None = None) -> Any:
    return google_credentials.find(file, [SCOPE], setting="a.key", service="the service")


def token(file: Path | None = None) -> str:
    credentials = find(file)
    request = Request()  # type: ignore[no-untyped-call]
    try:
        credentials.refresh(request)
    finally:
        request.session.close()
    return str(credentials.token)


def test_a_users_credentials_are_exchanged_for_a_token(accounts: Api, tmp_path: Path) -> None:
    assert token(written(tmp_path / "user.json", user())) == "of-user"
    assert "refresh_token=refresh-secret" in accounts.last["body"]
    # A user keeps what was granted: no scopes are asked for.
    assert "scope" not in accounts.last["body"]


def test_a_service_account_signs_for_its_token(tmp_path: Path) -> None:
    with api_server() as api:
        api.answers["/t"] = (200, {"access_token": "of-account", "expires_in": 3600})
        assert token(account(tmp_path, f"{api.url}/t")) == "of-account"
        assert "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt" in api.last["body"]


def test_a_user_who_acts_as_an_account_gets_its_token(accounts: Api, tmp_path: Path) -> None:
    assert token(written(tmp_path / "as.json", impersonating())) == "of-shop"
    assert accounts.last["headers"]["authorization"] == "Bearer of-user"
    assert accounts.last["body"]["scope"] == [SCOPE]


def test_a_workload_elsewhere_exchanges_its_own_proof(accounts: Api, tmp_path: Path) -> None:
    assert token(written(tmp_path / "pool.json", pooled(tmp_path))) == "of-pool"
    assert "subject_token=own-proof" in accounts.last["body"]
    # Nothing else is asked, such as the name of a project.
    assert [seen["path"] for seen in accounts.requests] == ["/v1/token"]


def test_the_place_is_the_setting_then_the_environment_then_gclouds_own_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(home / ".config/gcloud/application_default_credentials.json", user(client_id="gcloud"))
    assert find().client_id == "gcloud"
    monkeypatch.setenv(
        CREDENTIALS_VARIABLE, str(written(home / "env.json", user(client_id="environment")))
    )
    assert find().client_id == "environment"
    assert find(written(home / "own.json", user(client_id="setting"))).client_id == "setting"
    monkeypatch.setenv(CREDENTIALS_VARIABLE, "")
    assert find().client_id == "gcloud"


def test_gclouds_folder_may_be_elsewhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(home / "sdk/application_default_credentials.json", user(client_id="there"))
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(home / "sdk"))
    assert find().client_id == "there"


@pytest.mark.parametrize("place", ["setting", "environment", "gcloud"])
def test_quota_counts_for_the_environments_project_then_the_files(
    home: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    gcloud = home / ".config/gcloud/application_default_credentials.json"
    named = gcloud if place == "gcloud" else home / "user.json"
    file = written(named, user(quota_project_id="of-file"))
    if place == "environment":
        monkeypatch.setenv(CREDENTIALS_VARIABLE, str(file))
    given = file if place == "setting" else None
    assert find(given).quota_project_id == "of-file"
    monkeypatch.setenv("GOOGLE_CLOUD_QUOTA_PROJECT", "of-environment")
    assert find(given).quota_project_id == "of-environment"


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "{}", "\xff", '{"type": []}', '{"type": "lock"}'),
        *('{"type": "authorized_user"}', '{"type": "impersonated_service_account"}'),
        '{"type": "external_account"}',
    ],
)
@pytest.mark.parametrize("named", ["setting", "environment"])
def test_a_file_that_is_none_is_named_and_not_quoted(
    home: Path, monkeypatch: pytest.MonkeyPatch, content: str, named: str
) -> None:
    file = home / "wrong.json"
    file.write_text(content, encoding="latin-1")
    if named == "environment":
        monkeypatch.setenv(CREDENTIALS_VARIABLE, str(file))
    with pytest.raises(ConfigError) as caught:
        find(file if named == "setting" else None)
    error = caught.value
    assert (error.code, error.where) == ("config.credentials", str(file))
    assert "lock" not in f"{error.message} {error.hint}"


def test_the_runtimes_process_is_told_of_the_file_that_its_environment_lacks(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ToolSettings().for_runtime()["credentials"] is None
    monkeypatch.setenv(CREDENTIALS_VARIABLE, "/env.json")
    assert ToolSettings().for_runtime()["credentials"] == "/env.json"
    own = ToolSettings(credentials=home / "own.json")
    assert own.for_runtime()["credentials"] == str(home / "own.json")


SCRIPT = """
from google.auth.transport.requests import Request
from gateway import google_credentials
from gateway.errors import ConfigError
try:
    found = google_credentials.find(None, ["s"], setting="a.key", service="the service")
    found.refresh(Request())
    print(found.token, found.quota_project_id)
except ConfigError as error:
    print(error.code, error.message, error.where, error.hint, sep="|")
"""


def fresh(**environment: str) -> str:
    """What a process finds whose environment is this: where Google's machine is, is read once."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ".", **environment},
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.strip()


def test_on_googles_machines_the_metadata_server_gives_tokens(home: Path) -> None:
    with api_server() as api:
        api.headers["Metadata-Flavor"] = "Google"
        host = api.url.removeprefix("http://")
        here = "/computeMetadata/v1/instance/service-accounts/default"
        api.answers[f"{here}/token"] = (200, {"access_token": "of-machine", "expires_in": 3600})
        about = {"email": "machine@ours.example", "scopes": ["s"], "aliases": ["default"]}
        api.answers[f"{here}/"] = (200, about)
        found = fresh(
            HOME=str(home),
            GCE_METADATA_HOST=host,
            GCE_METADATA_IP=host,
            GOOGLE_CLOUD_QUOTA_PROJECT="payer",
        )
        assert found == "of-machine payer"
        assert all(seen["headers"]["metadata-flavor"] == "Google" for seen in api.requests)


def test_where_there_are_none_the_error_says_where_they_may_be(home: Path) -> None:
    code, message, where, hint = fresh(HOME=str(home), NO_GCE_CHECK="true").split("|")
    assert (code, where) == ("config.credentials", "a.key")
    assert message == "no credentials for the service: nothing on this machine names any"
    assert "set a.key or GOOGLE_APPLICATION_CREDENTIALS" in hint
    assert "gcloud auth application-default login" in hint
