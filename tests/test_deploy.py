"""What lies in deploy/ agrees with the program: figures, settings, options, files."""

from __future__ import annotations

import json
import re
from pathlib import Path

from strongroom.server.meters import FAMILIES

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"


def told() -> set[str]:
    """The names of all samples."""
    names = {name for name, _, _ in FAMILIES}
    histograms = {name for name, kind, _ in FAMILIES if kind == "histogram"}
    return names | {f"{name}{ending}" for name in histograms for ending in ("_bucket", "_sum", "_count")}


def test_the_dashboard_shows_every_figure_and_no_other() -> None:
    """A figure that was renamed would leave an empty panel, which looks like peace."""
    dashboard = json.loads((DEPLOY / "grafana.json").read_text())
    asked = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    asked += dashboard["templating"]["list"][1]["query"]
    named = set(re.findall(r"strongroom_\w+", asked))
    assert named <= told()
    shown = {name for name, _, _ in FAMILIES if any(found.startswith(name) for found in named)}
    assert shown == {name for name, _, _ in FAMILIES}


def test_the_figures_are_explained() -> None:
    """Every figure has a row in the operator's page, and every row is a figure."""
    page = (ROOT / "docs" / "operating.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(strongroom_\w+)` \|", page, re.MULTILINE)) == {name for name, _, _ in FAMILIES}
