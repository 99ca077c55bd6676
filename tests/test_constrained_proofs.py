"""Certificates under constraints against brute force, all cells of an arrangement, and SCIP."""

import hashlib
import json
import struct

import numpy as np
import pytest
from brute import least_in_space, least_objective, random_problem
from constrained import KINDS, assert_allowed, constrained_problem, random_constraints
from peers import prove_by_scip
from scipy.optimize import LinearConstraint

from rectifit import Certificate, Problem, ProofError, certify, check_proof, solve
from rectifit.certificate import branching, search
from rectifit.certificate.best_first import Control
from rectifit.certificate.presolve import reduce_rows
from rectifit.certificate.search import Search
from rectifit.checking import trees
from rectifit.checking.reading import DIGEST_BYTES, MAGIC
from rectifit.constraints import Constraints
from rectifit.datasets import make_relu

pytestmark = pytest.mark.filterwarnings(
    "ignore:the fit is the zero function", "ignore:no outcome is positive"
)


def assert_proved(problem, given, least, **options):
    """The bound is below the least objective, and the gap is closed."""
    certificate = certify(
        problem.X,
        problem.y,
        sample_weight=problem.sample_weight,
        fit_intercept=problem.fit_intercept,
        alpha=problem.alpha,
        **given,
        **options,
    )
    slack = 1e-8 * max(problem.null_objective, least)
    assert certificate.lower_bound <= least + slack
    assert certificate.objective >= least - slack
    assert certificate.status == "optimal"
    assert certificate.objective <= least * (1 + 1.01 * certificate.target_gap) + slack
    assert certificate.is_constrained
    assert_allowed(problem, certificate.solution.beta)
    certificate.solution.verify()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunk", range(2))
def test_against_brute_force(kind, chunk):
    for seed in range(15 * chunk, 15 * chunk + 15):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        base = random_problem(seed)
        given = random_constraints(kind, base.n_features, rng, float(rng.choice([0.1, 1.0, 10.0])))
        problem = constrained_problem(base, **given)
        if problem.constraints is not None:
            assert_proved(problem, given, least_objective(problem))


def draw_in_space(seed):
    """Three coefficients, one of them an intercept in three of four cases."""
    rng = np.random.default_rng(seed)
    n, fit_intercept = int(rng.integers(15, 40)), bool(seed % 4)
    X = rng.normal(size=(n, 2 if fit_intercept else 3))
    signal = np.maximum(X @ rng.normal(size=X.shape[1]) + rng.normal(), 0.0) * rng.integers(2)
    y = signal + rng.choice([0.5, 2.0]) * rng.normal(size=n)
    weight = rng.exponential(size=n) if seed % 3 == 0 else None
    alpha = float(rng.choice([0.0, 0.0, 0.0, 0.5]))
    return Problem.from_data(X, y, sample_weight=weight, fit_intercept=fit_intercept, alpha=alpha)


def draw_within(seed, kind):
    base, rng = draw_in_space(seed), np.random.default_rng([seed, KINDS.index(kind)])
    given = random_constraints(kind, base.n_features, rng, float(rng.choice([0.1, 1.0, 10.0])))
    return constrained_problem(base, **given), given


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("many", [0, 1000])
def test_against_the_arrangement_in_space(kind, many, monkeypatch):
    """By slabs and cells of directions, and by signs alone."""
    monkeypatch.setattr(branching, "MAX_FREE_WITHOUT_SLABS", many)
    for seed in range(4):
        problem, given = draw_within(seed, kind)
        if problem.constraints is not None:
            assert_proved(problem, given, least_in_space(problem), time_limit=60)


@pytest.mark.parametrize(("seed", "kind"), [(11, "linear"), (2, "fixed"), (11, "ties")])
def test_solutions_with_all_samples_off_are_compared_by_their_penalty(seed, kind, monkeypatch):
    """Zero is not allowed, and the least objective is that of a fit that is 0 everywhere."""
    monkeypatch.setattr(branching, "MAX_FREE_WITHOUT_SLABS", 0)
    problem, given = draw_within(seed, kind)
    assert_proved(problem, given, least_in_space(problem), time_limit=60)


