"""Attacks: problems against brute force, damaged files, hostile names, killed processes, full disks, threads.

`make attack` runs the same for longer: pytest --attack-minutes 10.
"""

import csv
import gc
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from attack import attack, unpleasant
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rectifit import ProofError, certify, check_proof, solve
from rectifit.checking.reading import DIGEST_BYTES
from rectifit.cli.program import program
from rectifit.datasets import make_relu
from rectifit.model_file import read_model
from rectifit.tables import TextFormat, read_table
from rectifit.writing import write_file

# As many examples as the profile says (conftest.py).
FUZZ = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def run(*arguments, **extra):
    return CliRunner().invoke(program, [str(argument) for argument in arguments], **extra)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Data in files, a model fitted to them, and a proof, with the least objective."""
    folder = tmp_path_factory.mktemp("table")
    X, y, *_ = make_relu(60, 2, noise=0.5, random_state=0)
    frame = pl.DataFrame({"y": y, "a": X[:, 0], "b": X[:, 1], "c": ["u", "v", "w"] * 20})
    frame.write_csv(folder / "d.csv")
    frame.write_parquet(folder / "d.parquet")
    (folder / "d.ndjson").write_text(frame.write_ndjson())
    assert run("fit", folder / "d.csv", "--target", "y", "--save", folder / "m.json").exit_code == 0
    certificate = certify(X, y, proof=folder / "p.rproof")
    return folder, X, y, certificate.objective


# ---- bounds and objectives ----


@pytest.mark.parametrize("chunk", range(3))
def test_whatever_is_stated_is_true(chunk, tmp_path):
    counts = sum((attack(seed, tmp_path) for seed in range(10 * chunk, 10 * chunk + 10)), Counter())
    assert counts["certificates"] == counts["exact"] == 10


@pytest.mark.parametrize("seed", [1795124866, 1795125107, 1795125169, 1795130155, 1795135498, 1795138655])
def test_matrices_that_rounding_spoils(seed, tmp_path):
    """Rows and ridge, the curvature at a point of a proof, nearly constant columns, weights, short rows."""
    assert attack(seed, tmp_path)["certificates"] == 1


@pytest.mark.parametrize("seed", [1795126075, 1795125179, 1795125218])
@pytest.mark.parametrize("has_file", [False, True])
def test_searches_for_what_rounding_hides_end(seed, has_file, tmp_path):
    """Nearly perfect fits, with a gap that is smaller than the rounding of their objectives."""
    _, problem = unpleasant(seed)
    given = {"sample_weight": problem.sample_weight, "fit_intercept": problem.fit_intercept}
    fit = solve(problem.X, problem.y, alpha=problem.alpha, **given)
    proof = tmp_path / "p.rproof" if has_file else None
    certificate = certify(problem.X, problem.y, fit, time_limit=None, target_gap=1e-9, proof=proof)
    assert certificate.status == "optimal"
    assert certificate.n_nodes < 1000
    assert certificate.given_objective is None
    certificate.solution.verify()


@pytest.mark.parametrize("seed", [1795125180, 1795125242, 1795130172, 1795130195])
def test_proofs_about_few_samples_come_near_to_a_small_gap(seed, tmp_path):
    """Signs are exact, where cells would be split without end."""
    _, problem = unpleasant(seed)
    given = {"sample_weight": problem.sample_weight, "fit_intercept": problem.fit_intercept}
    fit = solve(problem.X, problem.y, alpha=problem.alpha, **given)
    proof = tmp_path / "p.rproof"
    certificate = certify(problem.X, problem.y, fit, time_limit=None, target_gap=1e-6, proof=proof)
    assert certificate.status == "optimal"
    assert certificate.n_nodes < 1000


def test_whatever_is_stated_is_true_for_minutes(request, tmp_path):
    """Seeds that no other run has seen, unless the first one is given."""
    minutes = request.config.getoption("--attack-minutes")
    if not minutes:
        pytest.skip("the long form: --attack-minutes")
    seed = request.config.getoption("--attack-seed") or time.time_ns() // 10**9
    counts, until = Counter(), time.monotonic() + 60.0 * minutes
    while time.monotonic() < until:
        try:
            counts += attack(seed, tmp_path)
        except Exception as error:
            error.add_note(f"--attack-seed {seed} repeats this")
            raise
        seed += 1
        if counts["exact"] % 100 == 0:
            print(f"next seed {seed}: {dict(counts)}", flush=True)
    print(f"next seed {seed}: {dict(counts)}")


# ---- files that are damaged ----


def refused_in_a_sentence(error):
    """One sentence, and not a message of Python about its own objects."""
    text = str(error)
    assert text
    assert "\n" not in text
    assert "object has no attribute" not in text
    return True


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(value, path=()):
    """Paths to all values within a tree of JSON."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def replaced(value, path, new):
    """The tree with another value at a path."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def check_model(path):
    try:
        model = read_model(path)
    except ValueError as error:
        assert refused_in_a_sentence(error)  # noqa: PT017
        return
    # What is accepted can be used.
    frame = pl.DataFrame({name: [1.0] for name in model.columns if name not in model.levels})
    levels = {name: [levels[0]] for name, levels in model.levels.items()}
    with np.errstate(all="ignore"):
        model.predict(frame.with_columns(pl.Series(name, value) for name, value in levels.items()))


@FUZZ
@given(st.data())
def test_models_with_other_entries(table, tmp_path, data):
    folder, *_ = table
    model = json.loads((folder / "m.json").read_text())
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(places(model))))
        model = replaced(model, path, data.draw(json_values))
    (tmp_path / "m.json").write_text(json.dumps(model))
    check_model(tmp_path / "m.json")


def damaged(data, content):
    """Bytes changed, left out, repeated, or cut off."""
    content = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        size = data.draw(st.integers(0, 20))
        kind = data.draw(st.integers(0, 3))
        if kind == 0:
            content[at : at + size] = data.draw(st.binary(min_size=size, max_size=size))
        elif kind == 1:
            del content[at : at + size]
        elif kind == 2:
            content[at:at] = content[at : at + size]
        else:
            del content[at:]
    return bytes(content)


@FUZZ
@given(st.data())
def test_models_with_damage(table, tmp_path, data):
    folder, *_ = table
    (tmp_path / "m.json").write_bytes(damaged(data, (folder / "m.json").read_bytes()))
    check_model(tmp_path / "m.json")


@FUZZ
@given(st.data(), st.sampled_from(["d.csv", "d.ndjson", "d.parquet"]))
def test_tables_with_damage(table, tmp_path, data, name):
    folder, *_ = table
    (tmp_path / name).write_bytes(damaged(data, (folder / name).read_bytes()))
    try:
        assert read_table(tmp_path / name, TextFormat()).frame.width > 0
    except ValueError as error:
        assert refused_in_a_sentence(error)  # noqa: PT017


@FUZZ
@given(st.data())
def test_proofs_with_damage(table, tmp_path, data):
    """With the right digest at the end, as somebody who means to deceive would write it."""
    folder, X, y, truth = table
    content = (folder / "p.rproof").read_bytes()[:-DIGEST_BYTES]
    other = damaged(data, content)
    (tmp_path / "p").write_bytes(other + hashlib.sha256(other).digest())
    try:
        checked = check_proof(tmp_path / "p", X, y)
    except ProofError as error:
        assert refused_in_a_sentence(error)  # noqa: PT017
    else:
        assert checked.lower_bound <= truth * (1.0 + 1e-12)


# Reads files and prints what they are, with so much address space that no table here needs more.
READ_ALL = """
import resource, sys
from pathlib import Path
import numpy, polars
from rectifit import check_proof
from rectifit.model_file import read_model
from rectifit.tables import TextFormat, read_table
polars.DataFrame({"a": [1.0]}).write_parquet("/dev/null")
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), resource.RLIM_INFINITY))
for path in sorted(Path(sys.argv[1]).iterdir()):
    try:
        if path.name.endswith(".json"):
            read_model(path)
        elif path.name.endswith(".rproof"):
            check_proof(path, numpy.zeros((60, 2)), numpy.zeros(60))
        else:
            read_table(path, TextFormat())
    except ValueError as error:
        assert "\\n" not in str(error), path
    print(path.name)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="how much memory is used is not known")
