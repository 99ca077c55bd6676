"""Data that does not fit: files and clusters, read in blocks of rows."""

from rectifit.scale.blocks import ArrayBlocks, Block, Blocks
from rectifit.scale.parquet import ParquetBlocks, open_parquet
from rectifit.scale.problem import BlockProblem
from rectifit.scale.solver import BlockSolver
from rectifit.scale.torch_blocks import TorchBlocks

__all__ = [
    "ArrayBlocks",
    "Block",
    "BlockProblem",
    "BlockSolver",
    "Blocks",
    "ParquetBlocks",
    "TorchBlocks",
    "open_parquet",
]
