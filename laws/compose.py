"""Ranges of ranges: src/slicing/compose.rs.

`forward`, `reversed_` and `of_reversed` are the functions of `Composition` on numbers (`Numbers`, in which an open bound is None). Every
answer of the scope may be missing. `Found` is the returned range, with the condition under which it is returned. Not modelled: overflow of
64 bits, for which the program returns nothing, and ends that a reading interprets as open, which `Numbers::range` refuses.
"""

from dataclasses import dataclass

from z3 import And, BoolVal, If, Implies, Or

from law import imax, imin, law
from slicing import BOUNDS, FLOORS, SIGNS, agree, optional, taken


@dataclass
class Found:
    """A range if `known`; it is empty if `empty`."""

    known: object
    empty: object
    begin: object
    end: object
    is_open: object


def is_long(s, d, elements):
    """Returns whether the axis is known to have this many elements."""
    return Or(elements <= 0, s.said(d >= elements))


def is_short(s, d, elements):
    return s.said(d <= elements)


def earlier(s, d, end, limit):
    """The smaller one of an end and a non-negative position: (known, end)."""
    if end is None:
        return BoolVal(True), limit
    before, behind = is_long(s, d, limit - end), is_short(s, d, limit - end)
    known = Or(end >= 0, before, behind)
    return known, If(end >= 0, imin(end, limit), If(before, limit, end))


def earlier_from_end(s, d, end, limit):
    if end is None:
        return BoolVal(True), limit
    longer, shorter = is_long(s, d, end - limit), is_short(s, d, end - limit)
    return Or(end < 0, longer, shorter), If(end < 0, imin(end, limit), If(longer, end, limit))


def shortened(s, d, end, e):
    """The end of x[a:b] without its last -e elements."""
    if end is None:
        return BoolVal(True), e
    short, long = is_short(s, d, end), is_long(s, d, end)
    known = Or(end < 0, short, long)
    return known, If(end < 0, end + e, If(short, e, imax(end + e, 0)))


def forward(s, d, a, b, step, c, e):
    """`Composition::forward` for x[a:b:step][c:e:…]; the caller chooses the step of the result."""
    a, c = 0 if a is None else a, 0 if c is None else c
    reaches = is_long(s, d, -a)
    behind = a + step * c
    known = And(c >= 0, Or(c == 0, a >= 0, reaches))
    empty = And(c > 0, a < 0, behind >= 0)
    begin = If(c == 0, a, behind)
    if e is None:
        return Found(known, empty, begin, b, BoolVal(b is None))
    limit = a + step * e
    known_front, front = earlier(s, d, b, limit)
    known_back, back = earlier_from_end(s, d, b, limit)
    known_short, short = shortened(s, d, b, e) if isinstance(step, int) and step == 1 else (BoolVal(False), 0)
    known_end = If(e > 0, If(a >= 0, known_front, And(reaches, Or(limit >= 0, known_back))), known_short)
    kept = And(e > 0, a < 0, limit >= 0)
    end = If(e > 0, If(a >= 0, front, If(limit < 0, back, 0 if b is None else b)), short)
    is_open = And(kept, BoolVal(b is None))
    return Found(And(known, Or(empty, e == 0, known_end)), Or(empty, e == 0), begin, end, is_open)


def laid(s, d, found, sign, t, floor):
    """The elements of the found range: a forward begin of 0 and a backward begin of -1 are open bounds."""
    opened = taken(s, d, found.begin, None, sign, t, floor)
    given = opened if found.end is None else taken(s, d, found.begin, found.end, sign, t, floor)
    start, size = (If(found.is_open, opened[at], given[at]) for at in (0, 1))
    return start, If(found.empty, 0, size)


def twice(s, d, outer, inner, floor):
    """The start and length of a slice of a slice; a range is (begin, end, sign, size of the step)."""
    start, size = taken(s, d, *outer, floor)
    inner_start, inner_size = taken(s, size, *inner, floor)
    return start + outer[2] * outer[3] * inner_start, inner_size


