import base64
import re
import warnings

import numpy as np
import pytest
from browser import LOOK, is_sorted, probe
from scipy.optimize import LinearConstraint

from rectifit import certify, solve
from rectifit.comparison import compare_fit, find_obstacle
from rectifit.datasets import load_drug_spending
from rectifit.formatting import write_share
from rectifit.plot.rows import MAX_ROWS
from rectifit.plotting import INK
from rectifit.report import collect, write_report
from rectifit.report.contents import MAX_EFFECTS
from rectifit.report.page import MAX_MEANINGFUL_GAP, render
from rectifit.report.sections import make_sections
from rectifit.web import Figure

# The texts of cells of the first table, and of the numbers at the top.
READ = """
const texts = (elements) => [...elements].map((element) => element.textContent);
return {
  cells: [...document.querySelector("table").tBodies[0].rows].map((row) => texts(row.cells)),
  facts: texts(document.querySelectorAll("dl.facts dd")),
  text: document.body.innerText,
};
"""
# Two of the fit, two of the residuals, and the path; others where there is something to show.
N_PICTURES = 5


def count_pictures(solution):
    n_effects = min(np.count_nonzero(solution.beta), MAX_EFFECTS)
    certificate = solution.certificate
    return N_PICTURES + n_effects + (bool(certificate.history) and certificate.says_anything)


def make_data(n_samples=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 3))
    return X, np.maximum(X @ [1.0, -2.0, 0.5] + 0.3, 0.0) + 0.3 * rng.normal(size=n_samples)


def fit_bundled():
    X, y, names, target, _ = load_drug_spending()
    certificate = certify(X, y, time_limit=0.5)
    return certificate.solution, names, target


def fit_weighted():
    X, y = make_data()
    return solve(X, y, sample_weight=np.arange(150) % 3), ("a", "b", "<c> & d"), "y < 0"


def fit_floor():
    X, y = make_data()
    return solve(X, y + 5.0, floor="estimate"), None, "y"


def fit_one_variable():
    X, y = make_data()
    return solve(X[:, :1], y, "auto+exact"), ("price of everything that was bought in the year",), "y"


def fit_dead():
    X, y = make_data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve(X, -np.abs(y)), None, "y"


def fit_wide():
    rng = np.random.default_rng(0)
    return solve(rng.normal(size=(20, 30)), rng.normal(size=20)), None, "y"


def fit_within_bounds():
    X, y = make_data()
    return solve(X, y, bounds=[(0, None), (-1, 1), (None, 0.2)]), ("a", "b", "c"), "y"


def fit_signs():
    X, y = make_data()
    return solve(X, y, positive=True), None, "y"


def fit_linear():
    X, y = make_data()
    return solve(X, y, constraints=LinearConstraint([1, 1, 1], 0, 0.5), positive=True), ("a", "b", "c"), "y"


FITS = {
    "bundled": fit_bundled,
    "weights": fit_weighted,
    "floor": fit_floor,
    "one variable": fit_one_variable,
    "dead": fit_dead,
    "wide": fit_wide,
    "bounds": fit_within_bounds,
    "signs": fit_signs,
    "linear constraints": fit_linear,
}


@pytest.fixture(scope="module", params=list(FITS))
def written(request, tmp_path_factory):
    solution, names, target = FITS[request.param]()
    path = tmp_path_factory.mktemp("report") / "fit.html"
    comparison = compare_fit(solution)
    write_report(solution, path, names=names, target=target, data_name="some data", comparison=comparison)
    return solution, names, comparison, path


