"""The sections of the page about the paper's theory."""

from __future__ import annotations

from collections.abc import Sequence

from rectifit.display import Column, Table
from rectifit.experiments.asymptotics import AsymptoticRow, Erratum
from rectifit.experiments.figures import draw_erratum
from rectifit.experiments.ratio import RatioRow
from rectifit.experiments.subset_sum import SubsetSumRow
from rectifit.experiments.tables import Columns, tabulate, yes_no
from rectifit.web import Figure, Section

__all__ = ["theory_sections"]

REDUCTION = (
    "The paper's reduction turns a question about numbers (does a subset sum to a quarter of the total?) "
    "into a regression whose least objective is p + 100 p² if and only if the answer is yes. Certificates "
    "decide both answers. The paper prints the outcome of the last sample as +10p; the value p + 100 p² "
    "needs -10p."
)
RATIO = (
    "The objective of the approximation algorithm is never more than n/k times the optimum. On random data "
    "it is nearly optimal, as certified optima show. But the guarantee is almost tight: constructed "
    "instances reach (n - 1)/k."
)
ERRATUM = (
    "The paper states that for large samples the surrogate with threshold 0 is at most "
    "1.5 γ² + (2 + 2Δ²) γ / √(2π). Its proof uses erf in place of erfc, which loses a term of Δ²/2 at "
    "threshold 0, and omits the intercept. The corrected bound depends on the threshold, and a positive "
    "threshold is needed: with one, the least surrogate does stay below the printed bound here."
)
ERRATUM_ALT = (
    "Left: the least surrogate against the threshold, with the printed and the corrected bound; right: "
    "against the noise"
)


def theory_sections(
    subset_sums: Sequence[SubsetSumRow],
    ratios: Sequence[RatioRow],
    asymptotics: Sequence[AsymptoticRow],
    erratum: Erratum,
) -> list[Section]:
    """Three sections: the reduction, the ratio and the erratum."""
    figure = Figure.from_matplotlib(draw_erratum(erratum), ERRATUM_ALT)
    return [
        Section("reduction", "NP-hardness at work", [REDUCTION], [_subset_sum_table(subset_sums)]),
        Section("ratio", "How large does n/k get?", [RATIO], [_ratio_table(ratios)]),
        Section("erratum", "An erratum", [ERRATUM], [figure, _asymptotics_table(asymptotics)]),
    ]


def _subset_sum_table(rows: Sequence[SubsetSumRow]) -> Table:
    """The numbers, the verdict of the certificate, and the true answer."""
    n_right = sum(row.verdict == yes_no(row.answer) for row in rows)
    columns: Columns[SubsetSumRow] = [
        (Column("numbers"), lambda row: ", ".join(map(str, row.numbers))),
        (Column("p"), lambda row: row.p),
        (Column("p + 100 p²", ".0f"), lambda row: row.decisive),
        (Column("objective", ".6f"), lambda row: row.objective),
        (Column("lower bound", ".6f"), lambda row: row.lower_bound),
        (Column("verdict"), lambda row: row.verdict),
        (Column("true answer"), lambda row: yes_no(row.answer)),
        (Column("seconds", ".2f"), lambda row: row.seconds),
    ]
    note = f"{n_right} of {len(rows)} instances are decided correctly."
    return tabulate("subset-sum", "Subset sum by regression", rows, columns, note)


def _ratio_table(rows: Sequence[RatioRow]) -> Table:
    """The largest ratios beside the guarantee."""
    columns: Columns[RatioRow] = [
        (Column("family"), lambda row: row.family),
        (Column("n"), lambda row: row.n),
        (Column("p"), lambda row: row.p),
        (Column("k"), lambda row: row.k),
        (Column("instances"), lambda row: row.n_instances),
        (Column("median ratio", ".3f"), lambda row: row.median),
        (Column("largest ratio", ".3f"), lambda row: row.worst),
        (Column("guarantee n/k", ".3f"), lambda row: row.guarantee),
    ]
    note = (
        "Decoys are constructed to be hard and reach (n - 1)/k, the largest possible ratio without a ridge; "
        "climbs change random data step by step towards larger ratios."
    )
    return tabulate("ratio", "Objective of the approximation algorithm over the optimum", rows, columns, note)


def _asymptotics_table(rows: Sequence[AsymptoticRow]) -> Table:
    """The surrogate beside both bounds."""
    columns: Columns[AsymptoticRow] = [
        (Column("γ", "g"), lambda row: row.gamma),
        (Column("threshold / γ", "g"), lambda row: row.threshold_ratio),
        (Column("least surrogate", ".5f"), lambda row: row.surrogate),
        (Column("from a large sample", ".5f"), lambda row: row.simulated),
        (Column("printed bound", ".5f"), lambda row: row.printed),
        (Column("corrected bound", ".5f"), lambda row: row.corrected),
        (Column("below the printed bound"), lambda row: yes_no(row.surrogate <= row.printed)),
        (Column("below the corrected bound"), lambda row: yes_no(row.surrogate <= row.corrected)),
    ]
    return tabulate("asymptotics", "The asymptotic bound, Δ = 1", rows, columns)
