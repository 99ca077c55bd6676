"""A file as the data of a fit, and its ridge penalty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from rectifit.formatting import write_number
from rectifit.formulas import FormulaEncoding, read_formula
from rectifit.inference.groups import read_groups
from rectifit.tables import DataTable, TextFormat, make_table, read_table

__all__ = ["choose_alpha", "has_intercept", "load_table"]

N_FOLDS = 5


def load_table(
    data: str,
    form: TextFormat,
    target: str | None,
    *,
    formula: str | None = None,
    features: Sequence[str] | None = None,
    one_hot: Sequence[str] | None = None,
    cluster: Sequence[str] | None = None,
    **options: Any,
) -> DataTable:
    """The rows of a file, with the columns that the options choose.

    Parameters
    ----------
    data, form : file and how to read it
    target, formula, features, one_hot, cluster : as on the command line
    **options : of `make_table`
    """
    if formula is None and target is None:
        raise click.UsageError("Missing option '--target', or '--formula' with the target on its left side.")
    for name, given in (("--features", features), ("--one-hot", one_hot)):
        if formula is not None and given is not None:
            raise click.UsageError(f"--formula says which features there are; remove {name}.")
    if cluster is not None and len(cluster) not in (1, 2):
        raise click.UsageError(f"--cluster names {len(cluster)} columns; it must name one or two.")
    read = read_table(data, form)
    shared: dict[str, Any] = {"faults": read.faults, "groups": cluster or (), **options}
    if formula is None:
        return make_table(read.frame, str(target), features=features, one_hot=one_hot, **shared)
    others = {options.get("weights"), *(cluster or ()), target}
    known = read_formula(formula, [name for name in read.frame.columns if name not in others])
    if known.target is not None and target not in (None, known.target):
        raise click.UsageError(f"--target is {target!r}, and the formula is about {known.target!r}.")
    outcome = known.target or target
    if outcome is None:
        raise click.UsageError("--formula has no left side; name the target there, or by --target.")
    if outcome in known.columns:
        raise click.UsageError(f"--formula has the target {outcome!r} on its right side.")
    return make_table(read.frame, outcome, formula=known, **shared)


def has_intercept(table: DataTable, no_intercept: bool) -> bool:
    """Whether the model has an intercept; a formula says that itself."""
    if not isinstance(table.encoding, FormulaEncoding):
        return not no_intercept
    if no_intercept:
        raise click.UsageError("--formula says whether there is an intercept; write '- 1' in it.")
    return table.encoding.has_intercept


def choose_alpha(
    table: DataTable, alpha: float | str | None, *, seed: int = 0, **options: Any
) -> tuple[float, list[str]]:
    """The penalty that was given, or the one with the best predictions of unseen rows, and notes on it.

    Folds are drawn at random; where rows have groups, a group is in one fold as a whole.
    """
    if not isinstance(alpha, str):
        return alpha or 0.0, []
    # Imported here: other commands start faster without scikit-learn.
    from sklearn.model_selection import GroupKFold, KFold

    from rectifit.estimator_cv import ReLURegressorCV

    groups, folds = None, KFold(N_FOLDS, shuffle=True, random_state=seed)
    if table.groups is not None:
        found = read_groups(table.groups, table.y.size)
        if len(found.ways) > 1:
            raise click.UsageError("--alpha cv needs groups of one kind; name one column by --cluster.")
        groups, folds = found.cells, GroupKFold(N_FOLDS, shuffle=True, random_state=seed)
    model = ReLURegressorCV(cv=folds, **options).fit(table.X, table.y, table.weights, groups=groups)
    ends = {model.alphas_[0]: ", the largest", model.alphas_[-1]: ", the smallest"}
    end, score = ends.get(model.alpha_, ", one"), write_number(model.best_score_)
    note = (
        f"the ridge penalty {write_number(model.alpha_)}{end} of {model.alphas_.size}, was chosen by "
        f"{N_FOLDS}-fold cross-validation; R squared on unseen rows is {score}"
    )
    return model.alpha_, [note]
