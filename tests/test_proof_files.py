"""Proof files: what a search writes is accepted, says the truth, and nothing else is accepted."""

import hashlib
import json
import struct
from fractions import Fraction

import numpy as np
import pytest
from brute import least_objective, random_problem
from click.testing import CliRunner

from rectifit import ProofError, ReLURegressor, certify, check_proof, solve
from rectifit.checking.cells import BOUND, DRAW, FACE, FAR, LENGTH
from rectifit.checking.reading import DIGEST_BYTES, MAGIC, open_proof
from rectifit.checking.rounding import gamma, inverse_factor, lower_sum, up
from rectifit.checking.rows import distinct_rows
from rectifit.checking.trees import CLOSED, EXPAND, TREE
from rectifit.cli.program import program
from rectifit.datasets import make_relu

KINDS = [
    "gaussian",
    "no_intercept",
    "ternary",
    "signed",
    "heavy",
    "ridge",
    "weights",
    "floor",
    "offset",
    "ties",
]


def make_data(kind, n=60, p=2, seed=0):
    """Data of many kinds, and what else belongs to the problem."""
    draw = np.random.default_rng([seed, n, p])
    X, options = draw.normal(size=(n, p)), {}
    if kind in ("ternary", "ties"):
        X = draw.integers(-1, 2, size=(n, p)).astype(float)
    u = X @ draw.normal(size=p) + 0.3
    noise = draw.standard_t(1.5, size=n) if kind == "heavy" else draw.normal(size=n)
    y = u + noise if kind == "signed" else np.maximum(u + noise, 0.0)
    if kind == "offset":
        X += 30.0
    if kind == "ties":
        y = np.round(y, 1)
    if kind == "no_intercept":
        options["fit_intercept"] = False
    if kind == "ridge":
        options["alpha"] = 3.0
    if kind == "weights":
        options["sample_weight"] = draw.integers(0, 3, size=n) * draw.exponential(size=n)
    if kind == "floor":
        y, options["floor"] = y + 0.3, 0.3
    return X, y, options


def weights_of(options):
    return {"sample_weight": options.get("sample_weight")}


@pytest.fixture(scope="module")
def proof(tmp_path_factory):
    """A proof with all kinds of steps, its data and its bytes."""
    path = tmp_path_factory.mktemp("proof") / "p.rproof"
    X, y, _ = make_data("gaussian", 120, 3)
    certify(X, y, proof=path, time_limit=None)
    return path, X, y, path.read_bytes()


def sealed(content):
    """The bytes of a file with the right digest at its end."""
    return content + hashlib.sha256(content).digest()


def head_of(content):
    start = len(MAGIC) + 4
    (size,) = struct.unpack_from("<I", content, len(MAGIC))
    return json.loads(content[start : start + size]), start, size


def with_head(content, **changes):
    """The same file with other entries in its head, and the right digest."""
    head, start, size = head_of(content)
    text = json.dumps(head | changes).encode()
    return sealed(
        content[: len(MAGIC)] + struct.pack("<I", len(text)) + text + content[start + size : -DIGEST_BYTES]
    )


