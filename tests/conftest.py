import signal

import numba
import pytest
from hypothesis import settings

from rectifit.compiling import all_kernels
from rectifit.surrogate import near_far, resident

# Problems are random but the same in every run; compiling inside the first example is no reason to fail.
settings.register_profile("rectifit", deadline=None, derandomize=True)
settings.register_profile("attack", deadline=None, max_examples=5000)
settings.load_profile("rectifit")


def pytest_addoption(parser):
    parser.addoption("--attack-minutes", type=float, default=0.0, help="how long test_attack.py goes on")
    parser.addoption("--attack-seed", type=int, default=0, help="the first seed of that; 0: a new one")


def pytest_configure(config):
    if config.getoption("--attack-minutes"):
        settings.load_profile("attack")
    if numba.config.DISABLE_JIT:
        # Compiled code has no warnings of NumPy: infinities and NaN go their way.
        config.addinivalue_line("filterwarnings", "ignore::RuntimeWarning:rectifit")


# A shell ignores Ctrl-C on behalf of what it runs in the background, where tests that interrupt would hang.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=["compiled", "near_far", "rounds"])
def engine(request, monkeypatch):
    """Both engines, and the near/far engine with so few near rows that it needs many rounds."""
    if request.param == "rounds":
        monkeypatch.setattr(near_far, "MIN_NEAR_ROWS", 4)
        monkeypatch.setattr(resident, "FIRST_NEAR_FACTOR", 1)
        monkeypatch.setattr(resident, "NEXT_NEAR_FACTOR", 1)
        return "near_far"
    return request.param


@pytest.fixture(autouse=True, scope="module")
def one_type_per_kernel():
    """No kernel is compiled for other types than those of its annotations, which would take seconds."""
    yield
    # Where numba is switched off, kernels are plain functions.
    for kernel in all_kernels():
        assert set(getattr(kernel.function, "signatures", ())) <= {kernel.types}, kernel.name