@pytest.mark.parametrize("width", [1280, 420])
def test_the_page_in_a_browser(written, tmp_path, width):
    solution, _, comparison, path = written
    seen, errors = probe(path, LOOK, tmp_path, width)
    assert errors == ""
    assert seen["width"] == width
    # Nothing is cut; what is wider than the screen can be scrolled and says so; pictures fill their boxes.
    assert seen["cut"] == []
    assert seen["scrolled"] == seen["hinted"] <= len(seen["sorted"]) * (width < 1000)
    assert seen["floating"] == 0
    assert seen["images"] == count_pictures(solution)
    assert seen["broken"] == seen["external"] == 0
    assert seen["overflow"] <= 0
    assert len(seen["sorted"]) == 1 + (comparison is not None)
    for up, down in seen["sorted"]:
        assert is_sorted(up)
        assert is_sorted([key for key in down if key != ""][::-1])


def test_a_lay_reader_meets_no_words_of_the_theory(written, tmp_path):
    seen, _ = probe(written[-1], READ, tmp_path)
    said = seen["text"].lower()
    for word in ("pre-activation", "preactivation", "surrogate", "active", "kink", "dead", "epigraph"):
        assert word not in said


def test_pictures_follow_the_preference_for_dark_pages(written):
    text = written[-1].read_text(encoding="utf-8")
    sources = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', text)
    assert len(sources) == count_pictures(written[0])
    for source in sources:
        picture = base64.b64decode(source).decode()
        assert "prefers-color-scheme: dark" in picture
        # Letters and axes have no colour of their own, and nothing is painted behind them.
        assert f"fill: {INK}" not in picture
        assert f"stroke: {INK}" not in picture
        assert re.search(r'<g id="patch_1">\s*<path [^>]*style="fill: none', picture)


def test_long_names_fit_their_pictures(monkeypatch):
    drawn = []
    from_matplotlib = Figure.from_matplotlib
    monkeypatch.setattr(
        Figure,
        "from_matplotlib",
        lambda figure, *rest: drawn.append(figure) or from_matplotlib(figure, *rest),
    )
    X, y = make_data()
    solution = solve(X, y)
    names = [f"number {j} of all things that were bought in the year before the survey" for j in range(3)]
    units = dict.fromkeys([*names, "spending"], "thousands of dollars of the year 1978")
    data = collect(solution, solution.summary(names=names), target="spending", units=units)
    assert len(make_sections(data)) > 5
    assert len(drawn) == count_pictures(solution)
    for figure in drawn:
        figure.draw_without_rendering()
        for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis):
            box, page = axis.label.get_window_extent(), figure.bbox
            assert page.x0 <= box.x0 < box.x1 <= page.x1
            assert page.y0 <= box.y0 < box.y1 <= page.y1


def test_the_page_says_what_the_solution_does(written, tmp_path):
    solution, names, comparison, path = written
    seen, _ = probe(path, READ, tmp_path)
    summary = solution.summary(names=names)
    assert [row[0] for row in seen["cells"]] == [row[0] for row in summary.table().rows]
    for row, coefficient, error in zip(seen["cells"], summary.coefficient, summary.std_error, strict=True):
        assert float(row[1]) == pytest.approx(coefficient, rel=2e-2, abs=1e-3)
        if np.isnan(error):
            assert row[2:] == ["-"] * 5
        else:
            assert float(row[2]) == pytest.approx(error, rel=2e-2)
    facts = seen["facts"]
    assert facts[0] == f"{summary.n_samples:,}"
    assert facts[1] == write_share(summary.share_active)
    assert facts[2] == f"{summary.r_squared:.3f}"
    assert float(facts[3].replace(",", "")) == pytest.approx(solution.objective, rel=1e-5)
    gap = solution.certificate.gap
    assert facts[4] == (write_share(gap) if gap < MAX_MEANINGFUL_GAP else "not known")
    said = " ".join(seen["text"].split())
    assert str(solution.certificate)[1:] in said
    for note in summary.notes:
        assert note[1:] in said
    assert ("The coefficients are constrained: " in said) == bool(summary.constraints)
    for words in summary.constraints:
        assert words in said
    for name, coefficient, is_held in zip(summary.names, summary.coefficient, summary.at_bound, strict=True):
        assert (f"{name}, at its bound {coefficient:.4g} " in said) == is_held
    ignoring = comparison is not None and bool(summary.constraints)
    assert ("* ignores the bounds of the coefficients." in said) == ignoring
    is_proved = solution.certificate.says_anything
    constrained = "whose coefficients satisfy the constraints reduces the error"
    assert (constrained in said) == (ignoring and is_proved)
    assert ("The gap is proved: " in said) == (comparison is not None and is_proved)
    obstacle = find_obstacle(solution)
    assert (comparison is None) == (obstacle is not None)
    assert ("Other ways to fit these data" in said) == (obstacle is None)
    if obstacle is not None:
        assert f"no comparison with other ways to fit: {obstacle}." in said


