"""CONST on probe answers only (ablation V6)."""

from selector.strategies.const import ConformalSetSizeByCluster


class ConformalSetSizeOfProbes(ConformalSetSizeByCluster):
    """As CONST, with threshold and prediction sets from the truncation probes alone."""

    key = "v6"
    title = "CONST V6: probe answers only"
    votes = "probes"
    can_be_raced = False
    why_not_raced = "it reads probes alone, and a race saves outcome answers"
