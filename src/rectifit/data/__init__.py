"""What is given, as one protocol: in memory, or read in passes."""

from rectifit.data.arrays import ArrayData
from rectifit.data.base import Data
from rectifit.data.blocks import Block
from rectifit.data.dask import DaskData
from rectifit.data.memory import MemoryData
from rectifit.data.parquet import ParquetData, open_parquet
from rectifit.data.problem import Problem
from rectifit.data.tensors import TensorData

__all__ = [
    "ArrayData",
    "Block",
    "DaskData",
    "Data",
    "MemoryData",
    "ParquetData",
    "Problem",
    "TensorData",
    "open_parquet",
]
