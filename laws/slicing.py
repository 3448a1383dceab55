"""Ranges on one axis: src/slicing/resolve.rs.

`taken` is `resolve_integers`; `symbolic` is `Symbolic::lay`, in which every answer of the scope may be missing. A step is its sign and its
size, any integer of at least 1. Not modelled: 64-bit saturation (a bound of INT64_MAX or INT64_MIN is after or before every position, and
no axis is that long), and the meaning of an INT_MAX end (`Reading::end_of`), which is decided before both.
"""

from z3 import And, BoolVal, If, Implies, Or

from law import clamp, imax, imin, law

SIGNS = [1, -1]
# A bound is given or open.
BOUNDS = ["at", "open"]
FLOORS = ["before-first", "first"]


def counted(bound, d):
    """A bound as a position: the dim is added once to a negative bound."""
    return If(bound < 0, bound + d, bound)


def taken(s, d, begin, end, sign, t, floor="first"):
    """`resolve_integers`: the first element and the number of elements; None is an open bound."""
    forward = sign > 0
    lowest, highest = (0, d) if forward else (-1, d - 1)
    least_begin = 0 if not forward and floor == "first" else lowest
    first, last = (lowest, highest) if forward else (highest, lowest)
    b = first if begin is None else clamp(counted(begin, d), least_begin, highest)
    e = last if end is None else clamp(counted(end, d), lowest, highest)
    distance = e - b if forward else b - e
    size = If(distance > 0, s.floor(distance - 1, t) + 1, 0)
    size = If(d <= 0, 0, size)
    return If(size > 0, b, 0), size


def optional(kind, value):
    return value if kind == "at" else None


def position(s, d, bound):
    """`position`, with any of the answers missing."""
    positive, negative = s.said(bound >= 0), s.said(bound < 0)
    near_the_end = s.said(bound > d - 2)
    # -1 for a negative bound, 0 for another.
    minus_one = imax(-1, imin(0, bound))
    general = If(minus_one == -1, bound + d, bound)
    return If(positive, bound, If(negative, bound + d, If(near_the_end, bound, general)))


def least(s, distances, t):
    return imax(0, imin(*[s.ceil(distance, t) for distance in distances]))


def count(s, tops, bottoms, t):
    return least(s, [top - bottom for top in tops for bottom in bottoms], t)


def lay_forward(s, d, begin, end, t):
    """A bound that the scope knows to be redundant is placed at the end of the axis, which equals omitting it."""
    tops, bottoms, start = [d], [0], 0
    if end is not None:
        e = position(s, d, end)
        tops.append(If(s.said(e >= d), d, e))
    if begin is not None:
        b = position(s, d, begin)
        whole = s.said(b <= 0)
        bottoms.append(If(whole, 0, b))
        start = If(whole, 0, imax(b, 0))
    return start, count(s, tops, bottoms, t)


def raised_distances(d, b, e):
    """`count_raised` without the bound by max(1, b - e)."""
    m = imax(0, b)
    return [d, m + 1] if e is None else [d, m + 1, m - e, d - 1 - e]


def lay_backward(s, d, begin, end, t, floor):
    last, e, ends = d - 1, None, [-1]
    if end is not None:
        e = position(s, d, end)
        e = If(s.said(e <= -1), -1, e)
        ends = [-1, e]
    if begin is None:
        return last, count(s, [last], ends, t)
    b = position(s, d, begin)
    is_open = Or(begin == -1, s.said(b >= last))
    positive = s.said(b >= 0)
    start, size = imin(b, last), count(s, [last, b], ends, t)
    if floor == "first":
        raised = imin(imax(0, b), last)
        start, size = If(positive, start, raised), If(positive, size, least(s, raised_distances(d, b, e), t))
    return If(is_open, last, start), If(is_open, count(s, [last], ends, t), size)


def symbolic(s, d, begin, end, sign, t, floor):
    return lay_forward(s, d, begin, end, t) if sign > 0 else lay_backward(s, d, begin, end, t, floor)


def agree(one, other):
    """The same number of elements, and the same first element if there are any."""
    return And(one[1] == other[1], Implies(other[1] > 0, one[0] == other[0]))


@law(
    "resolve-length",
    "len = max(0, ⌈(end − begin)/step⌉) after clamping, and every element begin + k·step for k < len lies in the axis",
    at="src/slicing/resolve.rs: resolve_integers",
    forms=dict(sign=SIGNS, first=BOUNDS, last=BOUNDS, floor=FLOORS),
)
def _(s, d, begin, end, k, t, sign, first, last, floor):
    s.give(t >= 1)
    begin, end = optional(first, begin), optional(last, end)
    start, size = taken(s, d, begin, end, sign, t, floor)
    s.claim(Implies(And(0 <= k, k < size), And(0 <= start + sign * k * t, start + sign * k * t < d)))
    s.claim(0 <= size, Implies(d >= 0, size <= d))
    if first == last == "at":
        lowest, highest = (0, d) if sign > 0 else (-1, d - 1)
        b, e = clamp(counted(begin, d), lowest, highest), counted(end, d)
        s.wrong(end_is_not_clamped=size == imax(0, s.ceil(sign * (e - b), t)))


