import re
import subprocess
import sys
import tomllib
from pathlib import Path

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
