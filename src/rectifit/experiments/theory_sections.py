"""The paper's theory, run: the reduction, the ratio of the approximation algorithm, the asymptotic bound."""

from __future__ import annotations

from rectifit.display import Column, Table
from rectifit.experiments.asymptotics import asymptotic_rows, draw_erratum
from rectifit.experiments.ratio import ratio_rows
from rectifit.experiments.reduction import subset_sum_rows
from rectifit.web import Figure, Section

__all__ = ["asymptotics_table", "ratio_table", "subset_sum_table", "theory_sections"]


def theory_sections() -> list[Section]:
    """Three sections for the report."""
    from threadpoolctl import threadpool_limits

    # Many small matrices: BLAS threads would only wait for each other.
    with threadpool_limits(1):
        return _make_sections()


def _make_sections() -> list[Section]:
    figure = Figure.from_matplotlib(
        draw_erratum(),
        "Left: the least surrogate against the threshold, with the printed and the corrected bound; right: "
        "against the noise",
    )
    return [
        Section(
            "reduction",
            "NP-hardness at work",
            [
                "The paper's reduction turns a question about numbers (does a subset have a quarter of the "
                "total?) into a regression whose least objective is p + 100 p² if and only if the answer is "
                "yes. Certificates decide it in both directions. The paper prints the outcome of the last "
                "sample as +10p; the value that it uses needs -10p.",
            ],
            [subset_sum_table().view()],
        ),
        Section(
            "ratio",
            "How large does n/k get?",
            [
                "The approximation algorithm is never worse than n/k times the optimum. Against certified "
                "optima it is nearly optimal on random data. But the guarantee is almost tight: instances "
                "built for the purpose reach (n - 1)/k.",
            ],
            [ratio_table().view()],
        ),
        Section(
            "erratum",
            "An erratum",
            [
                "The paper says that for large samples the surrogate with the threshold 0 is at most "
                "1.5 γ² + (2 + 2Δ²) γ / √(2π). Its proof takes erf for erfc, which loses a term of Δ²/2 at "
                "the threshold 0, and leaves out the intercept. The corrected bound depends on the "
                "threshold, and a positive threshold is needed: then the least surrogate does stay below the "
                "printed bound here.",
            ],
            [figure, asymptotics_table().view()],
        ),
    ]


def subset_sum_table() -> Table:
    """Questions, what the certificate says, and the truth."""
    rows = tuple(
        (
            ", ".join(map(str, row.numbers)),
            row.p,
            row.decisive,
            row.objective,
            row.lower_bound,
            row.verdict,
            "yes" if row.answer else "no",
            row.seconds,
        )
        for row in subset_sum_rows()
    )
    columns = (
        Column("numbers"),
        Column("p"),
        Column("p + 100 p²", ".0f"),
        Column("objective", ".6f"),
        Column("lower bound", ".6f"),
        Column("certificate says"),
        Column("truth"),
        Column("seconds", ".2f"),
    )
    wrong = sum(row[5] != row[6] for row in rows)
    note = f"{len(rows) - wrong} of {len(rows)} are decided, and rightly."
    return Table("subset-sum", "Subset sum by regression", columns, rows, note)


def asymptotics_table() -> Table:
    """Both bounds and what they bound."""
    rows = tuple(
        (
            row.gamma,
            row.threshold_ratio,
            row.surrogate,
            row.simulated,
            row.printed,
            row.corrected,
            "yes" if row.surrogate <= row.printed else "no",
            "yes" if row.surrogate <= row.corrected else "no",
        )
        for row in asymptotic_rows()
    )
    columns = (
        Column("γ", "g"),
        Column("threshold / γ", "g"),
        Column("least surrogate", ".5f"),
        Column("from a large sample", ".5f"),
        Column("printed bound", ".5f"),
        Column("corrected bound", ".5f"),
        Column("below the printed"),
        Column("below the corrected"),
    )
    return Table("asymptotics", "The asymptotic bound, Δ = 1", columns, rows)


def ratio_table() -> Table:
    """The largest ratios that were met, beside the guarantee."""
    rows = tuple(
        (row.family, row.n, row.p, row.k, row.n_instances, row.median, row.worst, row.guarantee)
        for row in ratio_rows()
    )
    columns = (
        Column("family"),
        Column("n"),
        Column("p"),
        Column("k"),
        Column("instances"),
        Column("median ratio", ".3f"),
        Column("largest ratio", ".3f"),
        Column("guarantee n/k", ".3f"),
    )
    note = (
        "Decoys are built to be hard and reach (n - 1)/k, the largest ratio possible without a ridge; "
        "climbs change random data step by step towards larger ratios."
    )
    return Table("ratio", "Objective of the approximation algorithm over the optimum", columns, rows, note)