@law(
    "slice-of-slice-forward",
    "x[a:b:s][c:e:t] = x[a + s·c : min(b, a + s·e) : s·t], and an open end leaves the other one",
    at="src/slicing/compose.rs: forward",
    forms=dict(steps=["one", "any"], first=BOUNDS, last=BOUNDS, begins=BOUNDS, ends=BOUNDS),
)
def _(s, d, a, b, c, e, step, by, steps, first, last, begins, ends):
    a, b, c, e = optional(first, a), optional(last, b), optional(begins, c), optional(ends, e)
    # The end depends on the second range only if the first step is 1.
    step = 1 if steps == "one" else step
    s.give(d >= 0, step >= 1, by >= 1)
    found = forward(s, d, a, b, step, c, e)
    expected = twice(s, d, (a, b, 1, step), (c, e, 1, by), "first")
    result = laid(s, d, found, 1, step * by, "first")
    s.need(found=found.known)
    s.claim(agree(result, expected))
    if first == last == begins == ends == "at":
        naive = taken(s, d, a + step * c, imin(b, a + step * e), 1, step * by)
        s.wrong(bounds_of_any_sign=agree(naive, expected))
        s.wrong(end_of_the_first_alone=Implies(a >= 0, agree(taken(s, d, a + step * c, b, 1, step * by), expected)))


@law(
    "slice-without-last-of-slice",
    "x[a:−b][:−e] = x[a : −b − e], and the same with b = 0 for an open end",
    at="src/slicing/compose.rs: shortened",
)
def _(s, d, a, b, e):
    s.give(d >= 0)
    s.need(end_is_counted_from_the_end=b < 0, less=e < 0)
    s.claim(agree(taken(s, d, a, b + e, 1, 1), twice(s, d, (a, b, 1, 1), (None, e, 1, 1), "first")))
    s.claim(agree(taken(s, d, a, e, 1, 1), twice(s, d, (a, None, 1, 1), (None, e, 1, 1), "first")))


@law(
    "slice-of-reversed",
    "x[::-1][c:e:t]: position k of the reversed axis is −1 − k of the axis, for either sign of k and t",
    at="src/slicing/compose.rs: of_reversed",
    forms=dict(sign=SIGNS, begins=BOUNDS, ends=BOUNDS, floor=FLOORS),
)
def _(s, d, c, e, t, sign, begins, ends, floor):
    c, e = optional(begins, c), optional(ends, e)
    s.give(d >= 0, t >= 1)
    begin, end = (None if bound is None else -1 - bound for bound in (c, e))
    if begin is not None and floor == "first":
        # The bound where a backward range begins, the first range's or the second's.
        bound = begin if sign > 0 else c
        s.need(begin_is_not_raised=Or(bound >= -1, is_long(s, d, -bound)))
    expected = twice(s, d, (None, None, -1, 1), (c, e, sign, t), floor)
    s.claim(agree(taken(s, d, begin, end, -sign, t, floor), expected))
    if begin is not None:
        s.wrong(mirrored_at_zero=agree(taken(s, d, -begin, end, -sign, t, floor), expected))


@law(
    "reversed-slice",
    "x[a:b][::-t] = x[b − 1 : a − 1 : −t], where a = 0 makes the end open",
    at="src/slicing/compose.rs: reversed",
    forms=dict(first=BOUNDS, last=BOUNDS, floor=FLOORS),
)
def _(s, d, a, b, t, first, last, floor):
    a, b = optional(first, a), optional(last, b)
    s.give(d >= 0, t >= 1)
    expected = twice(s, d, (a, b, 1, 1), (None, None, -1, t), floor)
    begin = None if b is None else b - 1
    end = None if a is None else a - 1
    # x[:0] is empty, and so is every slice of it.
    empty = BoolVal(False) if b is None else b == 0
    can_begin = BoolVal(True)
    if begin is not None and floor == "first":
        can_begin = Or(begin >= -1, is_long(s, d, -begin))
        if a is not None:
            can_begin = Or(can_begin, And(a != 0, end >= 0))
        s.need(begin_is_not_raised=Or(empty, can_begin))
    opened = taken(s, d, begin, None, -1, t, floor)
    given = opened if end is None else tuple(If(a == 0, o, g) for o, g in zip(opened, taken(s, d, begin, end, -1, t, floor)))
    s.claim(agree((given[0], If(empty, 0, given[1])), expected))
    if begin is not None and end is not None:
        s.wrong(end_is_never_open=agree(taken(s, d, begin, end, -1, t, floor), expected))


@law(
    "composition-by-numbers",
    "elements s + k·t for k < n of an axis are [s : s + (n − 1)·t + 1 : t] forward, and [s : s + (n − 1)·t − 1 : t] backward, open below 0",
    at="src/slicing/compose.rs: by_numbers",
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
    at="src/slicing/compose.rs: takes_all",
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
    at="src/slicing/compose.rs: with_numbers",
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
    at="src/slicing/compose.rs: with_numbers",
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
