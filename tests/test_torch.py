import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rectifit import Problem, ReLURegressor, SurrogateSolver, certify, solve, solve_surrogate
from rectifit.active import Members
from rectifit.checks import is_tensor, to_numpy
from rectifit.data import ArrayData, TensorData
from rectifit.data.ranks import find_cuts
from rectifit.datasets import make_relu
from rectifit.methods.approximation import Approximation
from rectifit.methods.multistart import Multistart
from rectifit.methods.search import Search
from rectifit.solution import Solution
from rectifit.surrogate.rows_engine import RowsEngine
from rectifit.surrogate.survey import SurveyTask

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make_data(seed, n=600, p=4, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)).astype(dtype)
    y = np.maximum(X @ rng.normal(0.3, 1.0, p) + 0.2, 0.0) + 0.7 * rng.standard_normal(n)
    if seed % 3 == 0:
        y = np.maximum(y, 0.0)
    weight = rng.uniform(0.0, 2.0, n) * (rng.uniform(size=n) < 0.9) if seed % 2 else None
    return X, y, weight


def on_device(values):
    return None if values is None else torch.from_numpy(np.array(values))


# Tensors read in passes.


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("method", ["sorting+iterative", "auto"])
def test_tensors_read_in_passes_give_what_arrays_give(seed, method):
    dtype = np.float32 if seed % 4 == 1 else np.float64
    X, y, weight = make_data(seed, dtype=dtype)
    options = {"fit_intercept": seed % 5 != 0, "alpha": 0.0 if seed % 2 else 0.3, "method": method}
    block_rows = None if seed % 2 else 170
    tensors = TensorData(on_device(X), on_device(y), on_device(weight), block_rows=block_rows)
    ours = solve(tensors, None, **options)
    theirs = solve(ArrayData(X, y, weight), None, **options)
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-8)
    ours.verify()


@pytest.mark.parametrize("seed", range(12))
def test_sorting_and_iterating_on_tensors_is_the_same_as_on_small_arrays(seed):
    X, y, weight = make_data(seed)
    options = {"method": "sorting+iterative", "fit_intercept": seed % 5 != 0, "alpha": 0.1 * (seed % 3)}
    ours = solve(TensorData(on_device(X), y, weight), None, **options)
    theirs = solve(X, y, sample_weight=weight, **options)
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-8)
    assert ours.surrogate_objective == pytest.approx(theirs.surrogate_objective, rel=1e-8)


def test_ranks_and_samples_of_tensors_are_those_of_arrays():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3000, 2)), rng.integers(-5, 20, 3000).astype(float)
    arrays = ArrayData(X, y, block_rows=700, n_threads=1)
    tensors = TensorData(on_device(X), on_device(y), block_rows=1100)
    ranks = [0, 5, 700, 1500, 2000]
    n_positive, some = int((y > 0).sum()), np.sort(y[:100][y[:100] > 0])
    cuts = [
        find_cuts(lambda task, b=b: b.reduce(task, design=False), ranks, 3000, n_positive, some)
        for b in (arrays, tensors)
    ]
    assert cuts[0] == cuts[1]
    ours, theirs = (b.reduce(SurveyTask(True, 1.0, 0.1)) for b in (tensors, arrays))
    for mine, other in ((ours.gram, theirs.gram), (ours.largest, theirs.largest), (ours.cross, theirs.cross)):
        np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-9)
    samples = [survey.sample.joined() for survey in (ours, theirs)]
    for mine, other in zip(*samples, strict=True):
        np.testing.assert_array_equal(mine, other)
    assert 200 < samples[0][-1].size < 400


