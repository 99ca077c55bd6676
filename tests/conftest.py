import pytest
from hypothesis import settings

from rectifit.surrogate import array

# Problems are random but the same in every run; compiling inside the first example is no reason to fail.
settings.register_profile("rectifit", deadline=None, derandomize=True)
settings.load_profile("rectifit")


@pytest.fixture(params=["compiled", "array", "rounds"])
def engine(request, monkeypatch):
    """Both engines, and the array engine with so few near rows that it needs many rounds."""
    if request.param == "rounds":
        monkeypatch.setattr(array, "NEAR_LEAST", 4)
        monkeypatch.setattr(array, "NEAR_FIRST", 1)
        monkeypatch.setattr(array, "NEAR_NEXT", 1)
        return "array"
    return request.param