@law(
    "resolve-takes-what-numpy-takes",
    "element p of the axis is taken iff p ≥ begin, p < end and step divides p − begin (going forward; mirrored going backward)",
    at="src/slicing/resolve.rs: resolve_integers",
    forms=dict(sign=SIGNS, first=BOUNDS, last=BOUNDS),
)
def _(s, d, begin, end, p, k, t, sign, first, last):
    # The step divides p - begin: p is begin + k steps.
    begin, end = optional(first, begin), optional(last, end)
    start, size = taken(s, d, begin, end, sign, t, "before-first")
    s.give(t >= 1, 0 <= p, p < d)
    if sign > 0:
        b = 0 if begin is None else imax(counted(begin, d), 0)
        e = d if end is None else counted(end, d)
    else:
        b = d - 1 if begin is None else imin(counted(begin, d), d - 1)
        e = -1 if end is None else counted(end, d)
    s.give(p == b + sign * k * t)
    within = And(p >= b, p < e) if sign > 0 else And(p <= b, p > e)
    s.claim(And(0 <= k, k < size) == within, Implies(size > 0, start == b))
    if last == "at":
        s.wrong(end_is_taken_too=And(0 <= k, k < size) == (And(p >= b, p <= e) if sign > 0 else And(p <= b, p >= e)))


@law(
    "resolve-symbolic-forward",
    "end − begin = max(0, min(e, d) − max(b, 0)) = the least of e − b, e, d − b and d, but at least 0",
    at="src/slicing/resolve.rs: lay_forward",
    forms=dict(first=BOUNDS, last=BOUNDS),
)
def _(s, d, begin, end, t, first, last):
    begin, end = optional(first, begin), optional(last, end)
    s.give(d >= 0, t >= 1)
    expected = taken(s, d, begin, end, 1, t)
    s.claim(agree(symbolic(s, d, begin, end, 1, t, "first"), expected))
    if first == last == "at":
        b, e = counted(begin, d), counted(end, d)
        s.wrong(begin_is_not_raised=expected[1] == imax(0, s.ceil(imin(e, d) - b, t)))
        s.wrong(end_is_not_cut=expected[1] == imax(0, s.ceil(e - imax(b, 0), t)))


@law(
    "resolve-symbolic-backward",
    "begin − end = max(0, min(b, d − 1) − max(e, −1)), where b is raised to 0 if the floor is the first element",
    at="src/slicing/resolve.rs: lay_backward",
    forms=dict(first=BOUNDS, last=BOUNDS, floor=FLOORS),
)
def _(s, d, begin, end, t, first, last, floor):
    begin, end = optional(first, begin), optional(last, end)
    s.give(d >= 0, t >= 1)
    expected = taken(s, d, begin, end, -1, t, floor)
    s.claim(agree(symbolic(s, d, begin, end, -1, t, floor), expected))
    if first == last == "at":
        b, e = counted(begin, d), counted(end, d)
        other = "first" if floor == "before-first" else "before-first"
        s.wrong(the_other_floor=expected[1] == taken(s, d, begin, end, -1, t, other)[1])
        s.wrong(stops_at_the_first=expected[1] == imax(0, s.ceil(imin(b, d - 1) - imax(e, 0), t)))


@law(
    "resolve-raised-count",
    "with m = max(0, b): min(m, d − 1) − max(e, −1) is the least of d, m + 1, m − e and d − 1 − e, and never more than max(1, b − e)",
    at="src/slicing/resolve.rs: count_raised",
)
def _(s, d, b, e, t):
    s.give(d >= 0, t >= 1)
    exact = imax(0, s.ceil(imin(imax(0, b), d - 1) - clamp(e, -1, d - 1), t))
    distances = raised_distances(d, b, e)
    s.claim(least(s, distances, t) == exact, least(s, [*distances, imax(1, b - e)], t) == exact)
    s.wrong(bound_of_b_alone=least(s, [*distances, b - e], t) == exact)
    s.wrong(begin_not_raised=least(s, [d, b + 1, b - e, d - 1 - e], t) == exact)


@law(
    "resolve-open-bound-takes-more",
    "len(begin : end) ≤ len(: end) ≤ d and len(begin : end) ≤ len(begin :)",
    at="src/slicing/resolve.rs: lay",
    forms=dict(sign=SIGNS, floor=FLOORS),
)
def _(s, d, begin, end, t, sign, floor):
    s.give(d >= 0, t >= 1)
    size = taken(s, d, begin, end, sign, t, floor)[1]
    opened = [taken(s, d, None, end, sign, t, floor)[1], taken(s, d, begin, None, sign, t, floor)[1]]
    s.claim(*[size <= more for more in [*opened, taken(s, d, None, None, sign, t, floor)[1]]], size <= d)
    s.wrong(opened_is_equal=size == opened[0])