@pytest.mark.parametrize(
    ("X", "y", "error", "text"),
    [
        (torch.zeros(4), torch.zeros(4), ValueError, "X has shape"),
        (torch.zeros(4, 0), torch.zeros(4), ValueError, "X has shape"),
        (torch.zeros(4, 2, dtype=torch.complex64), torch.zeros(4), TypeError, "X has dtype"),
        (torch.zeros(4, 2), torch.zeros(3), ValueError, "y has 3 entries but X has 4 rows"),
        (torch.zeros(4, 2), torch.zeros(4, 1), ValueError, "y has shape"),
        (torch.full((4, 2), torch.nan), torch.zeros(4), ValueError, "X contains NaN"),
        (torch.zeros(4, 2), torch.full((4,), torch.inf), ValueError, "y contains an infinite value"),
    ],
)
def test_bad_tensors_are_named(X, y, error, text):
    with pytest.raises(error, match=text):
        solve(TensorData(X, y), None)


# Tensors in place of arrays.


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int64, torch.bfloat16])
def test_tensors_are_taken_like_arrays(dtype):
    X, y, weight = make_data(3, n=80)
    X, y = torch.from_numpy(4.0 * X).to(dtype), torch.from_numpy(y)
    array = X.double().numpy()
    plain = solve(array, y.numpy(), sample_weight=weight)
    ours = solve(X.requires_grad_(dtype.is_floating_point), y, sample_weight=torch.from_numpy(weight))
    assert ours.objective == pytest.approx(plain.objective, rel=1e-12)
    active = y > 0.0
    value = solve_surrogate(X, y, active, sample_weight=weight).value
    assert value == pytest.approx(
        solve_surrogate(array, y.numpy(), active.numpy(), sample_weight=weight).value
    )
    assert certify(X, y, ours, sample_weight=weight).objective <= ours.objective


def test_predictions_of_a_solution_live_where_x_lives():
    X, y, _ = make_data(1, n=60)
    for floor in (0.0, -0.4):
        solution = solve(X, y, floor=floor)
        for tensor in (torch.from_numpy(X), torch.from_numpy(X).float()):
            found = solution.predict(tensor)
            assert found.dtype == tensor.dtype
            np.testing.assert_allclose(found.numpy(), solution.predict(X), atol=1e-5)
    with pytest.raises(ValueError, match="X has 2 columns"):
        solution.predict(torch.zeros(3, 2))


def test_without_dispatch_the_estimator_takes_tensors_like_arrays():
    X, y, weight = make_data(5, n=100)
    ours = ReLURegressor().fit(torch.from_numpy(X), torch.from_numpy(y), torch.from_numpy(weight))
    plain = ReLURegressor().fit(X, y, weight)
    np.testing.assert_array_equal(ours.coef_, plain.coef_)
    np.testing.assert_array_equal(ours.predict(torch.from_numpy(X)), plain.predict(X))


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_single_precision_does_not_spoil_the_fit(scale):
    """Columns that differ by rounding have large coefficients that cancel, in float64 and not in float32."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    X = np.column_stack([X, X[:, 0] + X[:, 1]]).astype(np.float32)
    y = np.maximum(X[:, 0] - X[:, 2], 0.0) + scale * rng.standard_normal(60)
    model = ReLURegressor().fit(X, y)
    assert model.coef_.dtype == np.float64
    predicted = model.predict(X)
    assert predicted.dtype == np.float32
    assert np.square(predicted - y).sum() == pytest.approx(model.objective_, rel=1e-3)


DISPATCH = """
import numpy as np, pickle, sklearn, torch
from rectifit import ReLURegressor
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
device = "DEVICE"
rng = np.random.default_rng(0)
X, noise = rng.standard_normal((200, 3)), rng.standard_normal(200)
y = np.maximum(X @ [1.0, -1.0, 0.5] + 0.2, 0.0) + 0.3 * noise
weight = rng.uniform(0.5, 1.5, 200)
plain = ReLURegressor().fit(X, y, weight)
def host(tensor):
    assert torch.is_tensor(tensor) and tensor.device == T.device
    return tensor.detach().cpu().numpy()
def refuses(call, *texts):
    try:
        call()
    except (ValueError, TypeError) as error:
        assert all(text in str(error) for text in texts), error
        return
    raise AssertionError(texts)
