"""What all sessions of an app share, put together once."""

from __future__ import annotations

import structlog

from gateway.agent.app.models import App
from gateway.agent.code import AppCode
from gateway.agent.conversation import Engine
from gateway.agent.failures import read_failure_handling
from gateway.agent.guardrails.guard import Guards
from gateway.agent.models.choose import choose_model
from gateway.agent.routes import Routes
from gateway.agent.runner import CodeRunner
from gateway.agent.tools.access import Access
from gateway.agent.tools.catalog import Catalog
from gateway.agent.tools.mocks import MockConfig, read_mocks
from gateway.agent.tools.requests import give_module
from gateway.config import Settings

log = structlog.get_logger()


def build_engine(
    app: App, settings: Settings, runner: CodeRunner, mocks: MockConfig | None = None
) -> Engine:
    """What all sessions share. Raises AppError (code, tools, guardrails, rules, model, mocks)."""
    give_module()
    catalog = Catalog(app, settings.tools)
    guards = Guards(app)
    routes = Routes(app)
    code = AppCode(app, (*catalog.sources(), *guards.sources(), *routes.sources()))
    for warning in (*app.warnings, *code.warnings):
        log.warning("app.warning", code=warning.code, message=warning.message, where=warning.where)
    if mocks is None:
        path = settings.tools.mocks
        mocks = read_mocks(path) if path is not None else MockConfig()
    return Engine(
        app=app,
        code=code,
        model=choose_model(app, settings),
        settings=settings,
        runner=runner,
        catalog=catalog,
        guards=guards,
        routes=routes,
        failures=read_failure_handling(app),
        access=Access(settings.tools),
        mocks=mocks,
    )
