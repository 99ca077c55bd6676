"""The checker of proof files: it imports nothing of the search, and trusts nothing that a file says.

It was written from the pages "Why a certificate can be trusted" and "Proof files" of the documentation. Each
statement of a file is derived again from the data, with bounds of all rounding errors (`rounding.py`).
"""

from rectifit.checking.proof import CheckedProof, check_proof
from rectifit.checking.reading import ProofError

__all__ = ["CheckedProof", "ProofError", "check_proof"]
