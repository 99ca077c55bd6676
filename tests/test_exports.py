"""Summaries as data frames, LaTeX and HTML, and several fits side by side."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pytest

from rectifit import ReLURegressor, TobitRegressor, certify, compare_summaries, inference, solve
from rectifit.inference import marginal_effects, predicted_margins


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(150, 2)), columns=["age_x", "a<b>&$"])
    frame["dummy"] = rng.integers(0, 2, size=150)
    u = frame.to_numpy() @ [1.0, -2.0, 0.5] + 0.3
    return frame.assign(y=np.maximum(u, 0.0) + 0.4 * rng.normal(size=150))


@pytest.fixture(scope="module")
def model(frame):
    return ReLURegressor().fit(frame.drop(columns="y"), frame["y"])


class Cells(HTMLParser):
    """Texts of the cells, and tags that were opened and not closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.rows, self.seen = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, _):
        self.open.append(tag)
        self.seen.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_has_all_digits(model, library):
    summary = model.summary(covariance="HC3")
    found = summary.to_frame(library)
    assert isinstance(found, pd.DataFrame if library == "pandas" else pl.DataFrame)
    names = found.index if library == "pandas" else found["name"]
    assert list(names) == [*summary.names]
    for column in ("coefficient", "std_error", "z", "p_value", "low", "high"):
        np.testing.assert_array_equal(found[column].to_numpy(), getattr(summary, column))
    cov = summary.cov.to_frame(library)
    numbers = cov if library == "pandas" else cov.drop("name")
    np.testing.assert_array_equal(numbers.to_numpy(), summary.cov.values)


def test_another_library_is_rejected(model):
    with pytest.raises(ValueError, match=r"library is 'arrow'; it must be 'pandas' or 'polars'"):
        model.summary().to_frame("arrow")


def test_html_is_well_formed_and_escaped(frame, model):
    summary = model.summary()
    certificate = certify(frame.drop(columns="y"), frame["y"], model, time_limit=None, target_gap=0.5)
    pages = [
        summary.to_html(),
        model.solution_._repr_html_(),
        certificate._repr_html_(),
        marginal_effects(model).to_html(),
        predicted_margins(model, "dummy").to_html(),
        TobitRegressor(lower=0.0).fit(frame[["age_x"]], frame["y"].clip(0)).summary().to_html(),
        compare_summaries([summary, model]).to_html(),
    ]
    for page in pages:
        cells = Cells(page)
        assert cells.open == []
        assert cells.seen <= {"table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td", "p"}
        assert len({len(row) for row in cells.rows}) == 1
    assert summary._repr_html_() == summary.to_html()
    rows = {row[0]: row[1:] for row in Cells(summary.to_html()).rows}
    assert float(rows["a<b>&$"][0]) == pytest.approx(model.coef_[1], abs=0.005)
    assert str(model.solution_.certificate) in summary.to_html()
    assert str(certificate) in certificate._repr_html_()


def test_a_notebook_shows_a_solution_without_looking_at_its_data():
    X = np.random.default_rng(0).normal(size=(200, 60))
    fit = solve(X, np.maximum(X[:, 0], 0.0), "sorting")
    shown = fit._repr_html_()
    assert "and 10 more" in shown
    assert "moments" not in fit.kept


def test_latex_is_balanced_and_escaped(model):
    for text in (model.summary().to_latex(), compare_summaries([model]).to_latex()):
        assert r"age\_x" in text
        assert r"a\textless{}b\textgreater{}\&\$" in text
        assert text.count(r"\begin{") == text.count(r"\end{") == 2
        columns = len(re.search(r"\\begin\{tabular\}\{(l?r+)\}", text)[1])
        rows = [line for line in text.splitlines() if line.endswith(r"\\")]
        assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {columns}


def test_fits_side_by_side(frame, model):
    short = solve(frame[["age_x"]], frame["y"])
    limited = ReLURegressor(bounds={"age_x": (1.5, None)}).fit(frame.drop(columns="y"), frame["y"])
    tobit = TobitRegressor(lower=0.0).fit(frame[["dummy", "age_x"]], frame["y"].clip(0)).summary()
    both = compare_summaries([short, model.summary(), limited, tobit], names=["a", "b", "c", "d"])
    table = both.to_frame()
    assert table.index.tolist() == ["age_x", "a<b>&$", "dummy", "intercept"]
    assert table["b"].tolist() == [*model.coef_, model.intercept_]
    assert table.loc["age_x", "a std. error"] == short.summary().std_error[0]
    assert table["a"].isna().tolist() == [False, True, True, False]
    assert table.loc["dummy", "d"] == tobit.coefficient[0]
    text = str(both)
    assert "(at its bound)" in text
    assert "active" in text
    assert f"({model.summary().std_error[0]:.4f})" in text


def test_stars_follow_p_values(frame):
    noise = np.random.default_rng(1).normal(size=(150, 4))
    summary = solve(np.column_stack([frame["age_x"], noise]), frame["y"]).summary()
    rows = compare_summaries([summary], stars=True).table().texts()
    marks = [row[1].lstrip("-.0123456789") for row in rows[: 2 * len(summary.names) : 2]]
    expected = ["***" if p < 0.01 else "**" if p < 0.05 else "*" if p < 0.1 else "" for p in summary.p_value]
    assert marks == expected
    assert "***" in marks
    assert "" in marks


def test_kinds_of_standard_errors_are_named(model):
    same = compare_summaries([model, model], covariance="HC1")
    assert "Standard errors in parentheses: for noise of any variance (HC1)." in same.table().note
    mixed = compare_summaries([model.summary(), model.summary(covariance="HC1")])
    assert "(1), for noise of equal variance (nonrobust); (2), for noise" in mixed.table().note


def test_errors_of_side_by_side(model):
    with pytest.raises(TypeError, match="fits is Summary; it must be a list of summaries or fits"):
        compare_summaries(model.summary())
    with pytest.raises(ValueError, match="fits is empty"):
        compare_summaries([])
    with pytest.raises(ValueError, match="names has 1 entries; it must have 2, one per fit"):
        compare_summaries([model, model], names=["a"])
    with pytest.raises(ValueError, match="names has two equal entries"):
        compare_summaries([model, model], names=["a", "a"])
    with pytest.raises(TypeError, match="covariance cannot be given with summaries"):
        compare_summaries([model.summary()], covariance="HC1")
    with pytest.raises(TypeError, match="it must be a Solution or a fitted estimator"):
        compare_summaries([3.0])


def test_it_is_found_where_users_look():
    assert inference.compare_summaries is compare_summaries
