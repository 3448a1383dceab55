"""Maxima and minima in canonical form: src/dim/maximum.rs, src/dim/arith.rs and src/dim/meet.rs."""

from z3 import And, If, Implies, Or

from law import imax, imin, law


@law("maximum-of-two", "max(a, b) = a + g·max(0, d) with b − a = g·d for g ≥ 1", at="src/dim/maximum.rs: largest_anew")
def _(s, a, b, g, d):
    s.need(difference=b - a == g * d, factor_is_positive=g >= 1)
    s.claim(imax(a, b) == a + g * imax(0, d))
    s.wrong(base_is_the_other=imax(a, b) == b + g * imax(0, d))


@law("maximum-either-way", "max(a, b) = a + max(0, b − a) = b + max(0, a − b)", at="src/dim/maximum.rs: oriented")
def _(s, a, b):
    s.claim(imax(a, b) == a + imax(0, b - a), imax(a, b) == b + imax(0, a - b))


@law("maximum-shifts", "max(x + c, y + c, z + c) = c + max(x, y, z)", at="src/dim/maximum.rs: common_part")
def _(s, x, y, z, c):
    s.claim(imax(x + c, y + c, z + c) == c + imax(x, y, z))


@law(
    "maximum-takes-out-factor", "max(g·x, g·y) = g·max(x, y) for g ≥ 0, and a member 0 is 0 again", at="src/dim/maximum.rs: take_out_factor"
)
def _(s, x, y, g):
    s.need(factor_is_not_negative=g >= 0)
    s.claim(imax(g * x, g * y) == g * imax(x, y), imax(0, g * y) == g * imax(0, y))


@law("maximum-in-maximum", "max(a, y + c·max(m, n)) = max(a, y + c·m, y + c·n) for c > 0", at="src/dim/maximum.rs: open_nested")
def _(s, a, y, c, m, n):
    s.need(coefficient_is_positive=c >= 0)
    s.claim(imax(a, y + c * imax(m, n)) == imax(a, y + c * m, y + c * n))


@law("maximum-drops-what-is-reached", "max(a, b) = a where a ≥ b", at="src/dim/maximum.rs: without_dominated")
def _(s, a, b):
    s.need(reached=a - b >= 0)
    s.claim(imax(a, b) == a)


@law("maximum-opens-clamp", "max(0, max(0, x) − c) = max(0, x − c) for c ≥ 0", at="src/dim/maximum.rs: opens_well")
def _(s, x, c):
    s.need(taken_away=c >= 0)
    s.claim(imax(0, imax(0, x) - c) == imax(0, x - c))


@law("minimum-by-maximum", "min(a, b) = −max(−a, −b), and max(a, b) + min(a, b) = a + b", at="src/dim/arith.rs: try_min_of")
def _(s, a, b):
    s.claim(imin(a, b) == -imax(-a, -b), imax(a, b) + imin(a, b) == a + b)


@law("absolute-value", "|a| = max(a, −a)", at="src/dim/arith.rs: try_abs")
def _(s, a):
    s.claim(imax(a, -a) == If(a >= 0, a, -a))


def broadcasts(a, b):
    return Or(a == b, a == 1, b == 1)


def broadcast(a, b):
    return If(a == 1, b, a)


@law("meet-of-two", "dims that broadcast come to max(a, b)·min(1, a, b)", at="src/dim/meet.rs: meet")
def _(s, a, b):
    s.need(they_are_sizes=And(a >= 0, b >= 0), they_broadcast=broadcasts(a, b))
    s.claim(imax(a, b) * imin(1, a, b) == broadcast(a, b))
    s.wrong(the_larger=imax(a, b) == broadcast(a, b))


@law("meet-of-many", "dims that broadcast one after the other come to max(a, b, c, d)·min(1, a, b, c, d)", at="src/dim/meet.rs: parts_of")
def _(s, a, b, c, d):
    s.give(a >= 0, b >= 0, c >= 0, d >= 0)
    ab, cd = broadcast(a, b), broadcast(c, d)
    s.need(first_pair=broadcasts(a, b), second_pair=broadcasts(c, d), the_results=broadcasts(ab, cd))
    s.claim(imax(a, b, c, d) * imin(1, a, b, c, d) == broadcast(ab, cd))


@law(
    "meet-that-is-one-of-them",
    "where max(a, b, c)·min(1, a, b, c) = a, a and b broadcast to a if they do: a is not 1, or b is",
    at="src/dim/meet.rs: assume_met",
)
def _(s, a, b, c):
    s.need(the_result_is_a=imax(a, b, c) * imin(1, a, b, c) == a)
    s.claim(broadcast(a, b) == a)
    s.wrong(they_are_equal=a == b)


@law("meet-leaves-out-ones", "a dim 1 among dims that broadcast changes nothing", at="src/dim/meet.rs: meet")
def _(s, a, b):
    s.claim(broadcast(broadcast(a, 1), b) == broadcast(a, b), broadcast(1, b) == b)


@law(
    "meet-with-covered",
    "a size S and a size v(S) broadcast to S if v ≥ 1 where S = 1, and there v ≤ 1, or v ≤ S",
    at="src/dim/meet.rs: covers",
)
def _(s, size, v, at_one, result):
    s.give(
        size >= 0,
        v >= 0,
        Implies(size == 1, v == at_one),
        Or(And(size == 1, result == v), And(v == 1, result == size), And(size == v, result == v)),
    )
    s.need(is_there_at_one=at_one >= 1, is_no_more=Or(at_one <= 1, v <= size))
    s.claim(result == size)
