"""Searches that do not end stay within their memory, and say what they have proved.

MEMORY_SECONDS says how long each runs; 5 by default, and minutes where there is time.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = float(os.environ.get("MEMORY_SECONDS", "5"))
# Seconds that a run needs to come near to a limit; of the largest, the default, ten minutes take half.
LEAST_SECONDS = {1e6: 0.0, 1e8: 60.0, 1e9: 600.0}
# What compiled code, blocks of a round and the allocator take beside open nodes, in bytes.
MARGIN = 1.5e8

PROGRAM = """
import json, sys, threading, time
from rectifit import certify, solve
from rectifit.instances.families import gaussian, low_signal

def resident():
    with open("/proc/self/status") as lines:
        return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("VmRSS"))

kind, limit, seconds = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
X, y = gaussian(500, 20, 1.0, 0) if kind == "many" else low_signal(14, 120)
fit = solve(X, y)
certify(X, y, fit, time_limit=1.0)
before = peak = resident()
is_over = False

def watch():
    global peak
    while not is_over:
        peak = max(peak, resident())
        time.sleep(0.05)

watcher = threading.Thread(target=watch)
watcher.start()
certificate = certify(X, y, fit, time_limit=seconds, target_gap=1e-5, memory_limit=limit)
is_over = True
watcher.join()
print(json.dumps([peak - before, certificate.n_nodes, certificate.status, certificate.gap, str(certificate)]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured on Linux only")
@pytest.mark.parametrize("kind", ["many", "low signal"])
@pytest.mark.parametrize("limit", [1e6, 1e8, 1e9])
def test_a_search_that_does_not_end_stays_within_its_memory(kind, limit):
    if LEAST_SECONDS[limit] > SECONDS:
        pytest.skip("so much memory is not used within this time")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, kind, str(limit), str(SECONDS)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    grown, n_nodes, status, gap, sentence = json.loads(done.stdout)
    assert grown <= limit + MARGIN
    assert n_nodes > 0
    assert status == "time_limit"
    assert 0.0 < gap <= 1.0
    assert sentence.startswith("no fit can be more than")