with sklearn.config_context(array_api_dispatch=True):
    for dtype, close in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        T = torch.from_numpy(X).to(device, dtype).requires_grad_()
        # y and weights may come from elsewhere: everything follows X.
        for t in (y, y.tolist(), torch.from_numpy(y), torch.from_numpy(y).to(T.device)):
            model = clone(ReLURegressor()).fit(T, t, sample_weight=weight)
            assert model.coef_.dtype == model.intercept_.dtype == torch.float64
            assert model.n_features_in_ == 3 and host(model.active_).dtype == bool
            assert abs(host(model.coef_) - plain.coef_).max() < close
            assert abs(host(model.intercept_) - plain.intercept_) < close
            assert (host(model.active_) == plain.active_).mean() > 0.99
            predicted = model.predict(T)
            assert predicted.dtype == dtype
            assert abs(host(predicted) - plain.predict(X)).max() < 10 * close
            assert abs(model.score(T, t, weight) - plain.score(X, y, weight)) < 1e-4
    again = pickle.loads(pickle.dumps(model))
    assert torch.equal(again.predict(T), model.predict(T))
    start = ReLURegressor(method="iterative", max_iter=1).fit(X, y, weight, start=model)
    assert start.objective_ <= model.objective_ * (1 + 1e-5)
    T = T.detach()
    pipeline = make_pipeline(MinMaxScaler(), ReLURegressor("iterative"))
    assert cross_val_score(pipeline, T, torch.from_numpy(y).to(T)).min() > 0.5
    for bad in (T[:, :2], T * torch.nan, T[:, 0], T[None]):
        refuses(lambda: model.predict(bad))
    refuses(lambda: model.predict(X), "ReLURegressor.predict()", "is of NumPy", "must use the same namespace")
    refuses(lambda: plain.predict(T), "is of torch on " + device)
    refuses(lambda: model.fit(T, y[1:]), "[200, 199]")
    refuses(lambda: model.fit(T, y * np.nan), "y contains NaN")
    refuses(lambda: model.fit(T, y, -weight), "sample_weight has a negative entry")
    refuses(lambda: model.fit(T * 1j, y), "X has dtype torch.complex")
    refuses(lambda: model.fit(T, y * 1j), "y has dtype")
    refuses(lambda: model.fit(T.to_sparse(), y), "X is a sparse tensor")
    # What is so large that it is worked on where it lives gives the same.
    import rectifit.api, rectifit.estimator
    from rectifit.data import TensorData
    small = ReLURegressor("sorting+iterative").fit(X.astype(np.float32), y, weight)
    routes = rectifit.estimator.is_held_elsewhere, rectifit.api.routing.open_data
    rectifit.estimator.is_held_elsewhere = lambda X: True
    rectifit.api.routing.open_data = TensorData
    large = ReLURegressor("sorting+iterative").fit(T, torch.from_numpy(y), weight)
    rectifit.estimator.is_held_elsewhere, rectifit.api.routing.open_data = routes
    assert isinstance(large.solution_.problem.data, TensorData)
    assert large.solution_.problem.n_samples == 200
    assert abs(host(large.coef_) - small.coef_).max() < 1e-8
    assert (host(large.active_) == small.active_).all()
    assert abs(large.score(T, y) - small.score(X, y)) < 1e-4
# Without dispatch all is taken like arrays, and what is where it should not be is fetched.
assert isinstance(model.fit(T, y).coef_, np.ndarray)
assert isinstance(model.predict(T), np.ndarray)
on_device = torch.from_numpy(y).to(T.device).requires_grad_()
assert abs(model.score(T, on_device) - model.score(X, y)) < 1e-4
"""

# scikit-learn's own checks of everything that follows X, with values where they can be compared.
CHECKS = """
from unittest import SkipTest
import torch
# It asks whether PyTorch was built for CUDA, not whether there is any.
torch.backends.cuda.is_built = torch.cuda.is_available
from rectifit import ReLURegressor
from sklearn.utils.estimator_checks import check_array_api_input_and_values, estimator_checks_generator
done = []
for estimator, check in estimator_checks_generator(ReLURegressor()):
    if "array_api" in check.func.__name__:
        try:
            check(estimator)
        except SkipTest:
            continue
        done.append(str(check.keywords))