def steps_of(path, n_rows):
    """Where each step of each cell begins in the file, with its code."""
    claim, reader = open_proof(path)
    offset = path.stat().st_size - DIGEST_BYTES - len(reader.content)
    d, found, sizes = claim.n_columns, [], []
    while tag := reader.take("B")[0]:
        found.append((offset + reader.at, "tree" if tag == TREE else "parent"))
        if tag == TREE:
            (q,) = reader.take("B")
            sizes.append(q)
            reader.skip((n_rows + 7) // 8 + 8 * d * d + 2 * q)
            continue
        assert tag == EXPAND
        number, _ = reader.take("II")
        q = sizes[number]
        for _ in range(2):
            for _ in range(reader.take("B")[0]):
                at = offset + reader.at
                (code,) = reader.take("B")
                found.append((at, code))
                if code == FAR:
                    reader.skip(8)
                if code in (LENGTH, FACE):
                    reader.skip(8 * q if code == LENGTH else 4)
                    continue
                reader.skip(12 * reader.take("B")[0])
                if code == DRAW:
                    reader.skip(16 + 16 * q)
                    reader.skip(4 * reader.take("I")[0])
            found.append((offset + reader.at, "end"))
            reader.skip(1)
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", [1, 2, 3])
def test_a_proof_is_accepted_and_says_what_the_certificate_says(kind, p, tmp_path):
    X, y, options = make_data(kind, p=p)
    path = tmp_path / "p.rproof"
    certificate = certify(X, y, proof=path, time_limit=None, target_gap=1e-3, **options)
    checked = check_proof(path, X, y, **weights_of(options))
    assert certificate.status == "optimal"
    assert checked.objective == pytest.approx(certificate.objective, rel=1e-9)
    assert checked.gap <= 1e-3 * (1.0 + 1e-5)
    assert checked.lower_bound <= certificate.lower_bound
    # A file states a little less than the search has proved: over signs, a share of the gap.
    stated_less = 1e-8 * np.sum(y**2) + 2e-3 * (certificate.objective - certificate.lower_bound)
    assert certificate.lower_bound - checked.lower_bound <= stated_less


def assert_no_more(path, least, X, y, **weights):
    """Nothing above the truth can be had by stating it."""
    content, more = path.read_bytes(), path.with_name("more")
    assert head_of(content)[0]["lower_bound"] <= least
    for share in (1e-6, 1e-3, 0.3):
        stated = least + share * max(least, 1e-3 * float(np.sum(y**2)))
        more.write_bytes(with_head(content, lower_bound=stated))
        with pytest.raises(ProofError):
            check_proof(more, X, y, **weights)


@pytest.mark.parametrize("seed", range(25))
def test_what_is_proved_is_true(seed, tmp_path):
    problem = random_problem(seed)
    path = tmp_path / "p.rproof"
    options = {"alpha": problem.alpha, "fit_intercept": problem.fit_intercept}
    weights = {"sample_weight": problem.sample_weight}
    try:
        certify(problem.X, problem.y, proof=path, time_limit=None, **options, **weights)
    except ValueError as refusal:
        assert "linearly dependent" in str(refusal)  # noqa: PT017
        assert not list(tmp_path.iterdir())
        return
    least = least_objective(problem)
    checked = check_proof(path, problem.X, problem.y, **weights)
    assert checked.lower_bound <= least <= checked.objective * (1.0 + 1e-9) + 1e-12
    assert_no_more(path, least, problem.X, problem.y, **weights)


def test_an_interrupted_search_has_a_proof_of_its_bound(tmp_path):
    X, y, _ = make_data("heavy", 400, 8)
    path = tmp_path / "p.rproof"
    for time_limit in (1.0, 4.0, 16.0, 64.0):
        certificate = certify(X, y, proof=path, time_limit=time_limit, target_gap=1e-6)
        checked = check_proof(path, X, y)
        assert certificate.status == "time_limit"
        # On a slow machine a second may not be enough for any bound.
        if checked.lower_bound > 0.0:
            break
    assert checked.lower_bound == pytest.approx(certificate.lower_bound, rel=1e-4)
    assert 0.0 < checked.lower_bound < checked.objective


def test_the_same_proof_for_any_number_of_threads(tmp_path):
    X, y, _ = make_data("heavy", 150, 4)
    files = [tmp_path / f"{n_jobs}.rproof" for n_jobs in (1, 2)]
    for n_jobs, path in zip((1, 2), files, strict=True):
        certify(X, y, proof=path, time_limit=None, n_jobs=n_jobs)
    ends = [path.read_bytes()[head_of(path.read_bytes())[2] :] for path in files]
    assert ends[0][:-DIGEST_BYTES] == ends[1][:-DIGEST_BYTES]


def test_a_fit_and_an_estimator_write_proofs(tmp_path):
    X, y, _ = make_data("gaussian")
    solve(X, y).certify(proof=tmp_path / "a.rproof")
    ReLURegressor().fit(X, y).certify(proof=str(tmp_path / "b.rproof"))
    for name in "ab":
        assert check_proof(tmp_path / f"{name}.rproof", X, y).gap <= 1.001e-4


def test_a_proof_is_copied_whole_or_not_at_all(proof, tmp_path):
    path, X, y, content = proof
    certificate = certify(X, y, proof=tmp_path / "p.rproof", time_limit=None)
    certificate.save_proof(tmp_path / "copy.rproof")
    assert check_proof(tmp_path / "copy.rproof", X, y).gap <= 1.001e-4
    (tmp_path / "p.rproof").unlink()
    with pytest.raises(FileNotFoundError, match=r"p\.rproof"):
        certificate.save_proof(tmp_path / "other.rproof")
    assert [file.name for file in tmp_path.iterdir()] == ["copy.rproof"]
    with pytest.raises(ValueError, match="wrote no proof; pass proof= to certify"):
        certify(X, y, time_limit=0.1).save_proof(tmp_path / "p.rproof")
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"factor": 1.0 / 3.0}, "linearly dependent up to rounding"),
        ({"n_samples": 10**6}, "up to 524,288"),
    ],
)
def test_a_proof_that_cannot_be_written_is_refused_and_leaves_nothing(options, sentence, tmp_path):
    X, y, _ = make_data("gaussian", options.get("n_samples", 60), 1)
    X = np.column_stack([X, options.get("factor", 1.0) * X, X])
    with pytest.raises(ValueError, match=sentence):
        certify(X, y, proof=tmp_path / "p.rproof")
    assert not list(tmp_path.iterdir())


