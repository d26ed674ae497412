"""Compose and Kubernetes run processes that the program knows, closed, and with time to stop."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from bot.cli.commands import make_parser

DEPLOY = Path(__file__).parents[1] / "deploy"


def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def processes():
    """Return the services that are gateways or workers, by name."""
    found = compose()["services"]
    return {name: one for name, one in found.items() if name[:-2] in ("gateway", "worker")}


def test_nothing_in_compose_may_write_elsewhere_or_get_more_rights():
    for name, one in compose()["services"].items():
        assert one["read_only"] is True, name
        assert one["cap_drop"] == ["ALL"], name
        assert one["security_opt"] == ["no-new-privileges:true"], name
        assert not {"ports", "privileged", "cap_add"} & set(one), name


def test_no_secret_stands_in_what_is_deployed():
    for name in ("compose.yaml", "kubernetes.yaml", "alerts.yaml"):
        text = (DEPLOY / name).read_text(encoding="utf-8")
        assert not re.search(r"(PASSWORD|TOKEN|API_KEY|DATABASE_URL)\s*[:=]\s*\S", text), name
    for one in compose()["services"].values():
        assert one["env_file"] in (["tapebot.env"], ["postgres.env"])


def objects():
    text = (DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(text)}


def pod(kind, name):
    return objects()[kind, name]["spec"]["template"]["spec"]


PODS = {
    ("Job", "tapebot-tables"): ["db", "create"],
    ("Deployment", "tapebot-gateway"): ["gateway"],
    ("Deployment", "tapebot-worker"): ["worker"],
}


@pytest.mark.parametrize("which", PODS, ids=lambda which: which[1])
def test_a_pod_may_write_only_into_what_goes_with_it(which):
    spec = pod(*which)
    (container,) = spec["containers"]
    assert container["args"] == PODS[which]
    assert make_parser().parse_args(container["args"]).chosen.name.split()[0] == PODS[which][0]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["securityContext"]["runAsNonRoot"] is True
    # The user of the image.
    assert f"--uid {spec['securityContext']['runAsUser']} " in (DEPLOY / "Dockerfile").read_text()
    assert spec["automountServiceAccountToken"] is False
    assert all("emptyDir" in one for one in spec["volumes"])
    mounted = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    environment = {one["name"]: one["value"] for one in container["env"]}
    assert mounted == {"home": environment["TAPEBOT_HOME"], "tmp": "/tmp"}
    assert set(mounted) == {one["name"] for one in spec["volumes"]}


def test_workers_have_longer_to_stop_than_their_turns_have_to_end():
    unit = (DEPLOY / "tapebot-worker@.service").read_text(encoding="utf-8")
    waits = [
        int(re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)[0]),
        int(compose()["services"]["worker-1"]["stop_grace_period"].removesuffix("s")),
        int(pod("Deployment", "tapebot-worker")["terminationGracePeriodSeconds"]),
    ]
    assert min(waits) >= 40  # their turns have twenty seconds
