"""Interval arithmetic: src/dim/bounds.rs and the intervals of src/dim/prove.rs.

An end is a number or infinite (None). Not modelled: 128-bit overflow. An overflowing end counts as infinite, or on the near side as the
largest integer, which the true end exceeds.
"""

from z3 import And, If, Implies, IntVal, Or

from law import imax, imin, law

ENDS = ["at", "infinite"]
INFINITE = "infinite"


def end(kind, value):
    return None if kind == INFINITE else value


def inside(value, low, high):
    facts = ([] if low is None else [low <= value]) + ([] if high is None else [value <= high])
    return And(*facts) if facts else IntVal(0) == 0


PAIR = dict(low_a=ENDS, high_a=ENDS, low_b=ENDS, high_b=ENDS)


@law("interval-sum", "a + b lies between the sums of the ends", at="src/dim/bounds.rs: plus", forms=PAIR)
def _(s, x, y, l, h, m, n, low_a, high_a, low_b, high_b):
    l, h, m, n = end(low_a, l), end(high_a, h), end(low_b, m), end(high_b, n)
    s.need(first_is_inside=inside(x, l, h), second_is_inside=inside(y, m, n))
    low = None if l is None or m is None else l + m
    high = None if h is None or n is None else h + n
    s.claim(inside(x + y, low, high))


@law(
    "interval-scaled",
    "c·a lies between c times the ends, which change places for c < 0",
    at="src/dim/bounds.rs: scaled",
    forms=dict(low_a=ENDS, high_a=ENDS, sign=[-1, 0, 1]),
)
def _(s, x, c, l, h, low_a, high_a, sign):
    l, h = end(low_a, l), end(high_a, h)
    s.give({-1: c < 0, 0: c == 0, 1: c > 0}[sign])
    s.need(it_is_inside=inside(x, l, h))
    scaled = [None if bound is None else bound * c for bound in (l, h)]
    low, high = {-1: reversed(scaled), 0: (0, 0), 1: scaled}[sign]
    s.claim(inside(c * x, low, high))
    if sign < 0 and l is not None and h is not None:
        s.wrong(ends_stay=inside(c * x, scaled[0], scaled[1]))


@law(
    "interval-product",
    "a·b lies between the least and the largest product of two ends, where 0·∞ = 0",
    at="src/dim/bounds.rs: times",
    forms=PAIR,
)
def _(s, x, y, l, h, m, n, low_a, high_a, low_b, high_b):
    l, h, m, n = end(low_a, l), end(high_a, h), end(low_b, m), end(high_b, n)
    s.need(first_is_inside=inside(x, l, h), second_is_inside=inside(y, m, n))

    # A corner is a pair: its sign if it is infinite, and its value.
    def sign(value, infinite):
        return infinite if value is None else If(value > 0, 1, If(value < 0, -1, 0))

    corners = []
    for a, side_a in ((l, -1), (h, 1)):
        for b, side_b in ((m, -1), (n, 1)):
            if a is None or b is None:
                corners.append((sign(a, side_a) * sign(b, side_b), IntVal(0)))
            else:
                corners.append((IntVal(0), a * b))
    values = [value for _, value in corners]
    no_low = Or(*[infinite < 0 for infinite, _ in corners])
    no_high = Or(*[infinite > 0 for infinite, _ in corners])
    # An infinite corner of the opposite sign is never the least.
    s.claim(Or(no_low, *[And(infinite == 0, value <= x * y) for infinite, value in corners]))
    s.claim(Or(no_high, *[And(infinite == 0, value >= x * y) for infinite, value in corners]))
    if None not in (l, h, m, n):
        s.claim(imin(*values) <= x * y, x * y <= imax(*values))
        s.wrong(of_ends_on_one_side=And(l * m <= x * y, x * y <= h * n))


@law(
    "interval-power",
    "a^n lies between the powers of the ends for odd n or a of one sign, and between 0 and the larger of them otherwise",
    at="src/dim/bounds.rs: power",
    cases=dict(n=range(2, 6)),
    forms=dict(low_a=ENDS, high_a=ENDS),
)
def _(s, x, l, h, n, low_a, high_a):
    l, h = end(low_a, l), end(high_a, h)
    s.need(it_is_inside=inside(x, l, h))

    def power(value):
        result = value
        for _ in range(n - 1):
            result = result * value
        return result

    low, high = (None if bound is None else power(bound) for bound in (l, h))
    positive = IntVal(0) == 1 if l is None else l >= 0
    negative = IntVal(0) == 1 if h is None else h <= 0
    if n % 2:
        s.claim(inside(power(x), low, high))
        return
    s.claim(Implies(positive, inside(power(x), low, high)), Implies(negative, inside(power(x), high, low)))
    s.claim(power(x) >= 0)
    if low is not None and high is not None:
        s.claim(power(x) <= imax(low, high))
        s.wrong(as_if_odd=inside(power(x), low, high))