def test_sizes_that_files_state_are_not_believed(table, tmp_path):
    """Every number of a header is made huge: nothing allocates what it says."""
    folder, *_ = table
    proof = (folder / "p.rproof").read_bytes()[:-DIGEST_BYTES]
    for e, at in enumerate(np.linspace(len(proof) - 400, len(proof) - 5, 30).astype(int).tolist()):
        other = proof[:at] + b"\xff\xff\xff\x7f" + proof[at + 4 :]
        (tmp_path / f"{e}.rproof").write_bytes(other + hashlib.sha256(other).digest())
    parquet = (folder / "d.parquet").read_bytes()
    # Sizes are in the footer and in the headers of pages, as numbers of variable length.
    for e, at in enumerate([*range(4, 60, 4), *range(len(parquet) - 700, len(parquet) - 4, 12)]):
        other = parquet[:at] + b"\xfe\xff\xff\xff\x0f" + parquet[at + 5 :]
        (tmp_path / f"{e}.parquet").write_bytes(other)
    (tmp_path / "digits.json").write_text('{"rectifit_model": ' + "9" * 100_000 + "}")
    (tmp_path / "digits.ndjson").write_text('{"a": ' + "9" * 100_000 + "}\n")
    (tmp_path / "power.csv").write_text("a,y\n1e999999999,1\n2,3\n")
    done = subprocess.run(
        [sys.executable, "-c", READ_ALL, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == sorted(path.name for path in tmp_path.iterdir())


# ---- names ----

HOSTILE = [
    '<script>alert("x")</script>',
    "a&b<i>",
    '"><img src=x onerror=alert(1)>',
    "$x_{",
    "%\\{}~^#&_",
    "</style>",
]


def test_hostile_names_are_text_wherever_they_are_shown(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, len(HOSTILE)))
    frame = pl.DataFrame(dict(zip(HOSTILE, X.T, strict=True)))
    level = pl.Series("<b>group</b>", ["<u>one</u>", "two", "</table>"] * 26 + ["two"] * 2)
    target = "<script>y</script>"
    frame = frame.with_columns(level, pl.Series(target, np.maximum(X.sum(axis=1) + rng.normal(size=80), 0.0)))
    frame.write_csv(tmp_path / "d.csv")
    report, model = tmp_path / "r.html", tmp_path / "m.json"
    done = run("fit", tmp_path / "d.csv", "--target", target, "--report", report, "--save", model)
    assert done.exit_code == 0, done.output
    summary = read_model(model).solution().summary(names=read_model(model).encoding.names)
    pages = [report.read_text(), summary.to_html(), summary._repr_html_()]
    for page in pages:
        assert "&lt;script&gt;" in page
        for name in (*HOSTILE, target, "<b>group</b>", "<u>one</u>"):
            if "<" in name and name != "</style>":
                assert name not in page, name
        assert "<img src=x" not in page
        assert "<script>alert" not in page
    # A report has one style sheet, which no name ends.
    assert pages[0].count("</style>") == pages[0].count("<style")


# ---- processes that are killed, and disks that are full ----

WRITER = """
import sys
from rectifit.writing import write_file
text = ["old" * 1000000, "new" * 1000000]
print("ready", flush=True)
number = 0
while True:
    write_file(sys.argv[1], text[number % 2])
    number += 1
"""


def test_a_file_is_whole_whenever_its_writer_is_killed(tmp_path):
    path = tmp_path / "m.json"
    for pause in (0.0, 0.01, 0.02, 0.03, 0.05):
        child = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
        child.stdout.readline()
        time.sleep(pause)
        child.kill()
        child.wait()
        child.stdout.close()
        assert not path.exists() or path.read_text() in ("old" * 1000000, "new" * 1000000)


PROVER = """
import sys
import numpy as np
from rectifit import certify
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 8))
print("ready", flush=True)
certify(X, np.maximum(rng.standard_t(1.5, size=300), 0.0), proof=sys.argv[1], time_limit=None)
"""


def test_a_proof_is_whole_or_absent_when_its_writer_is_killed(tmp_path):
    path = tmp_path / "p.rproof"
    child = subprocess.Popen([sys.executable, "-c", PROVER, str(path)], stdout=subprocess.PIPE)
    child.stdout.readline()
    while not list(tmp_path.iterdir()) and child.poll() is None:
        time.sleep(0.02)
    time.sleep(0.2)
    child.kill()
    child.wait()
    child.stdout.close()
    assert not path.exists()


# Runs commands, one per line of standard input, each with a limit of the size of files.
LIMITED = """
import json, resource, sys
from rectifit.cli.program import program
for line in sys.stdin:
    size, *command = json.loads(line)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    try:
        program.main(command)
    except SystemExit as end:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print("status", end.code, file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_files_that_cannot_grow_are_named_and_leave_nothing(table, tmp_path):
    """As on a full disk: the system refuses every byte beyond a limit."""
    folder, *_ = table
    data, model = str(folder / "d.csv"), str(folder / "m.json")
    commands = [
        [100, "fit", data, "--target", "y", "--save", str(tmp_path / "m.json")],
        [10_000, "fit", data, "--target", "y", "--report", str(tmp_path / "r.html")],
        [100, "predict", model, data, "--out", str(tmp_path / "x.csv")],
        [1000, "certify", data, "--target", "y", "--proof", str(tmp_path / "p.rproof")],
        [100, "make", "--samples", "99", "--features", "2", "--out", str(tmp_path / "x.csv")],
    ]
    lines = "".join(json.dumps(command) + "\n" for command in commands)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], input=lines, capture_output=True, text=True, check=True
    )
    said = [line for line in done.stderr.splitlines() if line.startswith(("rectifit:", "status"))]
    names = [command[-1] for command in commands]
    assert said[::2] == [f"rectifit: {name} cannot be written: File too large" for name in names]
    assert said[1::2] == ["status 1"] * len(commands)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_named(table, tmp_path):
    folder, *_ = table
    place = Path("/sys")
    if not place.is_dir():
        place = tmp_path / "closed"
        place.mkdir(mode=0o500)
    before = sorted(place.iterdir())
    for command in (
        ["fit", folder / "d.csv", "--target", "y", "--save", place / "m.json"],
        ["certify", folder / "d.csv", "--target", "y", "--proof", place / "p.rproof"],
        ["reproduce", "--tables", "--instances", "1", "--out", place / "run"],
    ):
        done = run(*command)
        assert done.exit_code == 1
        assert str(place) in done.stderr.splitlines()[-1]
        assert "cannot be written" in done.stderr.splitlines()[-1]
    assert sorted(place.iterdir()) == before


# ---- many at once ----


LINE = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Line:
    run: int
    number: int
    text: str
"""
APPENDER = """
import sys
from pathlib import Path
from rectifit.row_file import RowFile
run = int(sys.argv[2])
file = RowFile(Path(sys.argv[1]), Line)
for number in range(100):
    # Each begins anew, as a run does.
    file.repair()
    file.append([Line(run, number, "x" * (97 * number % 5000))])
"""


def test_two_runs_in_one_folder_lose_nothing(tmp_path):
    path = tmp_path / "rows.csv"
    command = [sys.executable, "-c", LINE + APPENDER, str(path)]
    path.write_bytes(b"run,number,text\n7,7,end is miss")
    children = [subprocess.Popen([*command, str(run)]) for run in range(2)]
    assert [child.wait() for child in children] == [0, 0]
    header, *rows = csv.reader(path.read_text().splitlines())
    assert header == ["run", "number", "text"]
    assert all(text == "x" * (97 * int(number) % 5000) for _, number, text in rows)
    assert sorted((int(run), int(number)) for run, number, _ in rows) == [
        (run, e) for run in range(2) for e in range(100)
    ]


def test_eight_threads_write_one_file(tmp_path):
    texts = [str(e) * 100_000 for e in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(write_file, tmp_path / "m.json", text) for text in texts * 5]:
            future.result()
    assert (tmp_path / "m.json").read_text() in texts
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]


