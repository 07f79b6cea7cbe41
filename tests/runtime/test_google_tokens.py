"""Access tokens of sessions with Google's agent service: whose, how fresh, and who is charged."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.config import CREDENTIALS_VARIABLE
from tests.google_accounts import google_accounts, impersonating, pooled, user, written
from tests.runtime.ces_service import WAIT_S, ces_service
from tests.runtime.test_google import refusal, runtime, session


async def test_one_token_serves_many_calls_while_it_is_fresh(tmp_path: Path) -> None:
    async with ces_service(tmp_path) as service, runtime(service) as google:
        clients = await asyncio.gather(*(google.open(f"call-{n:04}", {}) for n in range(5)))
        await asyncio.gather(*(client.aclose() for client in clients))
        assert service.issued == 1
        assert set(service.upgrades) == {"Bearer token-1"}


async def test_a_token_that_runs_out_soon_is_renewed_before_the_next_call(tmp_path: Path) -> None:
    async with ces_service(tmp_path) as service:
        service.tokens = [(200, {"access_token": "short", "expires_in": 100})]
        async with runtime(service) as google:
            client = await google.open("call-0001", {})
            await client.aclose()
            client = await google.open("call-0002", {})
            await client.aclose()
        assert "Bearer token-1" in service.upgrades[-1]


async def test_what_is_still_valid_serves_while_tokens_cannot_be_had(tmp_path: Path) -> None:
    down: tuple[int, dict[str, Any]] = (400, {"error": "invalid_grant"})
    async with ces_service(tmp_path) as service:
        service.tokens = [(200, {"access_token": "short", "expires_in": 100}), *[down] * 12]
        async with runtime(service) as google:
            for name in ("call-0001", "call-0002"):
                client = await google.open(name, {})
                await client.aclose()
        assert service.upgrades == ["Bearer short"] * 2


async def test_no_token_at_all(tmp_path: Path) -> None:
    async with ces_service(tmp_path) as service:
        service.tokens = [(400, {"error": "invalid_grant"})] * 4
        failure = await refusal(service)
    assert failure.code == "runtime.credentials"
    assert not service.upgrades


async def test_that_there_is_no_token_stands_in_the_log_before_the_first_call(
    tmp_path: Path,
) -> None:
    async with ces_service(tmp_path) as service:
        service.tokens = [(400, {"error": "invalid_grant"})] * 4
        with capture_logs() as lines:
            async with runtime(service), asyncio.timeout(WAIT_S):
                while not lines:
                    await asyncio.sleep(0.01)
    assert lines[0]["event"] == "runtime.credentials"
    assert lines[0]["hint"]


# ---- whose


KINDS = {"of-user": user(), "of-shop": impersonating(), "of-pool": None}


@pytest.mark.parametrize("token", KINDS)
@pytest.mark.parametrize("place", ["setting", "environment", "gcloud"])
async def test_a_session_is_opened_with_a_token_of_each_kind_of_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str, place: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(CREDENTIALS_VARIABLE, raising=False)
    monkeypatch.delenv("CLOUDSDK_CONFIG", raising=False)
    gcloud = tmp_path / ".config/gcloud/application_default_credentials.json"
    content = KINDS[token] or pooled(tmp_path)
    file = written(gcloud if place == "gcloud" else tmp_path / "it.json", content)
    if place == "environment":
        monkeypatch.setenv(CREDENTIALS_VARIABLE, str(file))
    (tmp_path / "accounts").mkdir()
    with google_accounts(tmp_path / "accounts", monkeypatch):
        given = str(file) if place == "setting" else None
        async with (
            ces_service(tmp_path, credentials=given) as service,
            session(service) as (_, connection),
        ):
            assert connection.headers["Authorization"] == f"Bearer {token}"


@pytest.mark.parametrize(
    ("setting", "environment", "file", "charged"),
    [
        ("s", "e", "f", "s"),
        (None, "e", "f", "e"),
        (None, None, "f", "f"),
        ("s", None, None, "s"),
        (None, None, None, None),
    ],
)
async def test_the_charged_project_is_the_settings_then_the_environments_then_the_credentials(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    setting: str | None,
    environment: str | None,
    file: str | None,
    charged: str | None,
) -> None:
    monkeypatch.delenv("GOOGLE_CLOUD_QUOTA_PROJECT", raising=False)
    if environment:
        monkeypatch.setenv("GOOGLE_CLOUD_QUOTA_PROJECT", environment)
    content = user(quota_project_id=file) if file else user()
    credentials = written(tmp_path / "user.json", content)
    (tmp_path / "accounts").mkdir()
    with google_accounts(tmp_path / "accounts", monkeypatch):
        async with (
            ces_service(
                tmp_path, credentials=str(credentials), quota_project=setting or ""
            ) as service,
            session(service) as (_, connection),
        ):
            assert connection.headers.get("X-Goog-User-Project") == charged


async def test_a_user_whose_grant_was_withdrawn_is_told_so_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials = written(tmp_path / "user.json", user())
    (tmp_path / "accounts").mkdir()
    with google_accounts(tmp_path / "accounts", monkeypatch) as accounts:
        accounts.answers["/token"] = (400, {"error": "invalid_grant"})
        async with ces_service(tmp_path, credentials=str(credentials)) as service:
            failure = await refusal(service)
    assert failure.code == "runtime.credentials"
    assert "RefreshError" in failure.message
    assert "credentials" in str(failure.hint)
    assert "secret" not in f"{failure} {failure.hint}"
