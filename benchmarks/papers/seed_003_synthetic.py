"""Seed 003, synthetic data: what Fig. 1 and 7 to 10 are said to show, and how that is judged."""

from __future__ import annotations

from benchmarks.papers.figure import (
    LITTLE,
    MUCH,
    Claim,
    Figure,
    Panel,
    all_of,
    below,
    below_all,
)
from benchmarks.papers.seed_003_claims import (
    dips_and_degrades,
    falls,
    gains_more,
    grows_less_than_x,
    linear,
    rises,
    runs_out_of_memory,
    scales_alike,
    scales_better,
    steady,
    within,
)
from benchmarks.papers.seed_003_measure import ALL, LABELS

TEN, THOUSAND = 1 / 10, 1 / 1_000
STRATEGIES = {name: LABELS[name] for name in (*ALL[1:], ALL[0])}
#: Those that the paper has.
PAPERS = ("opindex", "opindex-bs", "kindex", "betree")
RIVALS = ("kindex", "betree")
MATCHING = "us_per_event"
BUILDING = "build_seconds"
INSERTING = "us_per_insertion"
TIME = Panel(MATCHING, "matching, µs per event")
BUILD = Panel(BUILDING, "building, seconds")
INSERT = Panel(INSERTING, "insertion, µs per subscription")
MEMORY = Panel("bytes", "memory, MB", 1e-6)


def _fastest(key: str = MATCHING) -> Claim:
    """The claim that the paper makes of nearly every figure."""
    return Claim("OpIndex matches the fastest.", below_all(key, "opindex", PAPERS))