def test_searches_that_begin_outside_of_the_constraints_end():
    """With as many walls as coefficients held, some of which are not where the minimum is."""
    X = [
        [-0.19349177, 0.00960395],
        [-1.82267278, 1.15644083],
        [1.29040033, 0.17385934],
        [-0.69230864, 1.19444274],
    ]
    y, weight = (
        [0.63472497, 0.63237138, 0.35267505, 0.2770156],
        [0.01284973, 0.83626853, 0.65130268, 0.24383533],
    )
    given = {
        "bounds": [(-0.0363796, 0.01032273), (-0.0145766, -0.00971189)],
        "constraints": LinearConstraint([-2.42581357, -15.40563415], 0.1995207, 0.1995207),
    }
    fit = solve(X, y, sample_weight=weight, fit_intercept=False, **given)
    certificate = certify(X, y, fit, target_gap=1e-4, time_limit=60)
    assert certificate.status == "optimal"


def test_signs_that_a_leaf_would_rather_not_have_are_constraints_there(monkeypatch):
    """The slope is fixed at 0 and the intercept would like to be negative: all samples on is worst at 0."""
    monkeypatch.setattr(branching, "MAX_FREE_WITHOUT_SLABS", 0)
    X, weight = [[-2.0], [-2.0], [1.0], [2.0], [-1.0]], [1.0, 0.0, 3.0, 3.0, 1.0]
    y = [0.43631694, 0.42693167, -0.57525564, 0.2608401, -0.03297679]
    certificate = certify(X, y, ([0.0], 0.0), sample_weight=weight, bounds=(0.0, 0.0), time_limit=60)
    assert certificate.status == "optimal"


def search_above(problem, least, room, n_nodes=300):
    """A search that knows no solution, for losses below a cutoff above the least one; its bound."""
    reduced = reduce_rows(problem)
    cutoff = reduced.value(least + room * problem.null_objective)
    found = []

    def is_over():
        return bool(found) and found[0].n_nodes > n_nodes

    control = Control(lambda: cutoff, lambda _: None, is_over)
    found.append(Search(reduced.samples, control, reduced.region, reduced.is_cone))
    is_closed = found[0].run()
    return is_closed, reduced.objective(found[0].lower_bound)


