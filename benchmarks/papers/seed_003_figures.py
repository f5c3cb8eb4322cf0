"""Seed 003: what its figures are said to show; those of Fig. 11 to 14 stand here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.papers import seed_003_synthetic
from benchmarks.papers.figure import (
    LITTLE,
    MUCH,
    Claim,
    Figure,
    Judge,
    Panel,
    all_of,
    below,
    below_all,
)
from benchmarks.papers.seed_003_claims import below_limit, falls, rises, scales_better, within
from benchmarks.papers.seed_003_synthetic import BUILDING, MATCHING, PAPERS, STRATEGIES, TIME

if TYPE_CHECKING:
    from collections.abc import Callable

HUNDRED = 1 / 100
WITHOUT_K_INDEX = {name: label for name, label in STRATEGIES.items() if name != "kindex"}
STAND_IN = "The data are a stand-in, made up with the statistics that the paper tells."
SHORT, LONG = ("short", "short interval"), ("long", "long interval")
PRODUCTS = ("equal", "set")


def _time(kind: str, label: str) -> Panel:
    return Panel(f"{MATCHING} {kind}", f"matching, µs per event, {label}")


def _build(kind: str, label: str) -> Panel:
    return Panel(f"{BUILDING} {kind}", f"building, seconds, {label}")


def _of_each(kinds: tuple[str, ...], judge: Callable[[str], Judge]) -> Judge:
    """Claim the same of several kinds of subscriptions."""
    return all_of(*(judge(kind) for kind in kinds))


FIGURES = (
    *seed_003_synthetic.FIGURES,
    Figure(
        "seed_003_fig_11",
        "Seed 003, Fig. 11: keyword queries (stand-in for AOL, Twitter and Wikipedia)",
        "003-keywords",
        "subscriptions N",
        STRATEGIES,
        [
            _build("short", "="),
            _build("short interval", "intervals"),
            _time("short", "short, ="),
            _time("short interval", "short, intervals"),
            _time("long", "long, ="),
            _time("long interval", "long, intervals"),
        ],
        [
            Claim(
                "With = alone, building OpIndex and the k-index takes about the same.",
                within(f"{BUILDING} short", "kindex", "opindex", 1 / MUCH, MUCH),
            ),
            Claim(
                "With intervals, the k-index takes longer to build.",
                below(f"{BUILDING} short interval", "opindex", "kindex"),
            ),
            Claim(
                "BE-Tree takes two orders of magnitude longer to build.",
                _of_each(
                    SHORT, lambda kind: below(f"{BUILDING} {kind}", "opindex", "betree", HUNDRED)
                ),
            ),
            Claim(
                "On short documents OpIndex is at least four times faster than BE-Tree.",
                _of_each(
                    SHORT, lambda kind: below(f"{MATCHING} {kind}", "opindex", "betree", 1 / 4)
                ),
            ),
            Claim(
                "On short documents OpIndex is two orders faster than the k-index.",
                _of_each(
                    SHORT, lambda kind: below(f"{MATCHING} {kind}", "opindex", "kindex", HUNDRED)
                ),
            ),
            Claim(
                "On long documents OpIndex is the fastest.",
                _of_each(LONG, lambda kind: below_all(f"{MATCHING} {kind}", "opindex", PAPERS)),
            ),
        ],
        note=STAND_IN,
    ),
    Figure(
        "seed_003_fig_12a",
        "Seed 003, Fig. 12(a) to (d): products (stand-in for eBay) against N",
        "003-products-n",
        "subscriptions N",
        STRATEGIES,
        [_build("equal", "="), _build("set", "sets"), _time("equal", "="), _time("set", "sets")],
        [
            Claim(
                "The k-index takes about as long to build as OpIndex.",
                _of_each(
                    PRODUCTS,
                    lambda kind: within(f"{BUILDING} {kind}", "kindex", "opindex", 1 / MUCH, MUCH),
                ),
            ),
            Claim(
                "The k-index is built orders of magnitude faster than BE-Tree.",
                _of_each(
                    PRODUCTS, lambda kind: below(f"{BUILDING} {kind}", "kindex", "betree", HUNDRED)
                ),
            ),
            Claim(
                "OpIndex always matches the fastest.",
                _of_each(PRODUCTS, lambda kind: below_all(f"{MATCHING} {kind}", "opindex", PAPERS)),
            ),
        ],
        note=STAND_IN,
    ),
    Figure(
        "seed_003_fig_12e",
        "Seed 003, Fig. 12(e) and (f): products (stand-in for eBay) against Gamma_max",
        "003-products-largest",
        "largest subscription Gamma_max",
        STRATEGIES,
        [_time("equal", "="), _time("set", "sets")],
        [
            Claim(
                "OpIndex always matches the fastest.",
                _of_each(PRODUCTS, lambda kind: below_all(f"{MATCHING} {kind}", "opindex", PAPERS)),
            ),
            Claim(
                "The advantage over BE-Tree becomes greater with Gamma_max.",
                _of_each(
                    PRODUCTS, lambda kind: scales_better(f"{MATCHING} {kind}", "opindex", "betree")
                ),
            ),
            Claim("With sets BE-Tree degrades.", rises(f"{MATCHING} set", ["betree"], MUCH)),
        ],
        note=STAND_IN,
        log_x=False,
    ),
    Figure(
        "seed_003_fig_13a",
        "Seed 003, Fig. 13(a): CNF and DNF against N",
        "003-clauses-n",
        "subscriptions N",
        STRATEGIES,
        [_time("cnf", "CNF"), _time("dnf", "DNF")],
        [
            Claim(
                "OpIndex's DNF scales better than its CNF.",
                scales_better(f"{MATCHING} dnf", "opindex", "opindex", f"{MATCHING} cnf"),
            ),
        ],
        note="The paper has OpIndex alone here. BE-Tree and counting have no CNF.",
    ),
    Figure(
        "seed_003_fig_13b",
        "Seed 003, Fig. 13(b): CNF and DNF against the number of clauses",
        "003-clauses",
        "most clauses",
        STRATEGIES,
        [_time("cnf", "CNF"), _time("dnf", "DNF")],
        [
            Claim(
                "OpIndex's CNF scales better than its DNF.",
                scales_better(f"{MATCHING} cnf", "opindex", "opindex", f"{MATCHING} dnf"),
            ),
        ],
        note="The paper has OpIndex alone here. BE-Tree and counting have no CNF.",
        log_x=False,
    ),
    Figure(
        "seed_003_fig_14a",
        "Seed 003, Fig. 14(a): prefixes against their share",
        "003-prefix-share",
        "prefixes, percent",
        WITHOUT_K_INDEX,
        [TIME],
        [
            Claim("OpIndex takes longer with more prefixes.", rises(MATCHING, ["opindex"], LITTLE)),
            Claim(
                "OpIndex takes less than 0.4 ms.",
                below_limit(MATCHING, "opindex", 400, "0.4 ms"),
            ),
        ],
        note="The paper has OpIndex alone here. The k-index has no prefixes.",
        log_x=False,
    ),
    Figure(
        "seed_003_fig_14b",
        "Seed 003, Fig. 14(b): prefixes against their length",
        "003-prefix-length",
        "length of prefixes",
        WITHOUT_K_INDEX,
        [TIME],
        [
            Claim(
                "OpIndex's time is steady, or even a little better with longer prefixes.",
                falls(MATCHING, ["opindex"], LITTLE),
            ),
        ],
        note="The paper has OpIndex alone here. The k-index has no prefixes.",
        log_x=False,
    ),
)
