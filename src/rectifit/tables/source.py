"""Files and standard input as bytes: names, extensions, compression."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

__all__ = [
    "STANDARD_STREAM",
    "check_extension",
    "compress",
    "describe_source",
    "read_bytes",
    "split_extension",
]

# CSV on standard input or output.
STANDARD_STREAM = "-"
TEXT = (".csv", ".tsv", ".txt", ".ndjson", ".jsonl")
READABLE = (*TEXT, ".parquet", ".xlsx")
WRITABLE = (*TEXT, ".parquet")
GZIP, ZSTD = ".gz", ".zst"
GZIP_MAGIC, ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# First bytes of files that are not text, and what they are.
NOT_TEXT = {b"PAR1": "a Parquet file (.parquet)", b"PK\x03\x04": "an Excel file (.xlsx) or a zip archive"}


def describe_source(source: str | Path) -> str:
    """The source, as an error calls it."""
    return "standard input" if str(source) == STANDARD_STREAM else f"the file {str(source)!r}"


def split_extension(path: str | Path) -> tuple[str, str]:
    """The extension, and that of the compression or "".

    Examples
    --------
    >>> split_extension("rain.CSV.gz")
    ('.csv', '.gz')
    """
    name = Path(path)
    compression = name.suffix.lower() if name.suffix.lower() in (GZIP, ZSTD) else ""
    return (name.with_suffix("") if compression else name).suffix.lower(), compression


def check_extension(path: str | Path, *, to_write: bool = False) -> str:
    """The extension, without that of a compression, if tables of this kind can be read or written."""
    extension, compression = split_extension(path)
    allowed = WRITABLE if to_write else READABLE
    if extension in allowed and (extension in TEXT or not compression):
        return extension
    found = f"the extension {extension + compression!r}" if extension + compression else "no extension"
    raise ValueError(
        f"the file {str(path)!r} has {found}; allowed are {', '.join(allowed)}, and compressed text, such as "
        f".csv{GZIP} or .csv{ZSTD}"
    )


def read_bytes(source: str | Path, limit: int = -1) -> bytes:
    """The content of a text file or of standard input, decompressed; at most `limit` bytes of it."""
    name = describe_source(source)
    if str(source) == STANDARD_STREAM:
        data = _decompress(io.BufferedReader(io.BytesIO(sys.stdin.buffer.read())), name, limit)
    else:
        with Path(source).open("rb") as file:
            data = _decompress(file, name, limit)
    kind = next((kind for magic, kind in NOT_TEXT.items() if data.startswith(magic)), None)
    if kind is not None:
        raise ValueError(f"{name} is not text but {kind}; its name must have that extension")
    return data


def compress(data: bytes, compression: str) -> bytes:
    """The data, compressed as the extension says; "" leaves it as it is."""
    if compression == GZIP:
        # Without the time of writing, so that equal tables give equal files.
        return gzip.compress(data, mtime=0)
    return bytes(_import_zstd().compress(data)) if compression == ZSTD else data


def _decompress(file: io.BufferedReader, name: str, limit: int) -> bytes:
    """The content, decompressed if its first bytes say so, whatever the name is."""
    start = file.peek(len(ZSTD_MAGIC))
    opened: Any
    errors: tuple[type[Exception], ...]
    if start.startswith(GZIP_MAGIC):
        opened, errors = gzip.GzipFile(fileobj=file), (gzip.BadGzipFile, EOFError, zlib.error)
    elif start.startswith(ZSTD_MAGIC):
        zstd = _import_zstd()
        opened, errors = zstd.ZstdFile(file), (zstd.ZstdError, EOFError)
    else:
        return file.read(limit)
    try:
        return bytes(opened.read(limit))
    except errors as error:
        raise ValueError(f"{name} cannot be decompressed; it is damaged or incomplete ({error})") from None


def _import_zstd() -> ModuleType:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError:
        raise ValueError(
            "files compressed by zstd need backports.zstd; install it with: pip install 'rectifit[cli]'"
        ) from None
    module: ModuleType = zstd
    return module
