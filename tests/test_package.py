import subprocess
import sys

import rectifit


def test_public_names_exist():
    for name in rectifit.__all__:
        assert hasattr(rectifit, name)


def test_import_loads_only_what_is_needed():
    code = "import sys, rectifit; print(*({'numba', 'sklearn', 'dask', 'torch'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == ""
