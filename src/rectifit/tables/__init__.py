"""Tables in files: read a table, choose and check its columns, write predictions.

Every error is one sentence that names the column, what was found in it and what is allowed.
"""

from rectifit.tables.data_table import DataTable, choose_numbers, make_table, without_missing
from rectifit.tables.encoding import Encoding
from rectifit.tables.files import STANDARD_STREAM, check_extension, read_frame, write_frame

__all__ = [
    "STANDARD_STREAM",
    "DataTable",
    "Encoding",
    "check_extension",
    "choose_numbers",
    "make_table",
    "read_frame",
    "without_missing",
    "write_frame",
]