@law(
    "resolve-position",
    "[v < 0] = −max(−1, min(0, v)), which adds the dim to a bound whose sign is not known",
    at="src/slicing/resolve.rs: position",
)
def _(s, d, v):
    s.need(dim_is_a_size=d >= 0)
    s.claim(v - d * imax(-1, imin(0, v)) == counted(v, d), position(s, d, v) == counted(v, d))
    s.wrong(added_always=v + d == counted(v, d))


@law("ceil-of-min", "⌈min(x, y)/t⌉ = min(⌈x/t⌉, ⌈y/t⌉), and the same for max", at="src/slicing/resolve.rs: least")
def _(s, x, y, t):
    s.need(step_is_positive=t >= 1)
    quotients = [s.int("q") for _ in range(4)]
    for value, quotient in zip([x, y, imin(x, y), imax(x, y)], quotients):
        # ⌈value / t⌉ for t of either sign.
        upwards = And(t * quotient >= value, t * quotient < value + t)
        downwards = And(t * quotient <= value, t * quotient > value + t)
        s.give(t != 0, Implies(t > 0, upwards), Implies(t < 0, downwards))
    s.claim(quotients[2] == imin(quotients[0], quotients[1]), quotients[3] == imax(quotients[0], quotients[1]))


@law(
    "resolve-index",
    "index i of an axis is element i, or i + d if it is negative, and fails outside of −d ≤ i < d",
    at="src/slicing/resolve.rs: resolve_index",
)
def _(s, d, i):
    s.need(in_range=And(-d <= i, i < d))
    found = position(s, d, i)
    s.claim(0 <= counted(i, d), counted(i, d) < d, found == counted(i, d))
    s.wrong(position_without_dim=i == counted(i, d))


@law(
    "composition-by-numbers",
    "elements s + k·t for k < n of an axis are [s : s + (n − 1)·t + 1 : t] forward, and [s : s + (n − 1)·t − 1 : t] backward, open below 0",
    at="src/rewrite/movement/spell.rs: range_by_numbers",
    forms=dict(sign=SIGNS),
)
def _(s, d, start, n, t, sign):
    s.give(t >= 1)
    last = start + sign * t * (n - 1)
    s.need(takes_some=n >= 1, first_is_inside=And(0 <= start, start < d), last_is_inside=And(0 <= last, last < d))
    end = last + sign
    opened = taken(s, d, start, None, sign, t)
    given = taken(s, d, start, end, sign, t)
    result = given if sign > 0 else tuple(If(end < 0, o, g) for o, g in zip(opened, given))
    s.claim(agree(result, (start, n)))
    if sign < 0:
        s.wrong(end_of_minus_one=agree(given, (start, n)))


@law(
    "slice-that-takes-all",
    "as many elements as there are, one after the other, can only be all of them",
    at="src/slicing/bounds.rs: takes_all",
    forms=dict(sign=SIGNS, floor=FLOORS),
)
def _(s, d, begin, end, t, k, sign, floor):
    s.give(d >= 0, t >= 1, 0 <= k, k < d)
    start, size = taken(s, d, begin, end, sign, t, floor)
    s.need(length_is_the_dim=size == d, in_order=Or(And(sign > 0, t == 1) if sign > 0 else BoolVal(False), d <= 1))
    s.claim(start + sign * t * k == k)


@law(
    "slice-bound-from-the-end",
    "a bound d − k is −k where d ≥ k > 0",
    at="src/slicing/bounds.rs: with_numbers",
    forms=dict(sign=SIGNS, last=BOUNDS, floor=FLOORS),
)
def _(s, d, k, other, t, sign, last, floor):
    s.give(t >= 1, d >= 0)
    other = optional(last, other)
    s.need(is_so_long=d >= k, is_before_the_end=k > 0)
    s.claim(agree(taken(s, d, -k, other, sign, t, floor), taken(s, d, d - k, other, sign, t, floor)))
    s.claim(agree(taken(s, d, other, -k, sign, t, floor), taken(s, d, other, d - k, sign, t, floor)))


@law(
    "slice-bound-beyond-the-axis",
    "a bound that lies beyond the axis is open, or INT64_MAX where a range begins behind it",
    at="src/slicing/bounds.rs: with_numbers",
    forms=dict(sign=SIGNS, last=BOUNDS, floor=FLOORS),
)
def _(s, d, bound, other, huge, t, sign, last, floor):
    s.give(t >= 1, d >= 0, huge >= d)
    other = optional(last, other)
    before = lambda first: And(bound < 0, bound + d <= first)

    def same(begin, end, new_begin, new_end):
        return agree(taken(s, d, new_begin, new_end, sign, t, floor), taken(s, d, begin, end, sign, t, floor))

    if sign > 0:
        s.claim(Implies(before(0), same(bound, other, None, other)), Implies(bound >= d, same(bound, other, huge, other)))
        s.claim(Implies(bound >= d, same(other, bound, other, None)))
        s.wrong(open_begin_behind_the_axis=Implies(bound >= d, same(bound, other, None, other)))
    else:
        s.claim(Implies(bound >= d - 1, same(bound, other, None, other)), Implies(before(-1), same(other, bound, other, None)))
        s.wrong(end_at_the_first_is_open=Implies(before(0), same(other, bound, other, None)))
