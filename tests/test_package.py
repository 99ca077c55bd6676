import subprocess
import sys

import rectifit


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