FIGURES = (
    Figure(
        "seed_003_fig_1",
        "Seed 003, Fig. 1: construction and matching against d",
        "003-d",
        "attributes d",
        STRATEGIES,
        [BUILD, TIME],
        [
            Claim(
                "The k-index is built much faster than the BE-Tree.",
                below(BUILDING, "kindex", "betree", 1 / MUCH),
            ),
            Claim(
                "The k-index's matching scales better than the BE-Tree's.",
                scales_better(MATCHING, "kindex", "betree"),
            ),
            _fastest(),
            Claim(
                "OpIndex is built at a much smaller cost.",
                all_of(*(below(BUILDING, "opindex", other, 1 / MUCH) for other in RIVALS)),
            ),
        ],
    ),
    Figure(
        "seed_003_fig_7",
        "Seed 003, Fig. 7: BE-Tree's node capacity",
        "003-capacity",
        "node capacity",
        {"betree": LABELS["betree"]},
        [BUILD, TIME],
        [
            Claim(
                "The capacity trades building time for matching time.",
                all_of(
                    falls(BUILDING, ["betree"], 1 / MUCH),
                    rises(MATCHING, ["betree"], MUCH),
                ),
            ),
            Claim(
                "From 5 to 150, building becomes 15 times faster.",
                falls(BUILDING, ["betree"], 1 / 15, last=150),
            ),
            Claim(
                "From 5 to 150, matching becomes 15 times slower.",
                rises(MATCHING, ["betree"], 15, last=150),
            ),
        ],
    ),
    Figure(
        "seed_003_fig_8a",
        "Seed 003, Fig. 8(a): memory against N",
        "003-n",
        "subscriptions N",
        STRATEGIES,
        [MEMORY],
        [
            Claim(
                "BE-Tree takes around twice OpIndex's memory.",
                within("bytes", "betree", "opindex", 2 / MUCH, 2 * MUCH),
            ),
            Claim(
                "The k-index takes seven times as much.", below("bytes", "opindex", "kindex", 1 / 7)
            ),
        ],
        note="The paper's memory is that of the process, with OpIndex's subscriptions still in"
        " it; ours is that of the index.",
    ),
    Figure(
        "seed_003_fig_8b",
        "Seed 003, Fig. 8(b): memory against sigma",
        "003-sigma",
        "values sigma",
        STRATEGIES,
        [MEMORY],
        [
            Claim("OpIndex's memory is steady.", steady("bytes", ["opindex"])),
            Claim(
                "The k-index runs out of memory from sigma = 3,200 on.",
                runs_out_of_memory("kindex", 3_200, "sigma"),
                afterwards="how much memory the k-index may take",
            ),
            Claim("BE-Tree's memory grows ten times.", rises("bytes", ["betree"], 10)),
        ],
    ),
    *(
        Figure(
            f"seed_003_fig_9{letter}",
            f"Seed 003, Fig. 9({letter}): insertion against {axis}",
            experiment,
            x_label,
            STRATEGIES,
            [INSERT, BUILD],
            [
                Claim(
                    "OpIndex inserts three orders of magnitude faster than BE-Tree.",
                    below(INSERTING, "opindex", "betree", THOUSAND),
                ),
                Claim(
                    "OpIndex inserts an order of magnitude faster than the k-index.",
                    below(INSERTING, "opindex", "kindex", TEN),
                ),
                Claim(
                    "OpIndex takes more than OpIndex-BS, by a little.",
                    all_of(
                        below(INSERTING, "opindex-bs", "opindex"),
                        below(INSERTING, "opindex", "opindex-bs", LITTLE),
                    ),
                ),
            ],
            note="On the left one subscription after the other into an empty index, on the right"
            " all at once. The pivot engine has no insertion in place and is on the right only.",
            log_x=letter == "a",
        )
        for letter, axis, experiment, x_label in (
            ("a", "N", "003-n", "subscriptions N"),
            ("b", "Gamma_max", "003-insert-largest", "largest subscription Gamma_max"),
        )
    ),
    Figure(
        "seed_003_fig_10a",
        "Seed 003, Fig. 10(a): matching against N",
        "003-n",
        "subscriptions N",
        STRATEGIES,
        [TIME],
        [
            _fastest(),
            Claim(
                "OpIndex is more than ten times faster than the k-index.",
                below(MATCHING, "opindex", "kindex", TEN),
            ),
            Claim(
                "OpIndex scales better than OpIndex-BS.",
                scales_better(MATCHING, "opindex", "opindex-bs"),
            ),
            Claim("BE-Tree scales well.", grows_less_than_x(MATCHING, "betree")),
        ],
    ),
    Figure(
        "seed_003_fig_10b",
        "Seed 003, Fig. 10(b): matching against Gamma_max",
        "003-largest",
        "largest subscription Gamma_max",
        STRATEGIES,
        [TIME],
        [
            _fastest(),
            Claim(
                "OpIndex scales the best.",
                all_of(*(scales_better(MATCHING, "opindex", other) for other in RIVALS)),
            ),
            Claim("The k-index's time is linear in Gamma_max.", linear(MATCHING, "kindex")),
            Claim(
                "BE-Tree gets better at first, and dramatically worse at 20.",
                dips_and_degrades(MATCHING, "betree"),
            ),
        ],
        log_x=False,
    ),
    Figure(
        "seed_003_fig_10c",
        "Seed 003, Fig. 10(c): matching against m",
        "003-m",
        "attributes of an event m",
        STRATEGIES,
        [TIME],
        [
            Claim("All are sensitive to m.", rises(MATCHING, PAPERS, MUCH)),
            Claim("OpIndex scales as BE-Tree does.", scales_alike(MATCHING, "opindex", "betree")),
            Claim(
                "OpIndex-BS does not scale as well as OpIndex.",
                scales_better(MATCHING, "opindex", "opindex-bs"),
            ),
            Claim(
                "The k-index is the slowest, and scales worse than OpIndex.",
                all_of(
                    *(below(MATCHING, name, "kindex") for name in PAPERS if name != "kindex"),
                    scales_better(MATCHING, "opindex", "kindex"),
                ),
            ),
        ],
        log_x=False,
    ),
    Figure(
        "seed_003_fig_10d",
        "Seed 003, Fig. 10(d): matching against theta_1",
        "003-equal",
        "share of equalities theta_1",
        STRATEGIES,
        [TIME],
        [
            Claim("All get faster with more equalities.", falls(MATCHING, PAPERS)),
            Claim(
                "The k-index and BE-Tree gain more than OpIndex.",
                gains_more(MATCHING, RIVALS, "opindex"),
            ),
            _fastest(),
        ],
        log_x=False,
    ),
    Figure(
        "seed_003_fig_10e",
        "Seed 003, Fig. 10(e): matching against sigma",
        "003-sigma",
        "values sigma",
        STRATEGIES,
        [TIME],
        [
            Claim("The times of all are steady.", steady(MATCHING, PAPERS)),
            _fastest(),
        ],
    ),
    Figure(
        "seed_003_fig_10f",
        "Seed 003, Fig. 10(f): matching against skew",
        "003-zipf",
        "Zipf exponent",
        STRATEGIES,
        [TIME],
        [
            _fastest(),
            Claim(
                "OpIndex scales better than the k-index.",
                scales_better(MATCHING, "opindex", "kindex"),
            ),
        ],
        log_x=False,
    ),
)
