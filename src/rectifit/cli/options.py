"""Options that several commands share, and the data table that they describe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import click
from click.shell_completion import CompletionItem

from rectifit.inference.sandwich import KINDS
from rectifit.methods.stages import STAGES
from rectifit.tables import STANDARD_STREAM, DataTable, make_table, read_frame

__all__ = [
    "BOOTSTRAP",
    "COVARIANCE",
    "DATA",
    "DATA_FILES",
    "ESTIMATE",
    "FLOOR",
    "GAP",
    "JOBS",
    "JSON",
    "METHOD",
    "MISSING",
    "check_folder",
    "collect_warnings",
    "columns_options",
    "load_table",
    "report_option",
    "seconds_option",
]

ESTIMATE = "estimate"
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _complete_columns(context: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of the columns of DATA; in lists, of the last name."""
    *before, last = typed.split(",")
    # Before an option without a value, click has not assigned DATA yet.
    data = context.params.get("data") or next(iter(context.args), STANDARD_STREAM)
    data = data if isinstance(data, str) else data[0]
    if data == STANDARD_STREAM:
        return []
    try:
        columns = read_frame(data, n_rows=1).columns
    except ValueError:
        return []
    return [CompletionItem(",".join([*before, name])) for name in columns if name.startswith(last)]


def _complete_method(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of stages; in chains, of the last stage."""
    *before, last = typed.split("+")
    return [CompletionItem("+".join([*before, name])) for name in STAGES if name.startswith(last)]


def _split(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(name.strip() for name in value.split(",") if name.strip())


def check_folder(_: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Check before the work that the folder of an output file exists."""
    if value is not None and not Path(value).parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(Path(value).parent)!r}", param=parameter)
    return value


def _check_report(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """Check before the fit that the libraries of a report are installed."""
    for name in ("jinja2", "matplotlib"):
        if value is not None and find_spec(name) is None:
            raise click.UsageError(f"--report needs {name}; install it with: pip install 'rectifit[cli]'")
    return value


def _read_floor(_: click.Context, __: click.Parameter, value: str | None) -> float | str | None:
    if value is None or value == ESTIMATE:
        return value
    try:
        return float(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a number nor {ESTIMATE!r}.") from None


# Without click's own check of paths, so that the errors of `tables` are shown.
DATA = click.argument("data", type=click.Path(exists=False, allow_dash=True))
DATA_FILES = click.argument("data", type=click.Path(exists=False, allow_dash=True), nargs=-1, required=True)
JSON = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else on standard output."
)
COVARIANCE = click.option(
    "--covariance",
    type=click.Choice(KINDS),
    default="nonrobust",
    show_default=True,
    help="Standard errors: for noise of equal variance, or of any variance (HC0 to HC3).",
)
BOOTSTRAP = click.option(
    "--bootstrap",
    type=click.IntRange(min=2),
    metavar="N",
    help="Bootstrap standard errors, from N samples drawn with replacement.",
)
FLOOR = click.option(
    "--floor",
    callback=_read_floor,
    metavar="F",
    help="Fit max(F, X beta + intercept); 'estimate' also fits F. Default: 0.",
)
METHOD = click.option(
    "--method",
    default="auto",
    show_default=True,
    metavar="M",
    shell_complete=_complete_method,
    help=f"Stages joined by +; the stages are {', '.join(STAGES)}.",
)
GAP = click.option(
    "--target-gap",
    type=click.FloatRange(min=0.0),
    metavar="G",
    help="Prove that no fit can be better by more than this share, such as 0.01.",
)
JOBS = click.option("--jobs", type=int, metavar="J", help="Threads; -1 means all processors.")
MISSING = click.option(
    "--missing",
    type=click.Choice(["refuse", "drop"]),
    default="refuse",
    show_default=True,
    help="What to do with rows that have missing values.",
)


def report_option(default: str | None) -> Decorator:
    """--report, with a default or without."""
    option: Decorator = click.option(
        "--report",
        type=click.Path(dir_okay=False),
        default=default,
        show_default=default is not None,
        callback=_check_report,
        metavar="OUT.html",
        help="Write a page about the fit, with pictures.",
    )
    return option


def seconds_option(default: float | None, what: str) -> Decorator:
    """--time-limit, with a default or without."""
    limit = click.FloatRange(min=0.0, min_open=True)
    option: Decorator = click.option(
        "--time-limit", type=limit, default=default, show_default=default is not None, metavar="S", help=what
    )
    return option


def columns_options(*, is_target_required: bool = True, with_weights: bool = True) -> Decorator:
    """--target, --features, --one-hot, --missing and, optionally, --weights."""
    options = [
        click.option(
            "--target",
            required=is_target_required,
            metavar="COL",
            shell_complete=_complete_columns,
            help="Column of the outcome.",
        ),
        click.option(
            "--features",
            metavar="A,B",
            callback=_split,
            shell_complete=_complete_columns,
            help="Columns of the features. Default: all other numeric columns.",
        ),
        click.option(
            "--one-hot",
            metavar="A,B",
            callback=_split,
            shell_complete=_complete_columns,
            help="Columns to encode as categories, without their first level; 'all' means every text column.",
        ),
        MISSING,
    ]
    if with_weights:
        options.append(
            click.option(
                "--weights",
                metavar="COL",
                shell_complete=_complete_columns,
                help="Column of non-negative sample weights.",
            )
        )

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def load_table(
    data: str,
    target: str,
    features: tuple[str, ...] | None,
    one_hot: tuple[str, ...] | None,
    missing: str,
    weights: str | None = None,
) -> DataTable:
    """Read DATA and choose its columns."""
    return make_table(
        read_frame(data), target, features=features, one_hot=one_hot or (), missing=missing, weights=weights
    )


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect warnings as notes in the list that is returned."""
    notes: list[str] = []
    with catch_warnings(record=True) as caught:
        simplefilter("always")
        yield notes
    notes += [str(warning.message) for warning in caught]
