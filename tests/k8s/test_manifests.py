"""The manifests are valid, and agree with the server and with themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from gateway import config

ROOT = Path(__file__).parent.parent.parent
MANIFESTS = [
    document
    for file in sorted((ROOT / "k8s").glob("*.yaml"))
    for document in yaml.safe_load_all(file.read_text(encoding="utf-8"))
]


def _one(kind: str) -> dict[str, Any]:
    (found,) = [m for m in MANIFESTS if m["kind"] == kind]
    return dict(found)


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda m: m["kind"])
def test_manifest_is_valid_strictly(manifest: dict[str, Any]) -> None:
    kubernetes_validate.validate(manifest, "1.30", strict=True)


def _settings(tmp_path: Path) -> config.Settings:
    file = tmp_path / "settings.yaml"
    file.write_text(_one("ConfigMap")["data"]["settings.yaml"], encoding="utf-8")
    return config.load(file)


def test_settings_in_the_config_map_load(tmp_path: Path) -> None:
    assert _settings(tmp_path).server.host == "0.0.0.0"


def test_grace_period_covers_drain_and_goodbye(tmp_path: Path) -> None:
    server = _settings(tmp_path).server
    grace_s = _one("Deployment")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert grace_s > server.drain_s + server.shutdown_s


def test_records_are_spooled_where_there_is_a_volume_with_room(tmp_path: Path) -> None:
    records = _settings(tmp_path).records
    spec = _one("Deployment")["spec"]["template"]["spec"]
    mounts = {m["mountPath"]: m["name"] for m in spec["containers"][0]["volumeMounts"]}
    (volume,) = [v for v in spec["volumes"] if v["name"] == mounts[str(records.spool)]]
    assert int(volume["emptyDir"]["sizeLimit"].removesuffix("Gi")) << 30 > records.max_spool_bytes


def test_pods_take_each_other_s_media_tokens() -> None:
    (container,) = _one("Deployment")["spec"]["template"]["spec"]["containers"]
    secrets = {one["name"]: one["valueFrom"]["secretKeyRef"] for one in container["env"]}
    assert secrets["VOICE_GATEWAY_AUTH__MEDIA_SECRET"]["key"] == "media-secret"


def test_selectors_ports_and_probes_agree() -> None:
    template = _one("Deployment")["spec"]["template"]
    labels = template["metadata"]["labels"]
    assert _one("Service")["spec"]["selector"] == labels
    assert _one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
    (container,) = template["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert _one("Service")["spec"]["ports"][0]["targetPort"] in ports
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    for probe in ("readinessProbe", "livenessProbe", "startupProbe"):
        assert container[probe]["httpGet"]["port"] in ports
