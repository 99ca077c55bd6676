import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import rectifit

ROOT = Path(__file__).parents[1]


def test_public_names_exist():
    for name in rectifit.__all__:
        assert hasattr(rectifit, name)


def test_packages_need_no_import_of_their_own():
    code = "import rectifit; print(rectifit.plot.fit.__name__, rectifit.inference.summarise.__name__)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["fit", "summarise"]


def test_import_loads_only_what_is_needed():
    code = "import sys, rectifit; print(*({'numba', 'sklearn', 'dask', 'torch'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == ""


def test_the_version_is_the_same_everywhere():
    """Also the date, once there is one."""
    citation = (ROOT / "CITATION.cff").read_text()
    version = re.search(r"^version: (.*)$", citation, re.MULTILINE)[1]
    recipe = re.search(r'^  version: "(.*)"$', (ROOT / "conda" / "recipe.yaml").read_text(), re.MULTILINE)[1]
    newest, date = re.search(
        r"^## (\S+) \((.*)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    ).groups()
    assert version == recipe == newest == rectifit.__version__
    released = re.search(r"^date-released: (.*)$", citation, re.MULTILINE)
    assert date == (released[1] if released else "unreleased")


def test_the_conda_recipe_needs_what_the_package_needs():
    """Names differ where conda-forge has another one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["cli"]]
    wanted = {
        one.split(";")[0].replace(">=", " >=").replace("matplotlib", "matplotlib-base") for one in wanted
    }
    recipe = (ROOT / "conda" / "recipe.yaml").read_text()
    needed = recipe.partition("  run:\n")[2].partition("\ntests:")[0]
    assert wanted == set(re.findall(r"^    - (?!python)(.*)$", needed, re.MULTILINE))


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """The wheel and the source archive, with what was compiled and cached around the sources."""
    folder = tmp_path_factory.mktemp("dist")
    (ROOT / "src" / "rectifit" / "__pycache__").mkdir(exist_ok=True)
    (ROOT / "src" / "rectifit" / "__pycache__" / "left-over.nbi").touch()
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    wheel, source = sorted(folder.iterdir(), key=lambda path: path.suffix != ".whl")
    return wheel, source


def package_files():
    files = (path for path in (ROOT / "src" / "rectifit").rglob("*") if path.is_file())
    return {str(path.relative_to(ROOT / "src")) for path in files if "__pycache__" not in path.parts}


def test_the_wheel_has_the_package_and_nothing_else(archives, tmp_path):
    wheel, _ = archives
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(tmp_path)
    found = {name for name in names if ".dist-info/" not in name}
    assert found == package_files()
    assert {"rectifit/py.typed", "rectifit/web/page.html.j2", "rectifit/datasets/realizable.csv"} <= found
    assert any(name.startswith("rectifit/instances/data/") for name in found)
    assert {Path(name).name for name in names - found} == {
        *("METADATA", "RECORD", "WHEEL", "LICENSE", "entry_points.txt")
    }
    # What is read from the package is in it.
    code = (
        "import rectifit; from rectifit.datasets import load_drug_spending as load; "
        "from rectifit.instances import list_instances; "
        "print(rectifit.__file__, len(load()[1]) > 0, len(list_instances()) > 100)"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
    )
    assert done.stdout.split() == [str(tmp_path / "rectifit" / "__init__.py"), "True", "True"]


def test_the_source_archive_can_be_built_and_tested(archives):
    _, source = archives
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in package_files()} <= names
    needed = ("pyproject.toml", "README.md", "LICENSE", "Makefile", "CHANGELOG.md", "CITATION.cff")
    assert set(needed) <= names
    assert {f"tests/{path.name}" for path in (ROOT / "tests").glob("*.py")} <= names
    assert {"conda/recipe.yaml", ".ci/run"} <= names
    unwanted = re.compile(r"__pycache__|\.py[co]$|\.nb[ic]$|\.venv|^build/|\.hypothesis|_cache")
    assert not [name for name in names if unwanted.search(name)]