def test_obstacles():
    X, y = make_data()
    assert find_obstacle(solve(X, y)) is None
    weights = np.ones(150)
    for solution, words in [
        (solve(X, y, sample_weight=weights), "weighted"),
        (solve(X, y, floor=0.1), "floor is 0.1"),
        (solve(X, y, fit_intercept=False), "no intercept"),
        (solve(X, y, alpha=1.0), "ridge"),
        (solve(X, y).without_data(), "not stored"),
        (solve(*make_data(120_000), "sorting"), "large"),
    ]:
        assert words in find_obstacle(solution)
        assert compare_fit(solution) is None


def test_comparison_rests_on_the_certificate_of_the_fit():
    X, y = make_data()
    solution = solve(X, y, "auto+exact")
    comparison = compare_fit(solution)
    assert comparison.certificate is solution.certificate
    rows = {row.name: row for row in comparison.rows}
    assert rows["auto"].in_sample == pytest.approx(solution.objective / 150)
    assert rows["auto"].gap <= 1.01e-4
    assert rows["OLS clipped at 0"].gap > rows["auto"].gap


def test_a_summary_that_is_given_is_shown(tmp_path):
    solution = solve(*make_data())
    summary = solution.summary(covariance="HC3", names=["a", "b", "c"])
    write_report(solution, tmp_path / "given.html", summary=summary)
    write_report(solution, tmp_path / "made.html", covariance="HC3", names=["a", "b", "c"])
    given = (tmp_path / "given.html").read_text(encoding="utf-8")
    assert given == (tmp_path / "made.html").read_text(encoding="utf-8")
    assert "for noise of any variance, conservative with few rows (HC3)" in given


def test_what_is_shown_is_computed_before(monkeypatch):
    X, y = make_data()
    solution = solve(X, y, "auto+exact")
    data = collect(solution, solution.summary(), comparison=compare_fit(solution))

    def refuse(*_, **__):
        raise AssertionError("a view computes")

    for name in ("RowsEngine", "find_obstacle", "predicted_margins"):
        monkeypatch.setattr(f"rectifit.report.contents.{name}", refuse)
    monkeypatch.setattr("rectifit.data.problem.Problem.objective", refuse)
    monkeypatch.setattr("rectifit.data.problem.Problem.preactivation", refuse)
    assert render(data).render().count("<img") == count_pictures(solution)


def test_the_path_and_the_points_are_those_of_the_fit():
    X, y = make_data(5000)
    solution = solve(X, y + 2.0, floor=2.0)
    data = collect(solution, solution.summary())
    assert data.path.reached == pytest.approx(solution.objective)
    assert (data.path.shares.min(), data.path.shares.max()) == pytest.approx((0.0, 100.0))
    assert (data.path.objectives <= data.path.surrogates * (1 + 1e-9)).all()
    assert data.path.objectives.min() >= solution.objective * (1 - 1e-9)
    assert data.rows.linear.size == MAX_ROWS < data.rows.n_rows == data.problem.n_samples == 5000
    assert data.rows.predicted.min() == 2.0
    assert (data.rows.predicted[data.rows.is_above] > 2.0).all()
