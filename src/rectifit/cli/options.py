"""Options that several commands share."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce, wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.shell_completion import CompletionItem

from rectifit._typing import Matrix
from rectifit.running import LongRunWarning
from rectifit.tables import STANDARD_STREAM, WARNING, TextFormat, check_extension, read_frame

__all__ = [
    "ALPHA",
    "CHOSEN",
    "CLUSTER",
    "DATA",
    "ESTIMATE",
    "FLOOR",
    "JOBS",
    "JSON",
    "check_folder",
    "collect_warnings",
    "columns",
    "constraints",
    "missing",
    "out",
    "read_bounds",
    "read_units",
    "report",
    "save",
    "target_gap",
    "text_format",
    "time_limit",
    "units",
]

ESTIMATE = "estimate"
# The value of --alpha that chooses one.
CHOSEN = "cv"
LIST = "A,B"
PAGES = (".html", ".htm")
# Names of separators that are awkward to type.
SEPARATORS = {"tab": "\t", "\\t": "\t", "space": " "}
# The earlier name of "error", which still works.
REFUSE = "refuse"
# Where a command keeps the units.
UNITS = "rectifit.units"
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _complete_columns(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of the columns of DATA; in lists, of the last name."""
    is_list = parameter.metavar == LIST
    *before, last = typed.split(",") if is_list else [typed]
    # Before an option without a value, click has not assigned DATA yet.
    data = context.params.get("data") or next(iter(context.args), STANDARD_STREAM)
    data = data if isinstance(data, str) else data[0]
    if data == STANDARD_STREAM:
        return []
    try:
        columns = read_frame(data, n_rows=1).columns
    except ValueError:
        return []
    names = map(_quote, columns) if is_list else columns
    return [CompletionItem(",".join([*before, name])) for name in names if name.startswith(last)]


def _quote(name: str) -> str:
    """A name as it must be written in a list."""
    quoted = name.replace('"', '""')
    return f'"{quoted}"' if quoted != name or "," in name else name


