"""How what seed 003 reads off its figures is judged: growth, steadiness, refusals.

The growth of a strategy is its value at the last x divided by that at the first. "Scales better"
asks for a smaller growth, over the x that both strategies were measured at::

    x           1M   10M
    opindex     10    50     growth 5
    kindex     200  2000     growth 10: opindex scales better
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.papers.figure import LITTLE, MUCH, Judge, Points, Verdict, called, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def growth(values: dict[float, float]) -> float:
    """The value at the last x divided by that at the first."""
    return values[max(values)] / values[min(values)]


def _missing(criterion: str, label: str) -> Verdict:
    return Verdict(False, criterion, f"{label}: not measured at two points")


def scales_better(key: str, name: str, other: str, other_key: str = "") -> Judge:
    """Claim that a strategy grows less than another, or than itself by another key."""
    second = other_key or key

    def judge(points: Points) -> Verdict:
        labels = [points.labels[name], points.labels[other]]
        words = [f"{called(key)} {labels[0]}", f"{called(second)} {labels[1]}"]
        criterion = f"growth of {words[0]} / of {words[1]} < 1"
        mine, theirs = points.of(name, key), points.of(other, second)
        both = sorted(mine.keys() & theirs.keys())
        if len(both) < 2:
            return _missing(criterion, f"{labels[0]} and {labels[1]}")
        grown = [growth({x: values[x] for x in both}) for values in (mine, theirs)]
        seen = f"up to {both[-1]:,.10g}: {words[0]} {grown[0]:.3g} times, {words[1]} {grown[1]:.3g}"
        return Verdict(grown[0] < grown[1], criterion, seen)

    return judge


def scales_alike(key: str, name: str, other: str) -> Judge:
    """Claim that two strategies grow by nearly the same."""

    def judge(points: Points) -> Verdict:
        labels = f"{points.labels[name]} / {points.labels[other]}"
        criterion = f"growth of {called(key)} {labels} from {1 / LITTLE:g} to {LITTLE}"
        mine, theirs = points.of(name, key), points.of(other, key)
        both = sorted(mine.keys() & theirs.keys())
        if len(both) < 2:
            return _missing(criterion, labels)
        grown = [growth({x: values[x] for x in both}) for values in (mine, theirs)]
        ratio = grown[0] / grown[1]
        seen = f"{labels} {grown[0]:.3g} and {grown[1]:.3g} times, ratio {ratio:.3g}"
        return Verdict(1 / LITTLE <= ratio <= LITTLE, criterion, seen)

    return judge


def grows_less_than_x(key: str, name: str) -> Judge:
    """Claim that a strategy's value grows less than x does."""

    def judge(points: Points) -> Verdict:
        label = points.labels[name]
        criterion = f"growth of {called(key)} {label} / growth of x < 1"
        values = points.of(name, key)
        if len(values) < 2:
            return _missing(criterion, label)
        grown, of_x = growth(values), max(values) / min(values)
        return Verdict(grown < of_x, criterion, f"{grown:.3g} times, x {of_x:.3g} times")

    return judge


def linear(key: str, name: str) -> Judge:
    """Claim that a strategy's value grows as x does."""

    def judge(points: Points) -> Verdict:
        label = points.labels[name]
        criterion = f"growth of {called(key)} {label} / growth of x from {1 / MUCH:.3g} to {MUCH}"
        values = points.of(name, key)
        if len(values) < 2:
            return _missing(criterion, label)
        ratio = growth(values) / (max(values) / min(values))
        seen = f"{growth(values):.3g} times over x {max(values) / min(values):.3g} times"
        return Verdict(1 / MUCH <= ratio <= MUCH, criterion, seen)

    return judge


def steady(key: str, names: Sequence[str], factor: float = LITTLE) -> Judge:
    """Claim that the greatest value of each strategy is hardly more than its smallest."""

    def judge(points: Points) -> Verdict:
        labels = ", ".join(points.labels[name] for name in names)
        criterion = f"{called(key)}, greatest / smallest ≤ {factor:g}: {labels}"
        told, holds = [], True
        for name in names:
            values = points.of(name, key).values()
            if len(values) < 2:
                return _missing(criterion, points.labels[name])
            ratio = max(values) / min(values)
            holds &= ratio <= factor
            told.append(f"{points.labels[name]} {ratio:.3g}")
        return Verdict(holds, criterion, ", ".join(told))

    return judge


def rises(key: str, names: Sequence[str], factor: float, last: float | None = None) -> Judge:
    """Claim that the last x, or a given one, takes at least so many times what the first does."""
    return _change(key, names, f"≥ {factor:.3g}", lambda grown: grown >= factor, last)


