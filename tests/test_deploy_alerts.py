"""Alerts ask for what is measured, and the runbook says what to do about each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from bot.core.telemetry import metrics
from bot.core.telemetry import monitoring as operations
from bot.core.telemetry.instruments import Counter, Histogram, PolledMetric

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"


def rules():
    (group,) = yaml.safe_load((DEPLOY / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    return {one["alert"]: one for one in group["rules"]}


def known_metrics():
    """Return {name as Prometheus has it: names of its labels}."""
    found = {"up": {"job", "instance"}}
    for one in (*vars(metrics).values(), *vars(operations).values()):
        if isinstance(one, PolledMetric):
            found[one.name] = set(one.labels)
        elif isinstance(one, Counter):
            found[one.name] = set(one._children.names)
        elif isinstance(one, Histogram):
            labels = set(one._children.names)
            found |= {f"{one.name}_count": labels, f"{one.name}_sum": labels}
            found[f"{one.name}_bucket"] = labels | {"le"}
    return found


def anchors():
    """Return the runbook's headings as GitHub links to them."""
    text = (DEPLOY / "RUNBOOK.md").read_text(encoding="utf-8")
    titles = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]


@pytest.mark.parametrize("alert", rules())
def test_an_alert_asks_for_metrics_and_labels_that_exist(alert):
    expression, known = rules()[alert]["expr"], known_metrics()
    asked = re.findall(r"\b(tapebot_\w+|up)\b(?:\{([^}]*)\})?", expression)
    assert asked
    everywhere = {"instance", "job"}
    of_all = set()
    for name, matchers in asked:
        assert name in known
        labels = set(re.findall(r"(\w+)\s*[=!]", matchers))
        assert labels <= known[name] | everywhere, name
        of_all |= known[name] | everywhere
    by = {one for group in re.findall(r"by \(([^)]*)\)", expression) for one in group.split(", ")}
    assert by <= of_all
    assert expression.count("(") == expression.count(")")
    shown = set(re.findall(r"\$labels\.(\w+)", rules()[alert]["annotations"]["summary"]))
    assert shown <= by if "by (" in expression else shown <= everywhere


def test_alerts_and_the_runbook_lead_to_each_other():
    text = (DEPLOY / "RUNBOOK.md").read_text(encoding="utf-8")
    for name, rule in rules().items():
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["runbook"] == f"deploy/RUNBOOK.md#{name.lower()}"
        assert anchors().count(name.lower()) == 1
    assert set(re.findall(r"\bTapebot[A-Z]\w+", text)) == set(rules())
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")]
    places = {one for text in texts for one in re.findall(r"RUNBOOK\.md#([\w-]+)", text)}
    assert places
    assert places <= set(anchors())


def test_every_metric_that_is_told_of_exists():
    text = (ROOT / "docs/operating.md").read_text(encoding="utf-8")
    names = {re.sub(r"_(?:count|sum|bucket)$", "", name) for name in known_metrics()}
    told = set(re.findall(r"\btapebot_\w+", text))
    assert told
    assert told <= names