def _split(_: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """Names between commas; those with commas are in quotation marks, as in CSV."""
    if value is None:
        return None
    if value.count('"') % 2:
        raise click.BadParameter(f"a quotation mark is not closed in {value!r}", param=parameter)
    row = next(csv.reader([value], skipinitialspace=True), [])
    return tuple(name.strip() for name in row if name.strip())


def check_folder(_: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Check before the work that the folder of an output file exists."""
    if value not in (None, STANDARD_STREAM) and not Path(str(value)).parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(Path(str(value)).parent)!r}", param=parameter)
    return value


def _check_table(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Check before the work that a table can be written to this file."""
    if value not in (None, STANDARD_STREAM):
        check_extension(str(value), to_write=True)
    return check_folder(context, parameter, value)


def _check_report(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Check before the fit that a page can be written to this file, and that its libraries are installed."""
    if value is not None and Path(value).suffix.lower() not in PAGES:
        raise click.BadParameter(
            f"{value!r} is not the name of an HTML file; it must end in .html", param=parameter
        )
    check_folder(context, parameter, value)
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
_column = partial(click.option, metavar="COL", shell_complete=_complete_columns)
_columns = partial(click.option, metavar=LIST, callback=_split, shell_complete=_complete_columns)


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


def units(command: Callable[..., Any]) -> Callable[..., Any]:
    """--units, for a command with --report; `read_units` gives them."""

    @wraps(command)
    def with_units(*, units: tuple[str, ...] | None, **rest: Any) -> Any:
        if units is not None and rest["report"] is None:
            raise click.UsageError("--units is for the report; it needs --report.")
        click.get_current_context().meta[UNITS] = _read_units(units or ())
        return command(**rest)

    option: Decorator = click.option(
        "--units",
        metavar="A=UNIT,B=UNIT",
        callback=_split,
        help="Units of the target and of columns, for the report.",
    )
    return option(with_units)


def _read_units(entries: Sequence[str]) -> dict[str, str]:
    pairs = [entry.rpartition("=") for entry in entries]
    wrong = next(
        (entry for entry, pair in zip(entries, pairs, strict=True) if not (pair[0] and pair[2])), None
    )
    if wrong is not None:
        raise click.UsageError(f"--units has {wrong!r}; each entry must be COLUMN=UNIT.")
    return {name.strip(): unit.strip() for name, _, unit in pairs}


def read_units() -> dict[str, str]:
    """Units of the target and of columns that this command was given, by their names."""
    units: dict[str, str] = click.get_current_context().meta.get(UNITS, {})
    return units


def save(what: str) -> Decorator:
    """--save, with its help."""
    option: Decorator = click.option(
        "--save", type=click.Path(dir_okay=False), callback=check_folder, metavar="MODEL.json", help=what
    )
    return option


PROOF = click.option(
    "--proof",
    type=click.Path(dir_okay=False),
    callback=check_folder,
    metavar="FILE",
    help="Write the proof to a file for `rectifit check`.",
)


def out(what: str, default: str | None = None) -> Decorator:
    """--out for a table, required unless there is a default."""
    option: Decorator = click.option(
        "--out",
        required=default is None,
        default=default,
        show_default=False,
        callback=_check_table,
        metavar="FILE",
        help=what,
    )
    return option


def missing(*kinds: str) -> Decorator:
    """--missing; the first of the kinds is the default."""
    option: Decorator = click.option(
        "--missing",
        type=click.Choice([*kinds, REFUSE]),
        default=kinds[0],
        callback=lambda _, __, value: "error" if value == REFUSE else value,
        metavar=f"[{'|'.join(kinds)}]",
        help="What to do with rows that have missing values.",
    )
    return option


def text_format(command: Callable[..., Any]) -> Callable[..., Any]:
    """--separator, --decimal and --encoding, which the command takes as one argument."""

    @wraps(command)
    def with_format(*, separator: str | None, decimal: str | None, encoding: str | None, **rest: Any) -> Any:
        return command(form=TextFormat(separator, decimal, encoding), **rest)

    given: list[Decorator] = [
        click.option(
            "--separator",
            callback=_read_separator,
            metavar="C",
            help="Separator of columns in a text file: one character, or 'tab'. Default: detected.",
        ),
        click.option(
            "--decimal",
            type=click.Choice([".", ","]),
            help="Decimal mark in a text file. Default: detected.",
        ),
        click.option(
            "--encoding", metavar="E", help="Encoding of a text file, such as cp1252. Default: UTF-8."
        ),
    ]
    wrapped: Callable[..., Any] = with_format
    for option in reversed(given):
        wrapped = option(wrapped)
    return wrapped


def _read_separator(_: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    separator = value if value is None else SEPARATORS.get(value, value)
    if separator is not None and (len(separator) != 1 or not separator.isascii() or separator in '"\r\n\0'):
        raise click.BadParameter(
            f"{value!r} is not a separator; it must be one ASCII character, 'tab' or 'space'.",
            param=parameter,
        )
    return separator


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


def columns(*, with_weights: bool = True) -> Decorator:
    """--target, --formula, --features, --one-hot, --missing and, optionally, --weights."""
    options: list[Decorator] = [
        _column("--target", help="Column of the outcome."),
        click.option(
            "--formula",
            metavar="F",
            help="Target and features as a formula, such as 'y ~ a + I(b**2) + C(c)'.",
        ),
        _columns("--features", help="Columns of the features. Default: all other numeric columns."),
        _columns(
            "--one-hot",
            help="Columns to encode as categories, without their first level; 'all' means every text column.",
        ),
        missing("error", "drop"),
    ]
    if with_weights:
        options.append(_column("--weights", help="Column of non-negative sample weights."))
    return lambda command: reduce(lambda wrapped, option: option(wrapped), reversed(options), command)


CLUSTER = _columns(
    "--cluster", help="Column of groups within which the noise is correlated; two columns for two ways."
)


def _read_alpha(_: click.Context, parameter: click.Parameter, value: str | None) -> float | str | None:
    if value is None or value == CHOSEN:
        return value
    try:
        alpha = float(value)
    except ValueError:
        alpha = np.nan
    if not 0.0 <= alpha < np.inf:
        raise click.BadParameter(
            f"{value!r} is neither a number of at least 0 nor {CHOSEN!r}.", param=parameter
        )
    return alpha


ALPHA = click.option(
    "--alpha",
    metavar=f"A|{CHOSEN}",
    callback=_read_alpha,
    help=f"Ridge penalty A |beta|^2; '{CHOSEN}' chooses it by cross-validation. Default: 0.",
)


def constraints(command: Callable[..., Any]) -> Callable[..., Any]:
    """--positive, --negative and --bounds, which `read_bounds` combines."""
    given = [
        _columns("--positive", help="Columns whose coefficients are at least 0; 'all' means every column."),
        _columns("--negative", help="Columns whose coefficients are at most 0; 'all' means every column."),
        click.option(
            "--bounds",
            metavar="A=0:2,B=:1",
            callback=_split,
            help="Bounds of coefficients, LOW:HIGH by column; an end may be left out.",
        ),
    ]
    return reduce(lambda wrapped, option: option(wrapped), reversed(given), command)


def read_bounds(
    names: Sequence[str],
    positive: Sequence[str] | None,
    negative: Sequence[str] | None,
    bounds: Sequence[str] | None,
) -> Matrix | None:
    """Two bounds for each coefficient, None if there are none; a category stands for all of its levels."""
    given = {"--positive": positive, "--negative": negative, "--bounds": bounds}
    if all(entries is None for entries in given.values()):
        return None
    for option, entries in given.items():
        if entries == ():
            raise click.UsageError(f"{option} is empty; it must name at least one column.")
    low, high = dict.fromkeys(names, -np.inf), dict.fromkeys(names, np.inf)
    for name in _expand(names, positive or (), "--positive"):
        low[name] = max(low[name], 0.0)
    for name in _expand(names, negative or (), "--negative"):
        high[name] = min(high[name], 0.0)
    for entry in bounds or ():
        column, equals, ends = entry.rpartition("=")
        first, colon, last = ends.partition(":")
        if not equals or not colon:
            raise click.UsageError(f"--bounds has {entry!r}; each entry must be COLUMN=LOW:HIGH.")
        for name in _expand(names, (column.strip(),), "--bounds"):
            low[name] = max(low[name], _read_end(first, -np.inf, entry))
            high[name] = min(high[name], _read_end(last, np.inf, entry))
    wrong = next((name for name in names if low[name] > high[name]), None)
    if wrong is not None:
        raise click.UsageError(
            f"--positive, --negative and --bounds leave nothing for {wrong!r}: its coefficient would have to "
            f"be at least {low[wrong]:g} and at most {high[wrong]:g}."
        )
    return np.array([(low[name], high[name]) for name in names])


def _expand(names: Sequence[str], given: Sequence[str], option: str) -> list[str]:
    """Features that are named by columns: all levels of a category, and every feature for 'all'."""
    found = list[str]()
    for column in given:
        chosen = [name for name in names if name == column or name.startswith((f"{column}=", f"{column}["))]
        if not chosen and column == "all":
            chosen = list(names)
        if not chosen:
            raise click.UsageError(f"{option} has {column!r}; the features are {', '.join(names)}.")
        found += chosen
    return found


def _read_end(text: str, missing: float, entry: str) -> float:
    if not text.strip():
        return missing
    try:
        end = float(text)
    except ValueError:
        raise click.UsageError(f"--bounds has {entry!r}; {text!r} is not a number.") from None
    if np.isnan(end) or end == -missing:
        raise click.UsageError(f"--bounds has {entry!r}, which allows no number.")
    return end


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect warnings as notes in the list that is returned; what will take too long is said at once."""
    notes: list[str] = []

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, LongRunWarning):
            click.echo(f"{WARNING}{message}", err=True)
        else:
            notes.append(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        yield notes
