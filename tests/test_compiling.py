import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import rectifit
from rectifit.compiling import SOURCES

PACKAGE = Path(rectifit.__file__).parent

SOLVE = """
import numpy as np
from rectifit import solve_surrogate
from rectifit.surrogate import kernel
X, y = np.array([[1.0], [2.0], [3.0]]), np.array([1.0, -1.0, 2.0])
print(solve_surrogate(X, y, y > 0, fit_intercept=False).value, sum(kernel.minimise.stats.cache_hits.values()))
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
    compiled = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "rectifit.compiling import" in path.read_text()
    }
    assert compiled <= set(SOURCES)
    for source in SOURCES:
        assert imports_of(PACKAGE / source) <= set(SOURCES), source


def test_the_cache_notices_a_change_of_a_helper(tmp_path):
    """The kernel is compiled again after an edit of a file other than its own, and not without one."""
    shutil.copytree(PACKAGE, tmp_path / "rectifit", ignore=shutil.ignore_patterns("__pycache__"))
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"

    def run():
        done = subprocess.run(
            [sys.executable, "-c", SOLVE], check=True, capture_output=True, text=True, env=environment
        )
        value, hits = done.stdout.split()
        return float(value), int(hits)

    first, hits = run()
    assert hits == 0
    assert run() == (first, 1)
    pieces = tmp_path / "rectifit" / "pieces.py"
    # The value of every piece is doubled; the file of the kernel stays as it is.
    source = pieces.read_text()
    assert source.count("return r * r\n") == 1
    pieces.write_text(source.replace("return r * r\n", "return 2*r*r\n"))
    second, hits = run()
    assert hits == 0
    assert abs(second - 2.0 * first) <= 1e-12 * first
