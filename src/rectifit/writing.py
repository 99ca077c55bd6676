"""Files that are written completely or not at all."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["copy_file", "naming", "temporary_beside", "write_file"]

# Characters of the name of a file that a temporary name has: names of files may have 255 bytes.
KEPT_NAME = 40


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Let errors of writing name the file that the user knows, not a temporary one or none."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None


def temporary_beside(target: Path) -> Path:
    """A hidden name in the same folder that no other thread, process or machine takes."""
    return target.with_name(f".{target.name[:KEPT_NAME]}.{secrets.token_hex(8)}.tmp")


def write_file(path: str | Path, content: str | bytes) -> None:
    """Write text, in UTF-8, or bytes.

    They are written to a temporary file in the same folder, which then takes the place of `path`. If anything
    fails, the temporary file is removed, and a file that was there before stays as it was. OSError names
    `path`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_file(Path(folder) / "note.txt", "0.5 < 1")
    ...     (Path(folder) / "note.txt").read_text()
    '0.5 < 1'
    """
    data = content.encode() if isinstance(content, str) else content
    with naming(path):
        # A link stays a link.
        target = Path(path).resolve()
        if target.exists() and not target.is_file():
            # A device or a pipe cannot be replaced; a folder is an error.
            target.write_bytes(data)
        else:
            _replace(target, lambda beside: beside.write_bytes(data))


def copy_file(source: str | Path, path: str | Path) -> None:
    """Copy a file of any size, completely or not at all. OSError names the file that it is about."""
    try:
        _replace(Path(path).resolve(), lambda beside: shutil.copyfile(source, beside))
    except OSError as error:
        about = source if error.filename == str(source) else path
        raise OSError(error.errno, error.strerror or str(error), str(about)) from None


def _replace(target: Path, write: Callable[[Path], object]) -> None:
    beside = temporary_beside(target)
    try:
        write(beside)
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