def falls(key: str, names: Sequence[str], factor: float = 1.0, last: float | None = None) -> Judge:
    """Claim that it takes at most so many times what the first does; a factor of 1 means less."""
    if factor == 1:
        return _change(key, names, "< 1", lambda grown: grown < 1, last)
    return _change(key, names, f"≤ {factor:.3g}", lambda grown: grown <= factor, last)


def _change(
    key: str,
    names: Sequence[str],
    asked: str,
    fits: Callable[[float], bool],
    last: float | None,
) -> Judge:
    def judge(points: Points) -> Verdict:
        labels = ", ".join(points.labels[name] for name in names)
        where = "the last x" if last is None else f"{last:g}"
        criterion = f"{called(key)} at {where} / at the first {asked}: {labels}"
        grown = {}
        for name in names:
            values = points.of(name, key)
            if last is not None:
                values = {x: value for x, value in values.items() if x <= last}
            if len(values) < 2:
                return _missing(criterion, points.labels[name])
            grown[points.labels[name]] = growth(values)
        seen = ", ".join(f"{label} {value:.3g}" for label, value in grown.items())
        return Verdict(all(fits(value) for value in grown.values()), criterion, seen)

    return judge


def within(key: str, name: str, other: str, least: float, most: float) -> Judge:
    """Claim that one takes from ``least`` to ``most`` times what another does, at every x."""

    def judge(points: Points) -> Verdict:
        what = f"{called(key)} {points.labels[name]} / {points.labels[other]}"
        criterion = f"{what} from {least:.3g} to {most:.3g}"
        ratios = list(points.ratios(key, name, other).values())
        if not ratios:
            return Verdict(False, criterion, f"{what}: not measured")
        holds = least <= min(ratios) and max(ratios) <= most
        return Verdict(holds, criterion, f"{what} {spread(ratios)}")

    return judge


def runs_out_of_memory(name: str, first: float, axis: str) -> Judge:
    """Claim that a strategy cannot be had from an x on, and can before."""

    def judge(points: Points) -> Verdict:
        label = points.labels[name]
        criterion = f"{label} does not fit for {axis} ≥ {first:,.10g}, and does before"
        refused = sorted(p["x"] for p in points.refused if p["structure"] == name)
        measured = points.of(name, "bytes")
        told = ", ".join(f"{x:,.10g}" for x in refused) or "nowhere"
        holds = (
            bool(refused and measured)
            and min(refused) == first
            and all(x < first for x in measured)
        )
        return Verdict(holds, criterion, f"{label} does not fit at {told}")

    return judge


def below_limit(key: str, name: str, limit: float, words: str) -> Judge:
    """Claim that a strategy stays below a limit everywhere."""

    def judge(points: Points) -> Verdict:
        label = points.labels[name]
        criterion = f"{called(key)} of {label} < {words} at every x"
        values = points.of(name, key).values()
        if not values:
            return Verdict(False, criterion, f"{label}: not measured")
        return Verdict(max(values) < limit, criterion, f"{label} at most {max(values):.3g} µs")

    return judge


def dips_and_degrades(key: str, name: str) -> Judge:
    """Claim that the second x takes less than the first, and the last much more than the least."""

    def judge(points: Points) -> Verdict:
        label = points.labels[name]
        criterion = (
            f"{called(key)} of {label}: at the second x / at the first < 1;"
            f" at the last x / the least ≥ {MUCH}"
        )
        values = [value for _, value in sorted(points.of(name, key).items())]
        if len(values) < 3:
            return Verdict(False, criterion, f"{label}: not measured at three points")
        dip, rise = values[1] / values[0], values[-1] / min(values)
        return Verdict(dip < 1 and rise >= MUCH, criterion, f"{label} {dip:.3g}; {rise:.3g}")

    return judge


def gains_more(key: str, names: Sequence[str], other: str) -> Judge:
    """Claim that from the first x to the last each of these falls by more than another does."""

    def judge(points: Points) -> Verdict:
        labels = " and ".join(points.labels[name] for name in names)
        criterion = (
            f"{called(key)} at the last x / at the first: less for {labels}"
            f" than for {points.labels[other]}"
        )
        grown = {}
        for name in (*names, other):
            values = points.of(name, key)
            if len(values) < 2:
                return _missing(criterion, points.labels[name])
            grown[name] = growth(values)
        seen = ", ".join(f"{points.labels[name]} {value:.3g}" for name, value in grown.items())
        return Verdict(all(grown[name] < grown[other] for name in names), criterion, seen)

    return judge