@law(
    "interval-quotient",
    "⌊a/b⌋ for b ≥ 1: a larger divisor brings the quotient towards 0 from above, and towards −1 from below",
    at="src/dim/bounds.rs: floor_over",
    forms=PAIR,
)
def _(s, x, y, l, h, m, n, low_a, high_a, low_b, high_b):
    l, h, m, n = end(low_a, l), end(high_a, h), end(low_b, m), end(high_b, n)
    s.need(first_is_inside=inside(x, l, h), second_is_inside=inside(y, m, n), divisor_is_positive=y >= 1)
    least = imax(m, 1) if m is not None else IntVal(1)
    quotient = s.floor(x, y)
    if l is not None:
        above = 0 if n is None else s.floor(l, imax(n, 1))
        s.claim(If(l >= 0, above, s.floor(l, least)) <= quotient)
        s.wrong(low_of_the_least_divisor=s.floor(l, least) <= quotient)
    if h is not None:
        below = -1 if n is None else s.floor(h, imax(n, 1))
        s.claim(quotient <= If(h < 0, below, s.floor(h, least)))


@law("interval-of-multiples", "multiples of f between l and h lie between f·⌈l/f⌉ and f·⌊h/f⌋", at="src/dim/bounds.rs: shrink_to_multiples")
def _(s, k, l, h, f):
    s.need(factor_is_positive=f >= 1, is_inside=And(l <= f * k, f * k <= h))
    up = s.floor(l + f - 1, f) * f
    s.claim(up <= f * k, f * k <= s.floor(h, f) * f, Implies(f >= 1, up >= l))


@law(
    "affine-root",
    "c·s + d ≥ 0 ⇔ s ≥ −⌊d/c⌋ for c > 0, and ⇔ s ≤ ⌊d/−c⌋ for c < 0",
    at="src/dim/bounds.rs: of_affine_root",
    forms=dict(sign=[1, -1]),
)
def _(s, x, c, d, sign):
    s.give(sign * c >= 1)
    holds = c * x + d >= 0
    q = s.floor(d, sign * c)
    s.claim(holds == (x >= -q if sign > 0 else x <= q))
    s.wrong(rounded_the_other_way=holds == (x >= s.floor(-d, c) if sign > 0 else x <= s.ceil(d, -c)))


@law(
    "interval-of-maximum",
    "max(a, b) lies between the larger low end and the larger high end",
    at="src/dim/prove.rs: compound_interval",
    forms=PAIR,
)
def _(s, x, y, l, h, m, n, low_a, high_a, low_b, high_b):
    l, h, m, n = end(low_a, l), end(high_a, h), end(low_b, m), end(high_b, n)
    s.need(first_is_inside=inside(x, l, h), second_is_inside=inside(y, m, n))
    lows = [bound for bound in (l, m) if bound is not None]
    high = None if h is None or n is None else imax(h, n)
    s.claim(inside(imax(x, y), imax(*lows) if lows else None, high))
    if l is not None and m is not None:
        s.wrong(bounded_by_the_smaller_high=imax(x, y) <= (imin(h, n) if h is not None and n is not None else imin(l, m)))


@law(
    "interval-intersection",
    "what lies in two intervals lies between the larger low end and the smaller high end",
    at="src/dim/bounds.rs: intersect",
    forms=PAIR,
)
def _(s, x, l, h, m, n, low_a, high_a, low_b, high_b):
    l, h, m, n = end(low_a, l), end(high_a, h), end(low_b, m), end(high_b, n)
    s.need(in_the_first=inside(x, l, h), in_the_second=inside(x, m, n))
    lows = [bound for bound in (l, m) if bound is not None]
    highs = [bound for bound in (h, n) if bound is not None]
    s.claim(inside(x, imax(*lows) if lows else None, imin(*highs) if highs else None))


@law(
    "broadcast-beside-fixed",
    "of two dims that are broadcast one is 1, or both are equal: beside k ≥ 2 a dim is at least 1 and at most k",
    at="src/ops/needs.rs: broadcast_limits",
)
def _(s, d, k):
    s.give(d >= 0, Or(d == k, d == 1, k == 1))
    s.need(the_fixed_dim_is_not_1_or_0=k >= 2)
    s.claim(1 <= d, d <= k)


@law("broadcast-beside-cut", "beside min(d, k) with k ≥ 2 a dim d is at most k", at="src/ops/needs.rs: broadcast_limits")
def _(s, d, k):
    cut = imin(d, k)
    s.give(d >= 0, Or(d == cut, d == 1, cut == 1))
    s.need(what_is_cut_at_is_not_1=k >= 2)
    s.claim(d <= k)


@law(
    "positions-looked-up",
    "the last of positions offset + step·i that are looked up among n entries is less than n, and the first is at least −n",
    at="src/ops/movement/moves.rs: looked_up",
    forms=dict(sign=[1, -1]),
)
def _(s, n, offset, step, d, others, rows, sign):
    reach = step * (d - 1)
    low, high = (offset, offset + reach) if sign > 0 else (offset + reach, offset)
    is_inside = [And(-n <= index, index < n) for index in (offset, offset + reach)]
    s.give(n >= 0, d >= 0, others >= 0, rows >= 0)
    # Both ends are positions, in either order. A successful run has checked that each is in range, if the data is not empty along its other
    # axes.
    s.give(Implies(And(d >= 1, others >= 1, rows >= 1), And(*is_inside)))
    s.need(positions_are_there=And(d >= 1, others >= 1), entries_are_there=rows >= 1)
    s.claim(n - high >= 1, n + low >= 0)
