"""Pages in a real browser, headless: what a script inside them finds, and what the console says."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser() -> str:
    """The browser, or a skipped test that says what is missing."""
    for name in BROWSERS:
        if path := shutil.which(name):
            return path
    pytest.skip("no browser is installed: the pages were not opened (install chromium)")


def probe(page: Path, script: str, folder: Path, width: int = 1280) -> tuple[Any, str]:
    """Open a copy of the page that runs a script when it is loaded.

    The window of a browser cannot be as narrow as a phone, a frame inside it can.

    Returns
    -------
    what the script returned, and the errors in the console
    """
    browser = find_browser()
    copy, frame = folder / "probed.html", folder / "frame.html"
    run = f"""
<script>
addEventListener("load", async () => {{
  parent.postMessage(JSON.stringify(await (async () => {{ {script} }})()), "*");
}});
</script>
</body>"""
    text = page.read_text(encoding="utf-8")
    assert text.count("</body>") == 1
    copy.write_text(text.replace("</body>", run), encoding="utf-8")
    frame.write_text(FRAME.format(width=width, address=copy.as_uri()), encoding="utf-8")
    command = [
        *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"),
        *(
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={max(width, 500)},900",
            "--virtual-time-budget=10000",
        ),
        *("--dump-dom", frame.as_uri()),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, "the script in the page did not come to its end"
    errors = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    return json.loads(html.unescape(found[1])), errors


# Shows a page at a width, and keeps what it says.
FRAME = """<!doctype html>
<body style="margin: 0">
<script>
addEventListener("message", (event) => {{
  const note = document.createElement("pre");
  note.id = "probe";
  note.textContent = event.data;
  document.body.append(note);
}});
</script>
<iframe style="border: 0; width: {width}px; height: 900px" src="{address}"></iframe>
</body>"""
# Pictures without size, tables before and after clicks on their last heading, what is wider than the screen.
LOOK = """
const images = [...document.images];
await Promise.all(images.map((image) => image.decode().catch(() => null)));
for (const details of document.querySelectorAll("details")) details.open = true;
// Events of details and observers of sizes take their time.
await new Promise((resolve) => setTimeout(resolve, 300));
const sorted = [];
for (const table of document.querySelectorAll("table.sortable")) {
  const column = table.tHead.rows[0].cells.length - 1;
  const keys = () => [...table.tBodies[0].rows].map((row) => row.cells[column].dataset.key ?? "");
  const button = table.tHead.rows[0].cells[column].querySelector("button");
  button.click();
  const up = keys();
  button.click();
  const down = keys();
  sorted.push([up, down]);
}
return {
  images: images.length,
  broken: images.filter((image) => image.naturalWidth === 0 || image.clientWidth === 0).length,
  sorted: sorted,
  width: innerWidth,
  // What is cut: by the screen, or inside of a box that cannot be scrolled.
  cut: [...document.querySelectorAll("main *")].filter((element) => {
    const area = element.closest(".scroll");
    const right = (area ?? element).getBoundingClientRect().right;
    const isHidden = !area && element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0
      && getComputedStyle(element).overflowX !== "visible";
    return right > innerWidth + 0.5 || isHidden;
  }).map((element) => element.outerHTML.slice(0, 80)),
  // Areas that are wider than their boxes, those that say so, and pictures that do not fill theirs.
  scrolled: [...document.querySelectorAll(".scroll")]
    .filter((area) => area.scrollWidth > area.clientWidth + 1).length,
  hinted: [...document.querySelectorAll(".more")].filter((hint) => hint.offsetHeight > 0).length,
  floating: images.filter((image) => image.clientWidth < 0.9 * image.closest("figure").clientWidth).length,
  overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  external: [...document.querySelectorAll("[src], link[href]")]
    .map((element) => element.src || element.href).filter((address) => !address.startsWith("data:")).length,
};
"""


def is_sorted(keys: list[str]) -> bool:
    """Numbers as numbers, words as words, nothing last."""
    there = [key for key in keys if key != ""]
    if keys[: len(there)] != there:
        return False
    try:
        numbers = [float(key) for key in there]
    except ValueError:
        return there == sorted(there, key=str.casefold)
    return numbers == sorted(numbers)