def test_a_proof_with_columns_that_depend_on_others(tmp_path):
    """Dummies of all levels beside an intercept, and without; a column twice."""
    draw = np.random.default_rng(0)
    level, x = draw.integers(3, size=90), draw.normal(size=90)
    y = np.maximum(x + level - 1.0 + draw.normal(size=90), 0.0)
    X = np.column_stack([x, *(level == k for k in range(3)), 2.0 * x])
    for fit_intercept in (True, False):
        certificate = certify(
            X, y, proof=tmp_path / "p.rproof", fit_intercept=fit_intercept, time_limit=None, target_gap=1e-3
        )
        plain = certify(X[:, :4], y, fit_intercept=False, time_limit=None, target_gap=1e-3)
        checked = check_proof(tmp_path / "p.rproof", X, y)
        assert certificate.status == "optimal"
        assert checked.gap <= 1e-3 * (1.0 + 1e-5)
        assert checked.lower_bound <= plain.objective * (1.0 + 1e-9)


def test_other_data_are_rejected(proof):
    path, X, y, _ = proof
    for other, sentence in [
        ((X, np.where(np.arange(y.size) == 7, y + 1e-12, y)), "SHA-256"),
        ((X[::-1], y), "SHA-256"),
        ((X[1:], y[1:]), "119 of 3"),
        ((X[:, :2], y), "120 of 2"),
        ((X, y[1:]), "one outcome"),
        ((X, np.full(y.size, np.nan)), "missing"),
        ((np.full(X.shape, "a"), y), "not numbers"),
    ]:
        with pytest.raises(ProofError, match=sentence):
            check_proof(path, *other)
    with pytest.raises(ProofError, match="without weights"):
        check_proof(path, X, y, sample_weight=np.ones(y.size))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"lower_bound": None}, "entries of a wrong kind"),
        ({"lower_bound": 1e300}, "above the objective"),
        ({"beta": [0.0, 0.0]}, "entries of a wrong kind"),
        ({"n_samples": 10**18}, "samples"),
        ({"n_features": 10**9, "beta": [0.0]}, "entries of a wrong kind"),
        ({"digest": "0" * 64}, "SHA-256"),
        ({"weighted": True}, "with weights"),
        ({"setting": {}}, "in which unit"),
        ({"setting": {"unit": 1}}, "in which unit"),
        ({"setting": []}, "entries of a wrong kind"),
        ({"alpha": 1.0}, "."),
        ({"fit_intercept": False}, "."),
        ({"more": 1}, "not what the head"),
    ],
)
def test_a_changed_head_is_rejected(proof, changes, sentence, tmp_path):
    _, X, y, content = proof
    (tmp_path / "p").write_bytes(with_head(content, **changes))
    with pytest.raises(ProofError, match=sentence):
        check_proof(tmp_path / "p", X, y)


