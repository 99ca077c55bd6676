"""Tables in files: read a table, choose and check its columns, write predictions.

Every error is one sentence that names the column, what was found in it and what is allowed.
"""

from rectifit.tables.data_table import DataTable, choose_numbers, make_table, refuse_faults
from rectifit.tables.encoding import Encoder, Encoding
from rectifit.tables.files import FileTable, read_frame, read_table, write_frame
from rectifit.tables.missing import WARNING, find_gaps, without_missing
from rectifit.tables.source import STANDARD_STREAM, check_extension
from rectifit.tables.text import TextFormat

__all__ = [
    "STANDARD_STREAM",
    "WARNING",
    "DataTable",
    "Encoder",
    "Encoding",
    "FileTable",
    "TextFormat",
    "check_extension",
    "choose_numbers",
    "find_gaps",
    "make_table",
    "read_frame",
    "read_table",
    "refuse_faults",
    "without_missing",
    "write_frame",
]
