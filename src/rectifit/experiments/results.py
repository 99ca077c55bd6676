"""From rows to tables: the paper's 15, ours beside them, the claimed orders, and how good the methods are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, median

from rectifit.display import Cell, Column, Table
from rectifit.experiments.grid import LABELS, OURS, PAPER_METHODS, PROOF, Setting
from rectifit.experiments.printed import MEASURES, printed_median
from rectifit.experiments.rows import Row

__all__ = ["Results"]

# Medians of 20 instances scatter; within this factor of the paper's they count as reproduced.
FACTOR = 3.5
# A method has solved an instance if it is within this share of the proved lower bound.
SOLVED = 1e-4
LARGE_NOISE = 0.32
# Shares of settings from which on a claim holds, or mostly holds.
HOLDS, MOSTLY = 0.95, 0.75
# Times are about the same within this factor.
ABOUT = 2.0


@dataclass(frozen=True)
class Claim:
    """A statement about two methods, and in which settings it is so."""

    text: str
    outcomes: tuple[bool, ...]

    @property
    def verdict(self) -> str:
        share = mean(self.outcomes) if self.outcomes else 0.0
        return "holds" if share >= HOLDS else "mostly holds" if share >= MOSTLY else "does not hold"


class Results:
    """The rows of a run, by setting and method, and what they say."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = list(rows)
        self._by: dict[tuple[Setting, str], list[Row]] = defaultdict(list)
        for row in self.rows:
            self._by[row.setting, row.method].append(row)
        for group in self._by.values():
            group.sort(key=lambda row: row.instance)
        self.settings = sorted({row.setting for row in self.rows})

    def of(self, setting: Setting, method: str) -> list[Row]:
        """Rows of a method in a setting, by instance."""
        return self._by[setting, method]

    def values(self, setting: Setting, method: str, measure: str) -> list[float]:
        """One measure over the instances of a setting."""
        return [getattr(row, measure) for row in self.of(setting, method)]

    @property
    def drawn(self) -> list[Setting]:
        """Settings that the figures show."""
        return [setting for setting in self.settings if setting.is_drawn]

    @property
    def tabled(self) -> list[Setting]:
        """Settings that the paper has a table of."""
        return [setting for setting in self.settings if setting.is_tabled]

    def realizable_tables(self) -> list[Table]:
        """The paper's tables, in its order, with its medians at the foot."""
        return [self._realizable_table(setting) for setting in self.tabled]

    def _realizable_table(self, setting: Setting) -> Table:
        columns = [Column("instance")]
        for method in PAPER_METHODS:
            columns += [Column(f"{LABELS[method]}, {measure}", ".3f") for measure in MEASURES]
        series = [
            self.values(setting, method, f"{measure}_error")
            for method in PAPER_METHODS
            for measure in MEASURES
        ]
        body: list[tuple[Cell, ...]] = [
            (row.instance, *(values[i] for values in series))
            for i, row in enumerate(self.of(setting, PAPER_METHODS[0]))
        ]
        ours: tuple[Cell, ...] = ("median", *map(median, series))
        theirs: tuple[Cell, ...] = (
            "median in the paper",
            *(
                printed_median(setting.p, setting.sparsity, method, measure)
                for method in PAPER_METHODS
                for measure in MEASURES
            ),
        )
        return Table(
            f"realizable-p{setting.p}-sparsity{setting.sparsity:g}",
            f"Prediction and recovery error, realizable, p = {setting.p}, n = {setting.n}, "
            f"sparsity {setting.sparsity:g}",
            tuple(columns),
            (*body, ours, theirs),
            n_foot=2,
        )

    def zero_table(self) -> Table:
        """Whether the sorting methods print 0.0 for every instance, as in the paper."""
        rows: list[tuple[Cell, ...]] = []
        for method in PAPER_METHODS[:3]:
            found = [row for setting in self.tabled for row in self.of(setting, method)]
            largest = [max(getattr(row, f"{m}_error") for row in found) for m in MEASURES]
            zeros = sum(round(getattr(row, f"{m}_error"), 3) == 0.0 for row in found for m in MEASURES)
            rows.append((LABELS[method], zeros, 2 * len(found), *largest))
        columns = (
            Column("method"),
            Column("entries that print 0.0", ","),
            Column("entries", ","),
            Column("largest prediction error", ".1e"),
            Column("largest recovery error", ".1e"),
        )
        return Table("sorting-zeros", "The sorting methods on realizable instances", columns, tuple(rows))

    def medians_table(self) -> Table:
        """GD and SGD: medians beside the paper's, 60 cells."""
        rows: list[tuple[Cell, ...]] = []
        for setting in self.tabled:
            for method in ("gd", "sgd"):
                for measure in MEASURES:
                    ours = median(self.values(setting, method, f"{measure}_error"))
                    theirs = printed_median(setting.p, setting.sparsity, method, measure)
                    ratio = ours / theirs
                    inside = "yes" if 1.0 / FACTOR <= ratio <= FACTOR else "no"
                    rows.append(
                        (setting.p, setting.sparsity, LABELS[method], measure, ours, theirs, ratio, inside)
                    )
        outside = sum(row[-1] == "no" for row in rows)
        columns = (
            Column("p"),
            Column("sparsity", "g"),
            Column("method"),
            Column("error"),
            Column("our median", ".3f"),
            Column("paper's median", ".3f"),
            Column("ratio", ".2f"),
            Column(f"within a factor {FACTOR:g}"),
        )
        note = f"{len(rows) - outside} of {len(rows)} cells are within a factor {FACTOR:g} of the paper."
        return Table("gradient-medians", "Gradient descent beside the paper", columns, tuple(rows), note)

    def claims_table(self) -> Table:
        """The orders that the paper claims, over the settings of its figures; means of the instances."""
        claims = []
        for measure, name in (("objective", "objective"), ("prediction_error", "prediction error")):
            chain = ("sorting+iterative", "sorting+gd", "sorting", "gd", "sgd")
            for better, worse in pairwise(chain):
                claims.append(self._order(name, measure, better, worse))
        claims.append(self._order("running time", "seconds", "sgd", "sorting"))
        claims.append(self._order("running time", "seconds", "sorting", "sorting+iterative"))
        claims.append(self._about("sorting+iterative", "sorting+gd"))
        claims.append(self._recovery_claim())
        rows = tuple(
            (
                claim.text,
                sum(claim.outcomes),
                len(claim.outcomes),
                mean(claim.outcomes or (0,)),
                claim.verdict,
            )
            for claim in claims
        )
        columns = (
            Column("claim"),
            Column("holds in"),
            Column("settings"),
            Column("share", ".0%"),
            Column("verdict"),
        )
        note = "On prediction error the paper contradicts itself; the order of the objective is tested."
        return Table("claims", "What the paper claims, tested", columns, rows, note)

    def _mean(self, setting: Setting, method: str, measure: str) -> float:
        return mean(self.values(setting, method, measure))

    def _order(self, name: str, measure: str, better: str, worse: str) -> Claim:
        outcomes = []
        for setting in self.drawn:
            a, b = self._mean(setting, better, measure), self._mean(setting, worse, measure)
            # Equal up to rounding, in the units of the data, is not worse.
            outcomes.append(a <= b * (1.0 + 1e-9) + 1e-9)
        return Claim(f"{name}: {LABELS[better]} ≤ {LABELS[worse]}", tuple(outcomes))

    def _about(self, one: str, other: str) -> Claim:
        ratios = [
            self._mean(setting, one, "seconds") / self._mean(setting, other, "seconds")
            for setting in self.drawn
        ]
        text = f"running time: {LABELS[one]} about {LABELS[other]} (within a factor {ABOUT:g})"
        return Claim(text, tuple(1.0 / ABOUT <= ratio <= ABOUT for ratio in ratios))

    def _recovery_claim(self) -> Claim:
        outcomes = []
        for setting in self.drawn:
            if setting.noise >= LARGE_NOISE:
                errors = {m: self._mean(setting, m, "recovery_error") for m in PAPER_METHODS}
                outcomes.append(min(errors, key=errors.__getitem__) == "gd")
        return Claim("recovery error: GD best at large noise", tuple(outcomes))

    def _proved(self, settings: Iterable[Setting]) -> dict[tuple[Setting, int], Row]:
        """The instances of some settings with a proved optimum."""
        return {
            (setting, row.instance): row
            for setting in settings
            for row in self.of(setting, PROOF)
            if row.status == "optimal"
        }

    def _pairs(self, proved: dict[tuple[Setting, int], Row], method: str) -> list[tuple[Row, Row]]:
        """Rows of a method on proved instances, each with its proof."""
        settings = sorted({setting for setting, _ in proved})
        return [
            (row, proved[setting, row.instance])
            for setting in settings
            for row in self.of(setting, method)
            if (setting, row.instance) in proved
        ]

    def solved_shares(self, noisy: bool) -> dict[str, float]:
        """Share of the proved instances, with noise or without, that each method solves; empty if none is."""
        proved = self._proved(setting for setting in self.drawn if (setting.noise > 0.0) == noisy)
        if not proved:
            return {}
        return {
            method: mean(_is_solved(row, best) for row, best in self._pairs(proved, method))
            for method in (*PAPER_METHODS, OURS)
        }

    def optimality_table(self) -> Table:
        """How often each method finds the global optimum, where that is proved."""
        rows: list[tuple[Cell, ...]] = []
        for p, n, noise, group in self._groups():
            proved, total = self._proved(group), sum(len(self.of(setting, OURS)) for setting in group)
            cells: list[Cell] = []
            for method in (*PAPER_METHODS, OURS):
                pairs = self._pairs(proved, method)
                cells.append(mean(_is_solved(row, best) for row, best in pairs) if pairs else None)
            rows.append((f"p = {p}, n = {n}", noise, len(proved), total, *cells))
        columns = (
            Column("size"),
            Column("noise", "g"),
            Column("proved", ","),
            Column("instances", ","),
            *(Column(LABELS[method], ".0%") for method in (*PAPER_METHODS, OURS)),
        )
        note = (
            f"Share of the proved instances that a method solves: objective within {SOLVED:g} of the bound. "
            "Proved: the certificate closes the gap to 1e-4 for all coefficients."
        )
        return Table("optimality", "How often is the global optimum found?", columns, tuple(rows), note)

    def excess_table(self) -> Table:
        """The objective of each method relative to the certified optimum, with noise."""
        rows: list[tuple[Cell, ...]] = []
        for p, n, noise, group in self._groups():
            proved = self._proved(group)
            if noise == 0.0 or not proved:
                continue
            cells: list[Cell] = []
            for method in (*PAPER_METHODS, OURS):
                ratios = [row.objective / best.objective for row, best in self._pairs(proved, method)]
                cells += [median(ratios), max(ratios)] if ratios else [None, None]
            rows.append((f"p = {p}, n = {n}", noise, *cells))
        pairs = [
            Column(f"{LABELS[method]}, {kind}", ".4f")
            for method in (*PAPER_METHODS, OURS)
            for kind in ("median", "worst")
        ]
        return Table(
            "excess",
            "Objective relative to the certified optimum",
            (Column("size"), Column("noise", "g"), *pairs),
            tuple(rows),
            "1 is optimal. Without noise the optimum is 0, and there is no ratio.",
        )

    def _groups(self) -> list[tuple[int, int, float, list[Setting]]]:
        """Settings of the figures by size and noise."""
        keys = sorted({(s.p, s.n, s.noise) for s in self.drawn})
        return [(*key, [s for s in self.drawn if (s.p, s.n, s.noise) == key]) for key in keys]

    def time_table(self) -> Table:
        """Median seconds of each method."""
        rows: list[tuple[Cell, ...]] = []
        for p, n, noise, group in self._groups():
            cells: list[Cell] = []
            for method in LABELS:
                times = [row.seconds for setting in group for row in self.of(setting, method)]
                cells.append(median(times) if times else None)
            rows.append((f"p = {p}, n = {n}", noise, *cells))
        columns = (Column("size"), Column("noise", "g"), *(Column(label, ".4f") for label in LABELS.values()))
        return Table("seconds", "Running time in seconds, median", columns, tuple(rows))

    def tables(self) -> list[Table]:
        """All tables, the most telling first."""
        return [
            self.optimality_table(),
            self.excess_table(),
            self.claims_table(),
            self.zero_table(),
            self.medians_table(),
            self.time_table(),
            *self.realizable_tables(),
        ]


def _is_solved(row: Row, best: Row) -> bool:
    # Where the optimum is 0, so is its bound, and objectives are rounding.
    return row.objective <= best.lower_bound / (1.0 - SOLVED) * (1.0 + 1e-6) + 1e-12
