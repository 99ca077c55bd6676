"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, reduce
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import click
from click.shell_completion import CompletionItem

from rectifit.tables import STANDARD_STREAM, read_frame

__all__ = [
    "DATA",
    "ESTIMATE",
    "FLOOR",
    "JOBS",
    "JSON",
    "MISSING",
    "collect_warnings",
    "columns",
    "report",
    "save",
    "target_gap",
    "time_limit",
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


def _split(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(name.strip() for name in value.split(",") if name.strip())


def _check_folder(_: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
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
DATA = click.argument("data", type=click.Path(allow_dash=True))
JSON = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else on standard output."
)
FLOOR = click.option(
    "--floor",
    callback=_read_floor,
    metavar="F",
    help="Fit max(F, X beta + intercept); 'estimate' also fits F. Default: 0.",
)
JOBS = click.option("--jobs", type=int, metavar="J", help="Threads; -1 means all processors.")
MISSING = click.option(
    "--missing",
    type=click.Choice(["refuse", "drop"]),
    default="refuse",
    help="What to do with rows that have missing values.",
)
_column = partial(click.option, metavar="COL", shell_complete=_complete_columns)
_columns = partial(click.option, metavar="A,B", callback=_split, shell_complete=_complete_columns)


def report(default: str | None) -> Decorator:
    """--report, with a default or without."""
    option: Decorator = click.option(
        "--report",
        type=click.Path(dir_okay=False),
        default=default,
        callback=_check_report,
        metavar="OUT.html",
        help="Write a page about the fit, with pictures.",
    )
    return option


def save(what: str) -> Decorator:
    """--save, with its help."""
    option: Decorator = click.option(
        "--save", type=click.Path(dir_okay=False), callback=_check_folder, metavar="MODEL.json", help=what
    )
    return option


def time_limit(default: float | None, what: str) -> Decorator:
    """--time-limit, with a default or without, and its help."""
    limit = click.FloatRange(min=0.0, min_open=True)
    option: Decorator = click.option("--time-limit", type=limit, default=default, metavar="S", help=what)
    return option


def target_gap(default: float | None, what: str) -> Decorator:
    """--target-gap, with a default or without, and its help."""
    option: Decorator = click.option(
        "--target-gap", type=click.FloatRange(min=0.0), default=default, metavar="G", help=what
    )
    return option


def columns(*, is_target_required: bool = True, with_weights: bool = True) -> Decorator:
    """--target, --features, --one-hot, --missing and, optionally, --weights."""
    options = [
        _column("--target", required=is_target_required, help="Column of the outcome."),
        _columns("--features", help="Columns of the features. Default: all other numeric columns."),
        _columns(
            "--one-hot",
            help="Columns to encode as categories, without their first level; 'all' means every text column.",
        ),
        MISSING,
    ]
    if with_weights:
        options.append(_column("--weights", help="Column of non-negative sample weights."))
    return lambda command: reduce(lambda wrapped, option: option(wrapped), reversed(options), command)


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect warnings as notes in the list that is returned."""
    notes: list[str] = []
    with catch_warnings(record=True) as caught:
        simplefilter("always")
        yield notes
    notes += [str(warning.message) for warning in caught]
