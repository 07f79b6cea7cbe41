"""`apiAuthentication`: how a tool proves to a service who calls. Blocks its thread."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway import bidi
from gateway.agent.tools.account import SCOPE, Account, refused, transport
from gateway.agent.tools.requests import fetch
from gateway.agent.tools.secrets import Secrets
from gateway.agent.tools.session_context import PREFIX, SessionContext
from gateway.config import ToolSettings
from gateway.errors import AppError

EARLY_S = 60.0
"""A token is renewed this long before it expires."""
DEFAULT_TOKEN_S = 3600.0


@dataclass(frozen=True, slots=True)
class Proof:
    """What goes with a request."""

    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)


class Authenticator:
    """Makes proofs for all tools of a process; keeps tokens until they expire."""

    def __init__(self, settings: ToolSettings) -> None:
        self._settings = settings
        self._account = Account(settings.credentials)
        self._secrets = Secrets(settings, self._account)
        self._tokens: dict[tuple[str, ...], tuple[str, float]] = {}
        self._lock = threading.Lock()

    def prove(self, config: Mapping[str, Any], context: SessionContext, audience: str) -> Proof:
        """The proof that `config` asks for; `audience`: the service's address.

        Raises AppError where it cannot be made: tool.auth, or tool.secret by Secret Manager.
        """
        api_key = bidi.get(config, "apiKeyConfig")
        if isinstance(api_key, Mapping):
            return self._api_key(api_key)
        bearer = bidi.get(config, "bearerTokenConfig")
        if isinstance(bearer, Mapping):
            return self._bearer(bearer, context)
        oauth = bidi.get(config, "oauthConfig")
        if isinstance(oauth, Mapping):
            return _authorization(self._oauth(oauth))
        if bidi.get(config, "serviceAgentIdTokenAuthConfig") is not None:
            return _authorization(self._id_token(audience))
        account = bidi.get(config, "serviceAccountAuthConfig")
        if isinstance(account, Mapping):
            return _authorization(self._account_token(account))
        if config:
            raise _failure(f"no known way to authenticate: {', '.join(config)}")
        return Proof()

    def _api_key(self, config: Mapping[str, Any]) -> Proof:
        name = str(bidi.get(config, "keyName") or "")
        value = self._secrets.value(str(bidi.get(config, "apiKeySecretVersion") or name))
        if str(bidi.get(config, "requestLocation")) == "QUERY_STRING":
            return Proof(query={name: value})
        return Proof(headers={name: value})

    def _bearer(self, config: Mapping[str, Any], context: SessionContext) -> Proof:
        token = str(config.get("token") or "")
        if not token.startswith(PREFIX):
            raise _failure(
                "a bearer token must come from the session",
                "token: $context.variables.NAME",
            )
        value = context.text(token)
        if not value:
            raise _failure(f"{token} is not set")
        return _authorization(value)

    def _kept(self, key: tuple[str, ...]) -> str | None:
        with self._lock:
            token, until = self._tokens.get(key, ("", 0.0))
        return token if time.monotonic() < until else None

    def _keep(self, key: tuple[str, ...], token: str, seconds: float) -> str:
        with self._lock:
            self._tokens[key] = (token, time.monotonic() + max(0.0, seconds - EARLY_S))
        return token

    def _oauth(self, config: Mapping[str, Any]) -> str:
        endpoint = str(bidi.get(config, "tokenEndpoint") or "")
        client = str(bidi.get(config, "clientId") or "")
        scopes = " ".join(str(scope) for scope in bidi.get(config, "scopes") or ())
        key = ("oauth", endpoint, client, scopes)
        if (token := self._kept(key)) is not None:
            return token
        form = {"grant_type": "client_credentials"}
        if scopes:
            form["scope"] = scopes
        secret = self._secrets.value(str(bidi.get(config, "clientSecretVersion") or ""))
        # A redirect would take the secret wherever it leads.
        response = fetch(
            "POST",
            endpoint,
            data={**form, "client_id": client, "client_secret": secret},
            allow_redirects=False,
        )
        value = _json(response.content) if response.ok else {}
        token = value.get("access_token")
        if not isinstance(token, str):
            raise _failure(f"the token endpoint answered {response.status_code or 'nothing'}")
        lasts = value.get("expires_in")
        return self._keep(
            key, token, float(lasts) if isinstance(lasts, int | float) else DEFAULT_TOKEN_S
        )

    # ---- Google accounts

    def _id_token(self, audience: str) -> str:
        key = ("id", audience)
        if (token := self._kept(key)) is not None:
            return token
        from google.auth.exceptions import GoogleAuthError

        try:
            credentials = self._id_credentials(audience)
            credentials.refresh(transport())
        except (GoogleAuthError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise refused(error) from None
        return self._keep(key, str(credentials.token), DEFAULT_TOKEN_S)

    def _id_credentials(self, audience: str) -> Any:
        from google.auth import impersonated_credentials as impersonated
        from google.oauth2 import id_token, service_account

        path = self._settings.credentials
        if path is None:
            return id_token.fetch_id_token_credentials(audience, request=transport())  # type: ignore[no-untyped-call]
        content = json.loads(path.read_bytes())
        match content.get("type") if isinstance(content, dict) else None:
            case "service_account":
                return service_account.IDTokenCredentials.from_service_account_info(  # type: ignore[no-untyped-call]
                    content, target_audience=audience
                )
            case "impersonated_service_account":
                target = impersonated.Credentials.from_impersonated_service_account_info(content)  # type: ignore[no-untyped-call]
                return impersonated.IDTokenCredentials(  # type: ignore[no-untyped-call]
                    target, target_audience=audience, include_email=True
                )
        raise _failure(
            "these Google credentials make no ID token",
            "Name the key of a service account, or one that impersonates it: tools.credentials.",
        )

    def _account_token(self, config: Mapping[str, Any]) -> str:
        account = str(bidi.get(config, "serviceAccount") or "")
        scopes = [str(scope) for scope in bidi.get(config, "scopes") or ()] or [SCOPE]
        key = ("account", account, *scopes)
        if (token := self._kept(key)) is not None:
            return token
        source = self._account.token()
        response = fetch(
            "POST",
            f"{self._settings.iam_url}/v1/projects/-/serviceAccounts/{account}:generateAccessToken",
            json={"scope": scopes, "lifetime": f"{DEFAULT_TOKEN_S:g}s"},
            headers={"Authorization": f"Bearer {source}"},
            allow_redirects=False,
        )
        token = _json(response.content).get("accessToken") if response.ok else None
        if not isinstance(token, str):
            raise _failure(
                f"no token of {account}: {response.status_code or 'no answer'}",
                "Our account needs the role Service Account Token Creator on it.",
            )
        return self._keep(key, token, DEFAULT_TOKEN_S)


def _authorization(token: str) -> Proof:
    return Proof(headers={"Authorization": f"Bearer {token}"})


def _json(content: bytes) -> Mapping[str, Any]:
    import orjson

    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, Mapping) else {}


def _failure(message: str, hint: str | None = None) -> AppError:
    return AppError("tool.auth", message, where="apiAuthentication", hint=hint)
