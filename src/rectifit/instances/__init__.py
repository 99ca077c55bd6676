"""Named instances of ReLU regression, with the best known fits and proved bounds.

Each is made from a stated seed, or read from an installed package, and compared with its digest.
"""

from rectifit.instances.exporting import Programme, export_instance, make_programme
from rectifit.instances.library import Facts, Instance, describe_instance, list_instances, load_instance
from rectifit.instances.profile import SolverProfile, compute_profile, tabulate_profile
from rectifit.instances.results import Result, read_results
from rectifit.instances.running import Answer, run_instances
from rectifit.instances.table import tabulate_instances
from rectifit.instances.verifying import Verdict, verify_instances

__all__ = [
    "Answer",
    "Facts",
    "Instance",
    "Programme",
    "Result",
    "SolverProfile",
    "Verdict",
    "compute_profile",
    "describe_instance",
    "export_instance",
    "list_instances",
    "load_instance",
    "make_programme",
    "read_results",
    "run_instances",
    "tabulate_instances",
    "tabulate_profile",
    "verify_instances",
]