def draws_in_space(kinds, n_seeds):
    # With equations, 22 has intervals that begin 1e14 times as far away as they have to, and 42 minima where
    # no piece is left that could balance a residual.
    return [draw_within(seed, kind)[0] for kind in kinds for seed in (*range(n_seeds), 22, 42)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("many", [0, 1000])
def test_no_search_rules_out_the_best_fit(kind, many, monkeypatch):
    monkeypatch.setattr(branching, "MAX_FREE_WITHOUT_SLABS", many)
    for problem in draws_in_space([kind], 6):
        if problem.constraints is None:
            continue
        least = least_in_space(problem)
        for room in (1e-3, 0.1):
            is_closed, bound = search_above(problem, least, room)
            assert not is_closed
            assert bound <= least + 1e-8 * max(problem.null_objective, least)


def test_arguments_along_rays_would_rule_it_out(monkeypatch):
    """With bounds, the minimum along a ray may not be allowed: a proof about these alone says too much."""
    monkeypatch.setattr(branching, "MAX_FREE_WITHOUT_SLABS", 0)
    monkeypatch.setattr(Constraints, "is_cone", True)
    problems = draws_in_space(["shifted", "boxes"], 10)
    assert any(search_above(problem, least_in_space(problem), 0.01)[0] for problem in problems)


@pytest.mark.slow
@pytest.mark.parametrize("given", [{"positive": True}, {"bounds": (-1.0, 0.5)}, {"bounds": (0.2, 3.0)}])
@pytest.mark.parametrize("p", [3, 4])
def test_against_scip(p, given):
    X, y, *_ = make_relu(40, p, noise=0.3, random_state=p)
    low, high = given.get("bounds", (0.0, np.inf))
    certificate = certify(X, y, fit_intercept=False, **given)
    found = prove_by_scip(X, y, limit=60.0, bounds=np.tile([low, high], (p, 1)))
    assert certificate.status == "optimal"
    assert certificate.lower_bound <= found.objective * (1 + 1e-6)
    assert found.lower_bound <= certificate.objective * (1 + 1e-6)
    if found.gap <= 1e-4:
        assert found.objective == pytest.approx(certificate.objective, rel=2.1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_true_signs_make_proofs_shorter(seed):
    rng = np.random.default_rng([8, seed])
    X, b = rng.standard_normal((500, 7)), rng.standard_normal(7)
    y = np.maximum(X @ b / np.linalg.norm(b) + 0.3 + 2.0 * rng.standard_normal(500), 0.0)
    nodes = []
    for given in ({}, {"monotonic_cst": np.sign(b)}):
        fit = solve(X, y, random_state=0, **given)
        certificate = certify(X, y, fit, target_gap=1e-2, time_limit=60, n_jobs=1, **given)
        assert certificate.status == "optimal"
        nodes.append(certificate.n_nodes)
    assert nodes[1] < nodes[0]


def test_small_targets_are_reached_up_to_the_rounding_of_sums():
    assert Certificate(1.0, 1.0 - 1e-7 - 5e-13, "optimal", target_gap=1e-7).is_closed
    assert not Certificate(1.0, 1.0 - 1e-7 - 5e-12, "optimal", target_gap=1e-7).is_closed


def test_a_proof_within_constraints_is_no_proof_beyond_them():
    X, y, *_ = make_relu(100, 4, noise=0.1, random_state=2)
    inside = certify(X, y, bounds=(-0.1, 0.1), target_gap=1e-6)
    assert "among fits that satisfy the constraints" in str(inside)
    assert inside.lower_bound > certify(X, y).objective


# ---- proof files ----


def with_head(path, **changes):
    """The same file with other entries in its head, beside it."""
    content, start = path.read_bytes(), len(MAGIC) + 4
    (size,) = struct.unpack_from("<I", content, len(MAGIC))
    text = json.dumps(json.loads(content[start : start + size]) | changes).encode()
    content = MAGIC + struct.pack("<I", len(text)) + text + content[start + size : -DIGEST_BYTES]
    other = path.with_name("other")
    other.write_bytes(content + hashlib.sha256(content).digest())
    return other


@pytest.fixture
def cells(monkeypatch):
    """Proofs over cells alone, and how many trees of them were checked."""
    for name in ("FIRST_NODES", "FIRST_NODES_OF_FEW"):
        monkeypatch.setattr(search, name, 0)
    monkeypatch.setattr(branching.SignSearch, "_has_coordinates", lambda *_: False)
    counts, walk = [], trees.CellTree.walk
    monkeypatch.setattr(trees.CellTree, "walk", lambda tree, others: counts.append(1) or walk(tree, others))
    return counts


def assert_written(path, X, y, least, given, **options):
    """A file over cells that is accepted, says the truth and no more, and as much as the certificate."""
    certificate = certify(X, y, proof=path, time_limit=60, **given, **options)
    weight = options.get("sample_weight")
    checked, null = check_proof(path, X, y, sample_weight=weight), float(np.sum(np.square(y)))
    assert certificate.status == "optimal"
    assert checked.lower_bound <= certificate.lower_bound
    assert certificate.lower_bound - checked.lower_bound <= 1e-8 * null + 1e-5 * certificate.objective
    if least is None:
        return
    assert checked.lower_bound <= least * (1 + 1e-9)
    assert least <= checked.objective * (1 + 1e-8)
    for share in (1e-4, 0.1):
        other = with_head(path, lower_bound=least * (1 + share) + 1e-9 * null)
        with pytest.raises(ProofError):
            check_proof(other, X, y, sample_weight=weight)


@pytest.mark.parametrize("kind", KINDS)
def test_proof_files_over_cells_against_the_arrangement(kind, cells, tmp_path):
    for seed in range(1, 9):
        problem, given = draw_within(seed, kind)
        has_cells = problem.fit_intercept and problem.constraints is not None
        if not has_cells or (problem.alpha > 0.0 and not problem.constraints.is_cone):
            continue
        least = least_in_space(problem)
        options = {"sample_weight": problem.sample_weight, "alpha": problem.alpha}
        assert_written(tmp_path / "p.rproof", problem.X, problem.y, least, given, **options)
    assert cells


@pytest.mark.parametrize("p", [2, 4])
@pytest.mark.parametrize("kind", ["positive", "signs", "boxes", "one_sided", "ordered", "shares"])
def test_proof_files_over_cells_say_what_certificates_say(kind, p, cells, tmp_path):
    X, y, *_ = make_relu(100, p, noise=0.3, random_state=0)
    given = {
        "positive": {"positive": True},
        "signs": {"monotonic_cst": np.resize([1, -1], p)},
        "boxes": {"bounds": (-1.0, 2.0)},
        "one_sided": {"bounds": (0.2, np.inf)},
        "ordered": {"constraints": LinearConstraint(np.diff(np.eye(p), axis=0), 0.0, np.inf)},
        "shares": {"constraints": LinearConstraint(np.ones((1, p)), 1.0, 1.0)},
    }[kind]
    assert_written(tmp_path / "p.rproof", X, y, None, given)
    assert cells


def test_faces_of_proof_files_have_the_constraints_that_lie_in_them(cells, tmp_path):
    """Groups, some of which are off altogether, with effects in order."""
    for seed in range(6):
        draw = np.random.default_rng(seed)
        group = draw.integers(0, 3, size=50)
        X = np.column_stack([group == 1, group == 2, draw.normal(size=50).round(1)]).astype(float)
        y = np.maximum(0.5 * X @ draw.normal(size=3) - 0.2 + 1.5 * draw.normal(size=50), 0.0)
        given = {"constraints": LinearConstraint([[-1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], 0.0, np.inf)}
        assert_written(tmp_path / "p.rproof", X, y, None, given)
    assert len(cells) > 12


@pytest.mark.usefixtures("cells")
def test_a_proof_file_says_nothing_under_other_constraints(tmp_path):
    X, y, *_ = make_relu(80, 2, noise=0.3, random_state=1)
    path, wider = tmp_path / "p.rproof", [[[[j, 1.0]], -9.0, 9.0] for j in range(2)]
    certificate = certify(X, y, proof=path, bounds=(-0.1, 0.1))
    free = certify(X, y).objective
    assert check_proof(path, X, y).lower_bound > free
    for changed in ([], wider, wider[:1]):
        with pytest.raises(ProofError):
            check_proof(with_head(path, constraints=changed), X, y)
    # Beside more constraints the bound still follows, if the coefficients satisfy them.
    head = [[[[j, sign]], None, 0.1] for sign in (1.0, -1.0) for j in (0, 1)]
    more = [*head, [[[0, 1.0], [1, 1.0]], None, 5.0]]
    assert check_proof(with_head(path, constraints=more), X, y).lower_bound <= certificate.objective
    never = [*head, [[[0, 1.0]], 0.5, None]]
    with pytest.raises(ProofError, match="do not satisfy its constraints"):
        check_proof(with_head(path, constraints=never), X, y)
    for wrong in ([[[[0, 1.0]], 0.0]], [[[[9, 1.0]], None, 0.0]], [[[[0, 1]], None, 0.0]], [None]):
        with pytest.raises(ProofError, match="a constraint that is none"):
            check_proof(with_head(path, constraints=wrong), X, y)