def test_a_raised_bound_is_rejected(proof, tmp_path):
    path, X, y, content = proof
    stated, objective = head_of(content)[0]["lower_bound"], check_proof(path, X, y).objective
    for share in (0.01, 0.1, 0.9):
        bound = stated + share * (objective - stated)
        (tmp_path / "p").write_bytes(with_head(content, lower_bound=bound))
        with pytest.raises(ProofError):
            check_proof(tmp_path / "p", X, y)


def test_what_is_no_proof_file_is_rejected(proof, tmp_path):
    _, X, y, content = proof
    draw = np.random.default_rng(0)
    for other in [b"", b"x", MAGIC, draw.bytes(1000), MAGIC + draw.bytes(1000), content[:-1], content + b"0"]:
        (tmp_path / "p").write_bytes(other)
        with pytest.raises(ProofError):
            check_proof(tmp_path / "p", X, y)
    huge = MAGIC + struct.pack("<I", 0xFFFFFFFF) + content[len(MAGIC) + 4 : -DIGEST_BYTES]
    (tmp_path / "p").write_bytes(sealed(huge))
    with pytest.raises(ProofError, match="longer than the file"):
        check_proof(tmp_path / "p", X, y)


def changed(content, at, code, value):
    size = struct.calcsize("<" + code)
    return sealed(content[:at] + struct.pack("<" + code, value) + content[at + size : -DIGEST_BYTES])


def test_every_kind_of_field_is_checked(proof, tmp_path):
    """Of every kind of step one that is needed is changed in every field."""
    path, X, y, content = proof
    places = steps_of(path, len(y))
    assert {BOUND, DRAW, FAR, LENGTH} <= {code for _, code in places}
    q = X.shape[1] + 1
    changes = {
        "tree": [(0, "B", 200), (0, "B", 1), (1, "B", 0), (16, "d", np.nan), (16, "d", 1e50)],
        "parent": [(0, "I", 10**6), (4, "I", 10**6), (4, "I", 0)],
        "end": [(0, "B", 200), (0, "B", CLOSED)],
        BOUND: [(0, "B", 77), (1, "B", 255), (1, "B", 0), ("weight", "d", np.nan), ("weight", "d", 1e9)],
        DRAW: [
            ("weight", "d", np.inf),
            ("cutoff", "d", 0.0),
            ("low", "d", 0.99),
            ("high", "d", -0.99),
            ("settled", "I", 10**6),
            ("settled", "I", 2**31),
        ],
        LENGTH: [(1, "d", np.nan)],
        FAR: [(1, "d", 1e-9), (1, "d", -1.0), (1, "d", np.inf), (1, "d", np.nan)],
    }
    for kind, fields in changes.items():
        for where, code, value in fields:
            rejected = 0
            for at, _ in [place for place in places if place[1] == kind][:30]:
                count = content[at + 1] if kind in (BOUND, DRAW) else 0
                if where == "weight":
                    offset = 2 + 4 * count
                elif where in ("cutoff", "low", "high", "settled"):
                    offset = 10 + 12 * count
                    offset += {"cutoff": 0, "low": 8, "high": 8 + 8 * q, "settled": 8 + 16 * q}[where]
                else:
                    offset = where
                (tmp_path / "p").write_bytes(changed(content, at + offset, code, value))
                try:
                    checked = check_proof(tmp_path / "p", X, y)
                except ProofError:
                    rejected += 1
                else:
                    # The same statement, which is true whatever the steps are.
                    assert checked.lower_bound == head_of(content)[0]["lower_bound"]
            # A largest scale is rarely needed.
            assert rejected > 0 or kind == LENGTH, (kind, where, code, value)


