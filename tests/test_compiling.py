import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from scipy import sparse

import rectifit
from rectifit import certify, clock, compiling, precompile, preparing, solve
from rectifit._typing import Matrix, Vector
from rectifit.certificate.records import Samples
from rectifit.clock import Clock
from rectifit.compiling import SOURCES, all_kernels, compiled, inner, kernel_of
from rectifit.datasets import make_relu
from rectifit.fit import Stop
from rectifit.numba_internals import HELPER_PIPELINE
from rectifit.preparing import compile_side_by_side, prepare
from rectifit.surrogate import kernel

PACKAGE = Path(rectifit.__file__).parent

# The sum of supporting functions of one piece, and whether the kernel came from the cache.
SUPPORT = """
import numpy as np
from numba.core import caching
def refuse(locator):
    raise PermissionError
if READ_ONLY:
    caching._CacheLocator.ensure_cache_path = refuse
from rectifit.certificate.kernel import support
from rectifit.preparing import prepare
one, total = np.ones((1, 1)), np.empty(1)
prepare(support)
support((one, np.ones(1), np.ones(1), np.ones(1)), 3.0 * one, one.copy(), 0.0, total)
print(total[0], sum(support.stats.cache_hits.values()))
"""


def imports_of(path):
    """Modules of the package that a file imports, as paths within the package."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rectifit":
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.split(".")[0] == "rectifit"]
        for name in names:
            inside = "/".join(name.split(".")[1:]) + ".py"
            if (PACKAGE / inside).is_file():
                found.add(inside)
    return found


def test_all_sources_of_compiled_code_are_in_the_digest():
    decorated = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(f"\n@{name}\n" in path.read_text() for name in ("compiled", "inner"))
    }
    assert decorated
    assert decorated <= set(SOURCES)
    for source in SOURCES:
        assert imports_of(PACKAGE / source) <= set(SOURCES), source


def test_the_cache_is_filled_ahead_found_and_never_stale(tmp_path):
    """A kernel that a worker compiled is loaded, even if nothing can be written; after an edit it is not."""
    shutil.copytree(PACKAGE, tmp_path / "rectifit", ignore=shutil.ignore_patterns("__pycache__"))
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"

    def run(*arguments, text=None):
        command = [sys.executable, *arguments]
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, input=text, env=environment
        )
        return done.stdout.split()

    def support(read_only=False):
        value, hits = run("-c", f"READ_ONLY = {read_only}\n{SUPPORT}")
        return float(value), int(hits)

    name = "rectifit.certificate.kernel.support"
    assert run("-m", "rectifit.precompile", "--worker", text=f"{name}\n") == [name]
    first, hits = support()
    assert hits == 1
    assert support(read_only=True) == (first, 1)
    pieces = tmp_path / "rectifit" / "pieces.py"
    # The conjugate of every piece is raised by 1; the file of the kernel stays as it is.
    source = pieces.read_text()
    assert source.count("return (slope > jump)") == 1
    pieces.write_text(source.replace("return (slope > jump)", "return 1.0 + (slope > jump)"))
    second, hits = support()
    assert hits == 0
    assert second == pytest.approx(first - 1.0, abs=1e-12)


def test_types_are_those_of_the_annotations(monkeypatch):
    monkeypatch.setattr(compiling, "_kernels", {})

    def add(samples: Samples, x: Vector, count: int, limits: tuple[float, int], out: Matrix) -> None:
        out[0, 0] = samples[2][0] + x[0] + count + limits[0]

    function = compiled(add)
    vector, matrix = numba.types.float64[::1], numba.types.float64[:, ::1]
    assert kernel_of(function).types == (
        numba.types.Tuple([matrix, matrix, vector, matrix]),
        vector,
        numba.types.int64,
        numba.types.Tuple([numba.types.float64, numba.types.int64]),
        matrix,
    )
    square, ones, out = np.ones((1, 1)), np.ones(1), np.empty((1, 1))
    kernel_of(function).load()
    function(tuple(Samples.from_rows(square, ones, square)), ones, 1, (0.5, 3), out)
    assert out[0, 0] == 3.5
    assert len(function.signatures) == 1

    def forgetful(x: Vector, y):
        return x[0] + y

    with pytest.raises(TypeError, match="forgetful"):
        compiled(forgetful)


def test_helpers_are_not_compiled_for_each_constant(monkeypatch):
    monkeypatch.setattr(compiling, "_kernels", {})

    @inner
    def choose(pair, count, is_last):
        return pair[1] if is_last else pair[0] + count

    def sum_up(x: Vector, is_last: bool) -> float:
        total, count = 0.0, 0
        for e in range(x.shape[0]):
            total += choose((x[e], 1.0), count, True) + choose((x[e], 1.0), 2, False)
            total += choose((0.0, x[e]), 7, is_last)
            count = e + count
        return total

    function = compiled(sum_up)
    kernel_of(function).load()
    assert function(np.array([1.0, 5.0]), True) == 1.0 + 3.0 + 1.0 + 1.0 + 7.0 + 5.0
    assert len(choose.signatures) == 1


def test_without_a_folder_for_the_cache_kernels_are_compiled_all_the_same(monkeypatch):
    monkeypatch.setattr(compiling, "_kernels", {})

    def refuse(*_):
        raise PermissionError

    for place in compiling.KernelCache._impl_class._locator_classes:
        monkeypatch.setattr(place, "ensure_cache_path", refuse)

    def double(x: float) -> float:
        return 2.0 * x

    function = compiled(double)
    assert kernel_of(function).folder is None
    assert not kernel_of(function).is_cached
    prepare(function)
    assert function(1.5) == 3.0
    monkeypatch.setattr(precompile, "all_kernels", lambda: [kernel_of(function)])
    with pytest.raises(PermissionError, match="NUMBA_CACHE_DIR"):
        precompile.precompile(lambda _: None)


def test_helpers_are_compiled_as_parts_of_kernels():
    """Otherwise numba has changed, and the first proof takes half as long again."""
    assert HELPER_PIPELINE


def read_only(array):
    array = array.copy()
    array.setflags(write=False)
    return array


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X.astype(np.float32),
        np.asfortranarray,
        read_only,
        sparse.csr_array,
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: X.astype(np.int32),
    ],
    ids=["float32", "fortran", "read-only", "sparse", "strided", "integers"],
)
@pytest.mark.parametrize("shape", [(60, 3), (120, 12)], ids=["small", "large"])
def test_no_kernel_is_compiled_for_other_types(monkeypatch, change, shape):
    monkeypatch.setattr(rectifit.routing, "SMALL_ENTRIES", 1000)
    X, y, *_ = make_relu(*shape, noise=0.5, random_state=0)
    X, y, w = change(np.round(X)), read_only(y), read_only(np.arange(len(y)) % 3 + 0.5)
    solution = solve(X, y, sample_weight=w, alpha=0.1, n_jobs=2)
    certify(X, y, solution, sample_weight=w, alpha=0.1, time_limit=0.2)
    for known in all_kernels():
        assert set(known.function.signatures) <= {known.types}, known.name


class SlowKernel:
    """Takes 100 seconds of a made-up time to load."""

    name, types, is_cached, is_loaded = "slow", (), False, False

    def __init__(self, time):
        self.time = time

    def load(self):
        self.time.seconds += 100.0
        self.is_loaded = True


def test_compiling_does_not_count_against_the_time_limit(monkeypatch):
    prepare(kernel.minimise, kernel.evaluate_with_bound)
    time = SimpleNamespace(seconds=0.0, perf_counter=lambda: time.seconds)
    slow = SlowKernel(time)
    monkeypatch.setattr(clock, "time", time)
    monkeypatch.setattr(preparing, "_ready", set())
    monkeypatch.setattr(preparing, "kernel_of", lambda _: slow)
    monkeypatch.setattr(preparing, "compile_side_by_side", lambda *_: None)
    X, y, *_ = make_relu(50, 3, noise=0.5, random_state=0)
    solution = solve(X, y, "sorting", time_limit=10.0)
    assert slow.is_loaded
    assert time.seconds == 100.0
    assert solution.seconds == 0.0
    assert solution.stopped is not Stop.TIME_LIMIT


def test_a_clock_stands_still_until_the_last_of_all_is_done(monkeypatch):
    time = SimpleNamespace(seconds=0.0, perf_counter=lambda: time.seconds)
    monkeypatch.setattr(clock, "time", time)
    monkeypatch.setattr(clock, "_time", clock._Time())
    running = Clock(5.0)
    time.seconds = 2.0
    with clock.standing_still():
        time.seconds = 10.0
        with clock.standing_still():
            time.seconds = 20.0
        assert running.seconds == 2.0
        time.seconds = 30.0
        assert not running.is_late()
    assert running.seconds == 2.0
    time.seconds = 33.0
    assert running.seconds == 5.0
    assert running.is_late()


class Named:
    """Stands for a kernel that is not cached."""

    folder, is_cached = Path(), False

    def __init__(self, name):
        self.name = name


@pytest.fixture
def children(monkeypatch):
    """Every process that is started; the program that they run is set by the test."""
    started = []

    def start():
        command = [sys.executable, "-S", "-c", started_program[0]]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen(command, **pipes))
        return started[-1]

    started_program = ["import sys\nfor line in sys.stdin: print(line, end='', flush=True)"]
    monkeypatch.setattr(preparing, "_start", start)
    monkeypatch.setattr("joblib.cpu_count", lambda: 2)
    yield SimpleNamespace(started=started, program=started_program)
    # None is left running, or unburied.
    assert all(child.returncode is not None for child in started)


def test_every_kernel_is_compiled_once_by_some_process(children):
    done, names = [], [f"kernel {e}" for e in range(7)]
    compile_side_by_side([Named(name) for name in names], lambda name, _: done.append(name))
    assert sorted(done) == names
    assert len(children.started) == 2


@pytest.mark.parametrize("program", ["", "import sys; sys.stdin.readline()", "raise SystemExit(1)"])
def test_a_process_that_ends_delivers_nothing(children, program):
    children.program[0] = program
    compile_side_by_side([Named("a"), Named("b"), Named("c")], lambda *_: pytest.fail("nothing is compiled"))


def test_a_process_that_hangs_is_given_up(children, monkeypatch):
    children.program[0] = "import time; time.sleep(1000)"
    monkeypatch.setattr(preparing, "MAX_SECONDS", 0.1)
    compile_side_by_side([Named("a"), Named("b")], lambda *_: pytest.fail("nothing is compiled"))


def test_an_interrupt_ends_the_processes(children, monkeypatch):
    children.program[0] = "import time; time.sleep(1000)"

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(preparing.Thread, "is_alive", interrupt)
    with pytest.raises(KeyboardInterrupt):
        compile_side_by_side([Named("a"), Named("b")], lambda *_: None)


@pytest.mark.parametrize(
    ("kernels", "cores", "executable"), [(1, 2, sys.executable), (3, 1, sys.executable), (3, 2, "/opt/app")]
)
def test_no_process_is_started_where_none_helps(children, monkeypatch, kernels, cores, executable):
    monkeypatch.setattr("joblib.cpu_count", lambda: cores)
    monkeypatch.setattr(sys, "executable", executable)
    compile_side_by_side([Named(str(e)) for e in range(kernels)], lambda *_: None)
    assert not children.started


def test_precompile_says_what_it_did(monkeypatch):
    known = kernel_of(kernel.line_search)
    prepare(kernel.line_search)
    monkeypatch.setattr(precompile, "all_kernels", lambda: [known])
    lines = []
    precompile.precompile(lines.append)
    assert len(lines) == 1
    assert lines[0].startswith("0 kernels compiled in ")
    assert lines[0].endswith(f"1 were compiled before; cached in {known.folder}")
