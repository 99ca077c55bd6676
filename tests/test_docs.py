"""The pages of the documentation: code runs and prints what is shown, and every public name is there."""

import io
import re
import runpy
import shlex
import sys
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner

from rectifit.cli.program import program

ROOT = Path(__file__).parents[1]
# A block of Python, and what is shown as its output, if anything; there are no classes in the README.
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n"
    r"(?:\n```(?:text|\{code-block\} text\n:class: output(?: wrapped)?)\n(?P<output>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
# What a summary says about time is the machine's.
SECONDS = re.compile(r"(?<=Seconds:) +\S+$", re.MULTILINE)
PUBLIC_MODULES = (
    "rectifit",
    "rectifit.datasets",
    "rectifit.inference",
    "rectifit.instances",
    "rectifit.measures",
    "rectifit.plot",
    "rectifit.theory",
)


class Block(NamedTuple):
    """Code of a page, the line it begins at, and the output that is shown; None if there is none."""

    code: str
    line: int
    output: str | None


def read_blocks(text: str) -> list[Block]:
    return [
        Block(found["code"], text.count("\n", 0, found.start("code")), found["output"])
        for found in BLOCK.finditer(text)
    ]


def find_pages() -> list[Path]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in pages if "```python" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", find_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_code_of_page_runs_and_prints_what_is_shown(page):
    names = {"__name__": page.stem}
    for block in read_blocks(page.read_text(encoding="utf-8")):
        printed = io.StringIO()
        # Errors then point at the line of the page.
        code = compile("\n" * block.line + block.code, str(page), "exec")
        with redirect_stdout(printed):
            exec(code, names)
        if block.output is not None:
            shown, found = (SECONDS.sub("", text).rstrip() for text in (block.output, printed.getvalue()))
            assert found == shown


@pytest.fixture
def run_example(monkeypatch):
    """A function that runs a page of the gallery; its figures stay open until the test ends."""
    import matplotlib
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "show", lambda: None)
    backend = matplotlib.get_backend()
    plt.switch_backend("agg")
    yield lambda name: runpy.run_path(str(ROOT / "examples" / "gallery" / f"{name}.py"))
    plt.close("all")
    plt.switch_backend(backend)


