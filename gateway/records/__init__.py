"""Recordings and transcripts of calls: kept on disk as they happen, delivered afterwards."""

from __future__ import annotations

from gateway.agent.app.models import App
from gateway.config import Settings
from gateway.records.couriers import couriers
from gateway.records.keeper import NameSession, Records
from gateway.records.plan import make_plan, spool_folder

__all__ = ["Records", "build"]


def build(app: App, settings: Settings, name_session: NameSession) -> Records | None:
    """The records of a live gateway; None where nothing is kept and nothing was left.

    Raises AppError naming the key at fault, RecordError where no folder can be made.
    """
    wanted = settings.records
    if not wanted.enabled:
        return None
    plan = make_plan(app, wanted)
    left = any(spool_folder(wanted).glob("calls-*/*/"))
    if not plan.deliveries and not left:
        return None
    bring = couriers(wanted, settings.assets.gcs_endpoint)
    return Records(wanted, plan, name_session, bring)