def answers(seed):
    """What several methods and a proof say of a problem, as plain numbers."""
    X, y, *_ = make_relu(80, 3, noise=0.5, random_state=seed)
    fits = [solve(X, y, method, random_state=0) for method in ("auto", "approximation", "sgd", "exact")]
    bound = certify(X, y, time_limit=None).lower_bound
    return [(fit.objective, fit.intercept, *fit.beta, fit.certificate.lower_bound) for fit in fits], bound


def test_eight_threads_at_once_give_the_same_answers():
    one_by_one = [answers(seed) for seed in range(16)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(answers, range(16))) == one_by_one


def footprint():
    """Bytes in memory, threads, and open files of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return (
        pages * os.sysconf("SC_PAGE_SIZE"),
        threading.active_count(),
        len(list(Path("/proc/self/fd").iterdir())),
    )


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="how much memory is used is not known")
def test_a_thousand_fits_leave_nothing_behind(request):
    X, y, *_ = make_relu(60, 4, noise=0.5, random_state=0)

    def fits(count):
        for e in range(count):
            methods = ("sorting+iterative", "gd", "approximation", "auto" if e % 10 == 3 else "iterative")
            fit = solve(X, y, methods[e % 4], random_state=e, fit_intercept=e % 3 > 0)
            if e % 200 == 0:
                fit.verify()
                certify(X, y, fit, time_limit=None, target_gap=0.05, n_jobs=2)
        gc.collect()
        return footprint()

    first = fits(200)
    last = fits(10_000 if request.config.getoption("--attack-minutes") else 1000)
    # Arrays of one fit have some kilobytes: a leak of a thousand of them is more than this.
    assert last[0] <= first[0] + (4 << 20)
    assert last[1:] == first[1:]