def test_a_missing_or_repeated_leaf_is_rejected(proof, tmp_path):
    path, X, y, content = proof
    starts = [at - 1 for at, kind in steps_of(path, len(y)) if kind == "parent"]
    first, second = starts[-2:]
    end = len(content) - DIGEST_BYTES - 1
    without = content[:second] + content[end:-DIGEST_BYTES]
    repeated = content[:end] + content[second:end] + content[end:-DIGEST_BYTES]
    followed = content[:-DIGEST_BYTES] + b"\0"
    unended = content[:end]
    for other in (without, repeated, followed, unended, content[:first] + content[second:-DIGEST_BYTES]):
        (tmp_path / "p").write_bytes(sealed(other))
        with pytest.raises(ProofError):
            check_proof(tmp_path / "p", X, y)


def test_flipped_bytes_are_rejected_or_leave_the_same_statement(proof, tmp_path):
    path, X, y, content = proof
    draw, truth = np.random.default_rng(1), check_proof(path, X, y)
    n_rejected = 0
    for _ in range(150):
        other = bytearray(content[:-DIGEST_BYTES])
        for at in draw.integers(len(MAGIC), len(other), size=draw.integers(1, 4)):
            other[at] ^= 1 << draw.integers(8)
        (tmp_path / "p").write_bytes(sealed(bytes(other)))
        try:
            checked = check_proof(tmp_path / "p", X, y)
        except ProofError:
            n_rejected += 1
        else:
            assert checked.lower_bound <= truth.lower_bound * (1.0 + 1e-4)
            assert checked.digest == truth.digest
        (tmp_path / "p").write_bytes(bytes(other) + content[-DIGEST_BYTES:])
        with pytest.raises(ProofError):
            check_proof(tmp_path / "p", X, y)
    assert n_rejected > 20


# ---- the lemmas ----


def test_rounding_of_sums_of_products():
    draw = np.random.default_rng(0)
    for n in (1, 3, 20, 300):
        a, b = draw.normal(size=(2, n)) * 10.0 ** draw.integers(-6, 7, size=(2, n))
        exact = sum(Fraction(x) * Fraction(z) for x, z in zip(a.tolist(), b.tolist(), strict=True))
        room = Fraction(up(gamma(n) * float(np.abs(a) @ np.abs(b))))
        assert abs(Fraction(float(a @ b)) - exact) <= room
        assert Fraction(lower_sum(*a.tolist())) <= sum(Fraction(x) for x in a.tolist())


def test_inverse_factors_bound_all_matrices_nearby():
    draw = np.random.default_rng(0)
    for q in (1, 2, 5, 9):
        A = draw.normal(size=(2 * q, q))
        K, error = A.T @ A, np.full((q, q), 1e-7)
        W, factor = inverse_factor(K, error)
        for _ in range(20):
            E = draw.uniform(-1e-7, 1e-7, size=(q, q))
            inverse = np.linalg.inv(K + 0.5 * (E + E.T))
            least = np.linalg.eigvalsh(factor * W.T @ W - inverse).min()
            assert least >= -1e-9 * np.abs(inverse).max()
        assert inverse_factor(K, np.full((q, q), np.linalg.eigvalsh(K)[0])) is None
        assert inverse_factor(K - 1.001 * np.linalg.eigvalsh(K)[0] * np.eye(q), 0.0 * K) is None


