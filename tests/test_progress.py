import io
import re
import sys

import pytest

from rectifit import progress, solve
from rectifit.datasets import make_relu


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def eager(monkeypatch):
    """Every update is shown at once."""
    monkeypatch.setattr(progress, "DELAY", 0.0)


def fit(verbose):
    X, y, *_ = make_relu(60, 3, noise=0.5, random_state=0)
    return solve(X, y, "approximation", k=2, verbose=verbose)


@pytest.mark.usefixtures("eager")
def test_a_line_on_a_terminal_without_rich(monkeypatch):
    monkeypatch.setattr(progress, "_make_bar", lambda: None)
    monkeypatch.setattr(sys, "stderr", Terminal())
    solution = fit(1)
    text = sys.stderr.getvalue()
    last = text.split("\r")[-1]
    assert last.startswith("approximation, objective ")
    assert f"{solution.objective:.6g}" in last
    total = last.rstrip("\x1b[K\n").split(" of ")[1]
    assert f"{total} of {total}" in last
    assert text.endswith("\n")


@pytest.mark.usefixtures("eager")
def test_a_bar_where_rich_is_installed(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    fit(1)
    assert "approximation, objective" in sys.stderr.getvalue()


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("width", [36, 60, 80, 140])
def test_counts_are_whole_on_narrow_terminals(monkeypatch, width):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    text = "exact, gap 2.37%, objective 4.65518e+06, bound 4.54497e+06, 9 open"
    with progress.Progress(1) as shown:
        shown.update(text, 1234, 5678)
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", sys.stderr.getvalue())
    line = next(line for line in re.split(r"[\r\n]+", drawn) if line.strip())
    assert len(line) <= width
    assert re.search(r" \d+/5678 0:00:0\d$", line.rstrip())
    assert line.startswith(text if width == 140 else "exact, gap")


@pytest.mark.usefixtures("eager")
def test_a_bar_without_a_known_end(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with progress.Progress(1) as shown:
        shown.update("exact", 571, None)
    assert "571/?" in sys.stderr.getvalue()


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(("verbose", "stream"), [(0, Terminal()), (1, io.StringIO())])
def test_silent_without_wish_or_terminal(monkeypatch, verbose, stream):
    # That code is compiled is shown on every terminal.
    fit(0)
    monkeypatch.setattr(sys, "stderr", stream)
    fit(verbose)
    assert stream.getvalue() == ""


def test_it_waits_before_it_shows_anything(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress.Progress(1) as shown:
        shown.update("sorting", 1, 2)
    assert sys.stderr.getvalue() == ""