for estimator in (ReLURegressor("sorting+iterative", floor="estimate"), ReLURegressor(fit_intercept=False)):
    for dtype in ("float64", "float32"):
        check_array_api_input_and_values("ReLURegressor", estimator, "torch", "DEVICE", dtype)
assert sum("torch" in keywords for keywords in done) >= 2, done
"""


def run_with_dispatch(script, device):
    """In a process of its own: SciPy reads the variable when it is imported."""
    environment = dict(os.environ) | {"SCIPY_ARRAY_API": "1", "OMP_NUM_THREADS": "1"}
    source = str(Path(__file__).parents[1] / "src")
    environment["PYTHONPATH"] = os.pathsep.join([source, environment.get("PYTHONPATH", "")])
    command = [sys.executable, "-W", "error::UserWarning", "-c", script.replace("DEVICE", device)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available()


@pytest.mark.parametrize("device", DEVICES)
def test_with_dispatch_everything_follows_x(device):
    run_with_dispatch(DISPATCH, device)


@pytest.mark.parametrize("device", DEVICES)
def test_array_api_checks_of_scikit_learn(device):
    run_with_dispatch(CHECKS, device)


# Thousands of surrogates at once.


def some_sets(y, n_sets, seed):
    rng = np.random.default_rng(seed)
    cuts = np.quantile(y, rng.uniform(0.0, 1.0, n_sets))
    return (y >= cuts[:, None]) ^ (rng.uniform(size=(n_sets, y.size)) < 0.03)


@pytest.mark.parametrize("seed", range(8))
def test_batched_values_and_bounds_enclose_the_minimum(seed):
    from rectifit.surrogate.batched import BatchedSolver

    X, y, weight = make_data(seed, n=150, p=5 + seed)
    problem = Problem.from_data(
        X, y, sample_weight=weight, fit_intercept=seed % 3 != 0, alpha=0.5 * (seed % 2)
    )
    solver = SurrogateSolver(problem)
    actives = some_sets(y, 60, seed)
    found = BatchedSolver(solver, "cpu").solve(actives)
    exact = np.array([s.value for s in solver.solve_each(actives)])
    slack = 1e-12 * problem.null_objective
    assert (found.bounds <= exact + slack).all()
    assert (found.values >= exact - slack).all()
    tight = found.values - found.bounds <= 1e-9 * problem.null_objective
    assert tight.mean() > 0.9
    for line in range(0, 60, 7):
        b = found.columns[line]
        beta, intercept = b[: problem.n_features], float(b[problem.n_features :].sum())
        value = problem.surrogate_value(Members(actives[line]), beta, intercept)
        assert value == pytest.approx(found.values[line])
        assert problem.objective(beta, intercept) == pytest.approx(found.objectives[line])


def test_batched_bounds_hold_far_from_the_minimum(monkeypatch):
    from rectifit.surrogate import batched

    X, y, _ = make_data(2, n=150)
    solver = SurrogateSolver(Problem.from_data(X, y))
    actives = some_sets(y, 60, 0)
    exact = np.array([s.value for s in solver.solve_each(actives)])
    for n_steps in (1, 3, 6):
        monkeypatch.setattr(batched, "MAX_STEPS", n_steps)
        found = batched.BatchedSolver(solver, "cpu").solve(actives, np.tile(np.ones(5), (60, 1)))
        assert (found.bounds <= exact * (1.0 + 1e-12)).all()
        assert (found.values >= exact * (1.0 - 1e-12)).all()


@pytest.mark.parametrize(("n", "p", "k"), [(60, 4, 2), (50, 3, 3), (100, 8, 2), (24, 12, 3), (20, 2, 1)])
def test_the_enumeration_on_a_device_is_the_enumeration(n, p, k):
    for seed in range(2):
        X, y, *_ = make_relu(n, p, noise=0.5, random_state=seed)
        problem = Problem.from_data(X, y, fit_intercept=seed % 2 == 0)
        ours, theirs = (run_on(problem, device, Approximation(k)) for device in ("cpu", None))
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-8)
        assert ours.surrogate_objective == pytest.approx(theirs.surrogate_objective, rel=1e-8)
        assert ours.certificate.lower_bound == pytest.approx(theirs.certificate.lower_bound, rel=1e-8)
        assert ours.guarantee == theirs.guarantee
        ours.verify()


def test_many_starts_on_a_device_lead_where_they_lead_on_the_host():
    for seed in range(2):
        X, y, *_ = make_relu(80, 6, noise=0.5, random_state=seed)
        problem = Problem.from_data(X, y)
        ours, theirs = (run_on(problem, device, Multistart(n_starts=400)) for device in ("cpu", None))
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-8)
        ours.verify()


def run_on(problem, device, stage):
    search = Search(RowsEngine(problem, device))
    return Solution.of(search.finish("", search.run([("", stage)])))


# To modules and back.


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_module_predicts_the_same_and_goes_back(fit_intercept):
    X, y, _ = make_data(7, n=100)
    solution = solve(X, y, fit_intercept=fit_intercept)
    module = solution.to_torch()
    assert isinstance(module[0], torch.nn.Linear)
    assert isinstance(module[1], torch.nn.ReLU)
    assert (module[0].bias is not None) == fit_intercept
    predicted = module(torch.from_numpy(X))[:, 0].detach().numpy()
    np.testing.assert_allclose(predicted, solution.predict(X), atol=1e-12)
    back = solve(X, y, "iterative", start=module, max_iter=1, fit_intercept=fit_intercept)
    assert back.objective <= solution.objective * (1.0 + 1e-12)


def test_a_module_has_the_floor():
    X, y, _ = make_data(8, n=100)
    solution = solve(X, y, floor=-0.3)
    predicted = solution.to_torch()(torch.from_numpy(X))[:, 0].detach().numpy()
    np.testing.assert_allclose(predicted, solution.predict(X), atol=1e-12)
    assert predicted.min() == -0.3


def test_a_module_can_be_trained_further():
    X, y, _ = make_data(4, n=100)
    solution = solve(X, y, "sorting")
    module, inputs, outcomes = solution.to_torch(), torch.from_numpy(X), torch.from_numpy(y)
    optimiser = torch.optim.SGD(module.parameters(), lr=1e-3)
    losses = []
    for _ in range(50):
        optimiser.zero_grad()
        loss = torch.square(module(inputs)[:, 0] - outcomes).sum()
        losses.append(float(loss.detach()))
        loss.backward()
        optimiser.step()
    assert losses[0] == pytest.approx(solution.objective)
    assert losses[-1] < losses[0]
    further = solve(X, y, "iterative", start=module)
    assert further.objective <= losses[-1] * (1.0 + 1e-12)


def test_modules_that_are_not_one_neuron_are_refused():
    layers = torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1)
    for module in (torch.nn.Sequential(*layers), torch.nn.ReLU(), torch.nn.Linear(2, 2)):
        with pytest.raises(ValueError, match="start is a module with linear layers"):
            solve(np.eye(2), np.ones(2), "iterative", start=module)


def test_the_exported_graph_predicts_the_same(tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    X, y, _ = make_data(9, n=50)
    for floor in (0.0, -0.3):
        solution = solve(X, y, floor=floor)
        solution.to_onnx(tmp_path / "fit.onnx")
        session = runtime.InferenceSession(tmp_path / "fit.onnx", providers=["CPUExecutionProvider"])
        (predicted,) = session.run(None, {"X": X})
        np.testing.assert_allclose(predicted[:, 0], solution.predict(X), atol=1e-12)


def test_what_is_missing_is_named(monkeypatch):
    solution = solve([[1.0], [2.0], [-1.0]], [1.0, 2.0, 0.0])
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"rectifit\[torch\]"):
        solution.to_torch()
    with pytest.raises(ImportError, match=r"rectifit\[onnx\]"):
        solution.to_onnx()


def test_what_is_no_tensor_is_left_alone():
    assert not is_tensor(np.ones(2))
    assert not is_tensor(torch.float64)
    assert to_numpy("text") == "text"
