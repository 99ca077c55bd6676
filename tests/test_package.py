import subprocess
import sys

import rectifit


def test_public_names_exist():
    for name in rectifit.__all__:
        assert hasattr(rectifit, name)


def test_import_loads_no_compiler():
    code = "import sys, rectifit; assert 'numba' not in sys.modules, 'numba was imported'"
    subprocess.run([sys.executable, "-c", code], check=True)
