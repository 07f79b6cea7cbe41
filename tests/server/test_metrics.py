"""Figures carry codes, never a caller's data, and cannot grow without end."""

from __future__ import annotations

from gateway.channels.base import EndReason
from gateway.server.metrics import MAX_LABEL_VALUES, Metrics
from gateway.server.observers import CallObservers
from gateway.server.timelines import Timelines


async def test_what_calls_tell_is_counted() -> None:
    metrics = Metrics()
    observers = CallObservers(metrics, Timelines())
    metrics.watch(lambda: 3, lambda: True)
    metrics.admitted("twilio")
    metrics.refused("admission.full")
    observers.record("c", 0, "call_started", {})
    observers.record("c", 1, "barge_in", {"by": "speech", "cut": [1]})
    observers.record("c", 2, "error", {"code": "speech.failed", "message": "x"})
    observers.record("", 2, "error", {"code": "protocol.json"})
    observers.frame_late(0.009)
    observers.frame_late(0.011)
    observers.ended("c", EndReason.COMPLETED)
    metrics.loop_lag(-0.1)
    text = metrics.text().decode()
    for line in (
        "voice_gateway_calls_active 3.0",
        "voice_gateway_draining 1.0",
        'voice_gateway_calls_admitted_total{dialect="twilio"} 1.0',
        'voice_gateway_calls_refused_total{reason="admission.full"} 1.0',
        'voice_gateway_calls_ended_total{reason="completed"} 1.0',
        "voice_gateway_frames_late_total 1.0",
        'voice_gateway_frame_late_seconds_bucket{le="0.01"} 1.0',
        'voice_gateway_frame_late_seconds_bucket{le="+Inf"} 2.0',
        'voice_gateway_barge_ins_total{by="speech"} 1.0',
        'voice_gateway_errors_total{code="speech.failed"} 1.0',
        'voice_gateway_errors_total{code="protocol.json"} 1.0',
        "voice_gateway_loop_lag_seconds_count 1.0",
    ):
        assert line in text.splitlines()
    assert observers.timelines.lines("") is None


def test_labels_are_bounded() -> None:
    metrics = Metrics()
    for number in range(MAX_LABEL_VALUES + 50):
        metrics.error(f"code.n{number}")
    metrics.error("what the caller said")
    metrics.error("x" * 100)
    text = metrics.text().decode()
    assert text.count("voice_gateway_errors_total{") == MAX_LABEL_VALUES + 1
    assert 'voice_gateway_errors_total{code="other"} 52.0' in text


def test_records_are_counted_by_their_state() -> None:
    metrics = Metrics()
    metrics.watch_records(lambda: {"delivered": 3, "waiting": 1})
    text = metrics.text().decode()
    assert 'voice_gateway_records{state="delivered"} 3.0' in text
    assert 'voice_gateway_records{state="waiting"} 1.0' in text