def test_no_axes_are_empty_without_torch(run_example, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.setitem(sys.modules, "torch", None)
    assert run_example("plot_4_pytorch_neuron")["torch"] is None
    axes = [axis for number in plt.get_fignums() for axis in plt.figure(number).axes]
    assert axes
    assert all(axis.collections and axis.lines for axis in axes)


def test_energy_bills_agree_with_a_search_over_balance_points(run_example):
    """The page of the gallery runs, and no balance point on a grid, with least squares, fits better."""
    page = run_example("plot_2_energy_bills")
    for name, rows in page["furnaces"].items():
        temperature, gas = rows["temp"].to_numpy(), rows["ccfpday"].to_numpy()
        root = np.sqrt(rows["billingDays"].to_numpy())
        grid = np.linspace(40.0, 75.0, 3501)
        sums = []
        for balance in grid:
            columns = np.column_stack([np.ones(gas.size), np.maximum(0.0, balance - temperature)])
            coef = np.linalg.lstsq(columns * root[:, None], gas * root, rcond=None)[0]
            sums.append(np.sum(np.square((columns @ coef - gas) * root)))
        model, point = page["heating"][name], page["points"][name]
        assert model.objective_ <= min(sums) * (1.0 + 1e-12)
        assert model.objective_ == pytest.approx(min(sums), rel=1e-5)
        assert point.estimate == pytest.approx(grid[np.argmin(sums)], abs=0.01)
        assert point.low < point.estimate < point.high < point.low + 5.0
    old, new = page["heating"].values()
    assert old.coef_[0] < new.coef_[0] < 0.0
    assert (page["cooling"].coef_ > 0.0).all()


@pytest.mark.parametrize("page", find_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_code_fits_the_page(page):
    """A screen of 1280 pixels shows 96 characters beside both sidebars; what is longer would be cut."""
    fences = re.findall(r"^```(.*?)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    blocks = [
        block
        for kind, block in fences
        if (kind[:1] != "{" or "code-block" in kind) and ":class: output wrapped" not in block
    ]
    assert [line for block in blocks for line in block.splitlines() if len(line) > 96] == []


def test_blocks_are_told_apart():
    shown = "```{code-block} text\n:class: output\n1\n```\n"
    text = f"a\n\n```python\nprint(1)\n```\n\n{shown}\n```python\nx = 2\n```\n"
    blocks = [Block("print(1)\n", 3, "1\n"), Block("x = 2\n", 12, None)]
    assert read_blocks(text) == blocks
    plain = text.replace("{code-block} text\n:class: output", "text")
    assert read_blocks(plain) == [blocks[0], blocks[1]._replace(line=11)]


def test_picture_is_that_of_its_script(tmp_path, monkeypatch):
    """The README shows what docs/draw_picture.py draws, but for letters that matplotlib's versions move.

    Squares of 30 x 30 pixels differ by 0.03 between matplotlib 3.9 and 3.11, and by 0.06 without a line.
    """
    import matplotlib.image

    monkeypatch.syspath_prepend(ROOT / "docs")
    module = import_module("draw_picture")
    kept = matplotlib.image.imread(module.PICTURE)
    with module.style():
        module.draw().savefig(tmp_path / "again.png", dpi=120)
    again = matplotlib.image.imread(tmp_path / "again.png")
    assert kept.shape == again.shape
    squares = [
        picture[..., :3].mean(axis=2).reshape(14, 30, 36, 30).mean(axis=(1, 3)) for picture in (kept, again)
    ]
    assert np.abs(squares[0] - squares[1]).max() < 0.045
    for page in ("README.md", "docs/index.md"):
        assert module.PICTURE.name in (ROOT / page).read_text(encoding="utf-8")


def test_command_of_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands = re.findall(
        r"^    rectifit (.*)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(commands) == 1
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(60, 2)), np.maximum(rng.normal(size=60), 0.0)])
    np.savetxt("rain.csv", rows, delimiter=",", header="wind,pressure,mm", comments="")
    done = CliRunner().invoke(program, shlex.split(commands[0]))
    assert done.exit_code == 0, done.stderr
    assert "mm ~ max(0" in done.output
    assert Path("rain.html").stat().st_size > 10_000


def test_links_of_the_readme_lead_to_files():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https:)([^)#]+)", text)
    assert len(links) > 8
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_api_page_has_every_public_name():
    words = set(re.findall(r"[\w.]+", (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8")))
    names = {
        f"{module}.{name}"
        for module in PUBLIC_MODULES
        for name in import_module(module).__all__
        if name != "__version__"
    }
    assert sorted(names - words) == []


def test_printed_tables_are_read_whole(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    split_text = import_module("box_tables").split_text
    text = (
        "one core\n\n    Times\n┏━━━━━┳━━━┓\n┃ a   ┃ s ┃\n┡━━━━━╇━━━┩\n"
        "│ x   │ 1 │\n│ y   │ 2 │\n│ on  │   │\n└─────┴───┘\nThat is all.\n"
    )
    first, table, last = split_text(text)
    assert (first, last) == ("one core", "That is all.")
    assert (table.title, table.columns, table.rows) == ("Times", ["a", "s"], [["x", "1"], ["y on", "2"]])
    # One table right after another.
    both = text.replace("That is all.", "More\n┏━━━┓\n┃ c ┃\n┡━━━┩\n│ 3 │\n└───┘")
    _, again, more = split_text(both)
    assert again == table
    assert (more.title, more.columns, more.rows) == ("More", ["c"], [["3"]])


@pytest.mark.parametrize("path", sorted((ROOT / "docs").rglob("*.txt")), ids=lambda path: path.stem)
def test_tables_on_pages_can_be_read(path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    split_text = import_module("box_tables").split_text
    text = path.read_text(encoding="utf-8")
    tables = [part for part in split_text(text) if not isinstance(part, str)]
    assert len(tables) == text.count("┏")
    for table in tables:
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.columns)}, table.title