@pytest.mark.parametrize("kind", KINDS)
def test_reduced_rows_are_below_the_objective_exactly(kind, tmp_path):
    """In rationals: L >= 2^exponent [constant + sum w (max(0, z'g) - y)^2 + g'Bg], with exact rows z."""
    X, y, options = make_data(kind, n=25, p=2)
    X[5:9], y[10] = X[4], 0.1
    path = tmp_path / "p.rproof"
    certify(X, y, proof=path, **options)
    claim, _ = open_proof(path)
    weight = options.get("sample_weight")
    about = (claim.fit_intercept, claim.alpha, X, y, weight, claim.floor, claim.lower_bound)
    data = distinct_rows(*about)
    T = np.random.default_rng(1).normal(size=(claim.n_columns, claim.n_columns))
    rows = data.inside(np.ones(len(data.y), dtype=bool), T, np.zeros((len(T), 0)))
    unit = Fraction(2) ** rows.exponent
    # cutoff = bound - constant, rounded up: so bound - cutoff is at most the constant.
    constant = Fraction(claim.lower_bound) - Fraction(rows.cutoff) * unit
    w = np.ones(len(y)) if weight is None else weight
    floor = Fraction(claim.floor)
    for g in np.random.default_rng(3).normal(size=(5, T.shape[1])) * 2.0:
        beta = [
            sum(Fraction(t) * Fraction(x) for t, x in zip(row, g.tolist(), strict=True)) for row in T.tolist()
        ]
        intercept = beta[2] if claim.fit_intercept else Fraction(0)
        loss = Fraction(claim.alpha) * (beta[0] ** 2 + beta[1] ** 2)
        for x, target, share in zip(X.tolist(), y.tolist(), w.tolist(), strict=True):
            u = Fraction(x[0]) * beta[0] + Fraction(x[1]) * beta[1] + intercept
            loss += Fraction(share) * (max(u, Fraction(0)) + floor - Fraction(target)) ** 2
        below = constant
        for z, doubt, share, target in zip(
            rows.Z.tolist(), rows.doubt.tolist(), rows.w.tolist(), rows.y.tolist(), strict=True
        ):
            u = sum(Fraction(a) * Fraction(b) for a, b in zip(z, g.tolist(), strict=True))
            u -= Fraction(doubt) * Fraction(float(np.abs(g).max()))
            # Rows are known up to their doubt: take the value nearer to the outcome.
            near = (
                max(u, Fraction(0)),
                max(u + 2 * Fraction(doubt) * Fraction(float(np.abs(g).max())), Fraction(0)),
            )
            off = Fraction(target)
            miss = 0 if near[0] <= off <= near[1] else min(abs(near[0] - off), abs(near[1] - off))
            below += unit * Fraction(share) * miss**2
        assert below <= loss


# ---- the command line ----


@pytest.fixture
def table(tmp_path):
    X, y, _ = make_data("gaussian")
    path = tmp_path / "rain.csv"
    rows = ["mm,a,b,w", *(f"{v!r},{a!r},{b!r},1.5" for v, (a, b) in zip(y.tolist(), X.tolist(), strict=True))]
    path.write_text("\n".join(rows))
    return path


def run(*arguments):
    return CliRunner().invoke(program, [str(argument) for argument in arguments])


def test_the_command_line_writes_and_checks_a_proof(table, tmp_path):
    proof = tmp_path / "p.rproof"
    options = [table, "--target", "mm", "--weights", "w"]
    certified = run("certify", *options, "--proof", proof, "--json")
    checked = run("check", proof, *options)
    assert (certified.exit_code, checked.exit_code) == (0, 0)
    assert checked.stdout.startswith(
        "Proved: with an intercept, weights, no coefficients have an objective below "
    )
    assert checked.stdout.count("\n") == 1
    stated, found = json.loads(certified.stdout), json.loads(run("check", proof, *options, "--json").stdout)
    assert found["lower_bound"] == pytest.approx(stated["lower_bound"], rel=1e-6)
    assert found["statement"] == checked.stdout.strip()


def test_the_command_line_rejects_in_one_sentence(table, tmp_path):
    proof = tmp_path / "p.rproof"
    run("certify", table, "--target", "mm", "--features", "a,b", "--proof", proof)
    for arguments, sentence, status in [
        ((proof, table, "--target", "mm", "--features", "a"), "60 samples of 2 features", 1),
        ((proof, table, "--target", "a", "--features", "mm,b"), "SHA-256", 1),
        ((table, table, "--target", "mm"), "not a proof file", 1),
        ((tmp_path / "none", table, "--target", "mm"), "none", 2),
    ]:
        result = run("check", *arguments)
        assert result.exit_code == status
        assert sentence in result.stderr
        assert result.stderr.count("\n") == 1 or status == 2
        assert result.stdout == ""


def test_beside_a_bound_of_zero_the_difference_is_stated(tmp_path):
    X, y, *_ = make_relu(60, 3, noise=0.0, random_state=0)
    file = tmp_path / "exact.rproof"
    solve(X, y).certify(proof=file)
    sentence = str(check_proof(file, X, y))
    assert "an objective below 0 on these 60 samples" in sentence
    assert "%" not in sentence
