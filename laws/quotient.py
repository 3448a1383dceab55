"""Divisions and remainders in canonical form: src/dim/quotient.rs, and the divisions of src/dim/arith.rs and src/dim/expr.rs.

Polynomials are integers here: an atom or a monomial is any integer, and a law about a sum is a law about its value.
"""

from z3 import And, If, Implies, Or

from law import imax, imin, law


@law("floor-of-negated", "⌊a/b⌋ = ⌊−a/−b⌋", at="src/dim/quotient.rs: try_floor_div")
def _(s, a, b, q):
    # The quotient of a by a negative b, by its definition.
    s.need(divisor_is_negative=b <= -1)
    s.give(Or(b == 0, b * q >= a), Or(b == 0, b * q < a - b))
    s.claim(s.floor(-a, -b) == q)


@law(
    "floor-takes-out-multiples",
    "⌊(b·x + y)/b⌋ = x + ⌊y/b⌋: every coefficient ends up in 0 .. b",
    at="src/dim/quotient.rs: split_by_divisor",
)
def _(s, x, y, b):
    s.need(divisor_is_positive=b >= 1)
    s.claim(s.floor(b * x + y, b) == x + s.floor(y, b))


@law(
    "floor-drops-what-never-carries",
    "⌊(g·y + r)/(g·b)⌋ = ⌊g·y/(g·b)⌋ for 0 ≤ r < g: what is below the common step of all terms never carries",
    at="src/dim/quotient.rs: floor_by_const",
)
def _(s, q, rest, r, g, b):
    # y by Euclidean division.
    s.give(g >= 1, b >= 1, 0 <= rest, rest < b)
    s.need(is_not_negative=r >= 0, is_below_the_step=r < g)
    y = b * q + rest
    s.claim(s.floor(g * y + r, g * b) == q, s.floor(g * y, g * b) == q)


@law("floor-of-remainder-is-zero", "⌊r/b⌋ = 0 for 0 ≤ r < b", at="src/dim/quotient.rs: floor_by_dim")
def _(s, r, b):
    s.need(not_negative=r >= 0, below_the_divisor=b - r >= 1)
    s.claim(s.floor(r, b) == 0)


@law("floor-of-small-negative", "⌊r/b⌋ = −1 for −b ≤ r < 0", at="src/dim/quotient.rs: floor_by_dim")
def _(s, r, b):
    s.need(negative=-r >= 1, above_the_negated_divisor=b + r >= 0)
    s.claim(s.floor(r, b) == -1)


@law("floor-by-polynomial", "⌊(q·b + r)/b⌋ = q + ⌊r/b⌋ for b ≥ 1", at="src/dim/quotient.rs: floor_by_dim")
def _(s, q, r, b):
    s.need(divisor_is_positive=b >= 1)
    s.claim(s.floor(q * b + r, b) == q + s.floor(r, b))


@law("floor-of-floor", "⌊(⌊x/c⌋ + y)/b⌋ = ⌊(x + c·y)/(c·b)⌋", at="src/dim/quotient.rs: merge_nested")
def _(s, x, y, b, c):
    s.need(outer_divisor_is_positive=b >= 1, inner_divisor_is_positive=c >= 1)
    s.claim(s.floor(s.floor(x, c) + y, b) == s.floor(x + c * y, c * b))
    s.wrong(inner_sum_not_scaled=s.floor(s.floor(x, c) + y, b) == s.floor(x + y, c * b))
    s.wrong(with_a_coefficient=s.floor(2 * s.floor(x, c) + y, b) == s.floor(2 * x + c * y, c * b))


@law(
    "floor-of-exact-floor",
    "⌊(n·⌊S/m⌋ + y)/b⌋ = ⌊(n·S + m·y)/(m·b)⌋ where m divides S, whatever n is",
    at="src/dim/quotient.rs: merge_exact",
)
def _(s, part, n, y, b, m, size):
    s.give(b >= 1, m >= 1)
    s.need(symbol_is_a_multiple=size == m * part)
    s.claim(s.floor(n * s.floor(size, m) + y, b) == s.floor(n * size + m * y, m * b))


@law(
    "floor-of-multiple",
    "for S = m·p and g = gcd(b, m): ⌊(q·(b/g)·n·S + y)/b⌋ = q·(m/g)·n·⌊S/m⌋ + ⌊y/b⌋",
    at="src/dim/quotient.rs: split_by_divisor",
)
def _(s, part, n, q, y, g, period, share, size):
    # b = g·period and m = g·share.
    s.give(g >= 1, period >= 1, share >= 1)
    b, m = g * period, g * share
    s.need(symbol_is_a_multiple=size == m * part)
    s.claim(s.floor(q * period * n * size + y, b) == q * share * n * part + s.floor(y, b), s.floor(size, m) == part)


@law(
    "floor-cancels-common-factor",
    "⌊g·x/(g·y)⌋ = ⌊x/y⌋ for g·y ≥ 1 and y ≥ 1; for y ≤ −1 it is ⌊−x/−y⌋",
    at="src/dim/quotient.rs: cancel_common",
    forms=dict(sign=[1, -1]),
)
def _(s, x, y, g, sign):
    s.give(g * y >= 1)
    s.need(quotient_has_this_sign=sign * y >= 1)
    s.claim(s.floor(g * x, g * y) == s.floor(sign * x, sign * y))


@law("floor-cancels-content", "⌊(g·x + c)/(g·y)⌋ = ⌊(x + ⌊c/g⌋)/y⌋ for g ≥ 1 and y ≥ 1", at="src/dim/quotient.rs: cancel_common")
def _(s, x, y, c, g):
    s.need(factor_is_positive=g >= 1, divisor_is_positive=y >= 1)
    s.claim(s.floor(g * x + c, g * y) == s.floor(x + s.floor(c, g), y))


@law(
    "floor-of-maximum",
    "⌊(a + c·max(m, n))/b⌋ = max of ⌊(a + c·m)/b⌋ and ⌊(a + c·n)/b⌋ for c > 0, the least of them for c < 0",
    at="src/dim/quotient.rs: push_into_maximum",
    forms=dict(sign=[1, -1]),
)
def _(s, a, c, m, n, b, sign):
    s.give(b >= 1)
    s.need(coefficient_has_this_sign=sign * c >= 1)
    best = imax if sign > 0 else imin
    s.claim(s.floor(a + c * imax(m, n), b) == best(s.floor(a + c * m, b), s.floor(a + c * n, b)))


@law("clamp-of-clamp", "max(0, g) = max(0, max(0, f) − (f − g)) where f ≥ g", at="src/dim/quotient.rs: clamp_of_clamp")
def _(s, f, g):
    s.need(outer_is_larger=f >= g)
    s.claim(imax(0, g) == imax(0, imax(0, f) - (f - g)))


@law(
    "clamp-of-clamp-in-sum",
    "rest + c·max(0, g), with max(0, f) in rest: the options are rest and rest + c·(max(0, f) − (f − g))",
    at="src/dim/quotient.rs: clamp_of_clamp",
    forms=dict(sign=[1, -1]),
)
def _(s, rest, c, f, g, b, sign):
    s.give(b >= 1)
    s.need(outer_is_larger=f >= g, coefficient_has_this_sign=sign * c >= 1)
    best = imax if sign > 0 else imin
    options = [rest, rest + c * (imax(0, f) - (f - g))]
    s.claim(s.floor(rest + c * imax(0, g), b) == best(*[s.floor(option, b) for option in options]))


@law("ceiling-in-one-form", "⌊a/b⌋ = −⌊(b − 1 − a)/b⌋ for b > 0", at="src/dim/quotient.rs: turned_ceiling")
def _(s, a, b):
    s.need(divisor_is_positive=b >= 1)
    s.claim(s.floor(a, b) == -s.floor(b - 1 - a, b))
    s.wrong(floor_for_ceiling=s.floor(a, b) == -s.floor(-a, b))


@law("floor-of-one-value", "⌊a/b⌋ is the one value that both ends of a's interval have", at="src/dim/quotient.rs: constant_quotient")
def _(s, a, low, high, b):
    s.give(b >= 1)
    s.need(above_low=low <= a, below_high=a <= high, ends_agree=s.floor(low, b) == s.floor(high, b))
    s.claim(s.floor(a, b) == s.floor(low, b))


@law("split-multiple", "c·n·⌊S/m⌋ = (c div m)·n·S + (c mod m)·n·⌊S/m⌋ where m divides S", at="src/dim/arith.rs: split_multiple")
def _(s, c, n, m, part, size):
    s.give(m >= 1)
    s.need(symbol_is_a_multiple=size == m * part)
    whole = s.floor(c, m)
    quotient = s.floor(size, m)
    s.claim(c * n * quotient == whole * n * size + (c - m * whole) * n * quotient)


@law(
    "expand-multiple", "S = m·⌊S/m⌋, and ⌊S/k⌋ = (m/k)·⌊S/m⌋ for a k that divides m, where m divides S", at="src/dim/arith.rs: expand_atom"
)
def _(s, k, times, m, part, size):
    s.give(k >= 1, times >= 1)
    s.need(divisor_divides=m == k * times, symbol_is_a_multiple=size == m * part)
    s.claim(size == m * s.floor(size, m), s.floor(size, k) == times * s.floor(size, m))


@law("ceil-by-floor", "⌈a/b⌉ = ⌊(a + b − 1)/b⌋ for b > 0, and ⌈a/b⌉ = ⌈−a/−b⌉", at="src/dim/arith.rs: try_ceil_div")
def _(s, a, b, q):
    # q is the ceiling of a / b: b·(q − 1) < a ≤ b·q for b > 0.
    s.give(b >= 1, b * q >= a, b * q < a + b)
    s.claim(s.floor(a + b - 1, b) == q)
    s.wrong(one_too_many=s.floor(a + b, b) == q)


@law("ceil-of-negated", "⌈a/b⌉ = ⌈−a/−b⌉", at="src/dim/arith.rs: try_ceil_div")
def _(s, a, b, q):
    # q is the ceiling of a / b: the least integer with q ≥ a / b, so b·q ≤ a < b·(q − 1) for b < 0.
    s.give(b * q <= a, a < b * q - b)
    s.claim(s.ceil(-a, -b) == q)
    s.wrong(floor_for_ceiling=s.floor(-a, -b) == q)


@law(
    "modulo-in-range",
    "0 ≤ a − b·⌊a/b⌋ < b for b > 0, and b < a − b·⌊a/b⌋ ≤ 0 for b < 0",
    at="src/dim/arith.rs: try_modulo",
    forms=dict(sign=[1, -1]),
)
def _(s, a, b, sign):
    s.need(divisor_has_this_sign=sign * b >= 1)
    rest = a - b * s.floor(sign * a, sign * b)
    s.claim(And(0 <= rest, rest < b) if sign > 0 else And(b < rest, rest <= 0))


@law("truncated-quotient", "a / b rounded towards zero = ⌊max(a, 0)/b⌋ − ⌊max(−a, 0)/b⌋ for b > 0", at="src/dim/arith.rs: try_trunc_div")
def _(s, a, b):
    s.need(divisor_is_positive=b >= 1)
    towards_zero = If(a >= 0, s.floor(a, b), -s.floor(-a, b))
    s.claim(s.floor(imax(a, 0), b) - s.floor(imax(-a, 0), b) == towards_zero)
    s.wrong(rounded_down=s.floor(a, b) == towards_zero)


@law("truncated-to-zero", "a / b rounded towards zero = 0 for −b < a < b", at="src/dim/arith.rs: try_trunc_div")
def _(s, a, b):
    s.need(not_too_small=b - 1 + a >= 0, not_too_large=b - 1 - a >= 0)
    s.claim(If(a >= 0, s.floor(a, b), -s.floor(-a, b)) == 0)


@law("truncated-by-negative", "trunc(a/b) = trunc(−a/−b)", at="src/dim/arith.rs: try_trunc_div")
def _(s, a, b, q, r):
    # C's division: a = b·q + r, |r| < |b|, and r has the sign of a.
    s.need(remainder_is_small=And(r > b, r < -b), remainder_has_the_sign=a * r >= 0)
    s.give(a == b * q + r)
    s.claim(If(-a >= 0, s.floor(-a, -b), -s.floor(a, -b)) == q)


@law("exact-quotient", "if a − b·⌊a/b⌋ is proved to be 0, a = b·⌊a/b⌋", at="src/dim/arith.rs: exact_div")
def _(s, a, b):
    q = s.floor(a, b)
    rest = a - b * q
    s.give(b >= 1)
    s.need(nothing_is_left=-rest >= 0)
    s.claim(a == b * q, rest >= 0)


@law("polynomial-quotient", "a = q·b as polynomials gives a / b wherever b is not zero; where it is, a is", at="src/dim/arith.rs: quotient")
def _(s, a, b, q):
    s.need(is_a_product=a == q * b)
    s.claim(Implies(b == 0, a == 0), Implies(b >= 1, s.floor(a, b) == q), Implies(b <= -1, s.floor(-a, -b) == q))


@law(
    "product-with-switch",
    "p·z for z = max(0, 1 − q), which is 1 where q = 0 and else 0: of p only its value at q = 0 counts",
    at="src/dim/arith.rs: times_switch",
)
def _(s, p, there, q, c, d):
    s.need(not_negative=q >= 0)
    s.give(Implies(q == 0, p == there))
    z = imax(0, 1 - q)
    s.claim(z == If(q == 0, 1, 0), z == 1 - q + imax(0, q - 1), p * (c * z + d) == c * there * z + d * p)
    s.wrong(value_where_q_is_one=Implies(q <= 1, p * z == there))


@law("decided-maximum", "f·max(0, d) = f·d if f ≥ 0 and d ≥ f − 1", at="src/dim/arith.rs: decide_maxima")
def _(s, f, d):
    s.need(not_negative=f >= 0, reaches_the_factor=d >= f - 1)
    s.claim(f * imax(0, d) == f * d)


@law("switch-of-sum", "a sum of atoms ≥ 0 with coefficients ≥ 1 is 0 only where each of the atoms is", at="src/dim/arith.rs: times_switch")
def _(s, x, y, c, d):
    s.need(first_is_not_negative=x >= 0, second_is_not_negative=y >= 0, first_coefficient=c >= 1, second_coefficient=d >= 1)
    s.claim((c * x + d * y == 0) == And(x == 0, y == 0))


@law(
    "divides",
    "b divides a iff a − b·⌊a/b⌋ = 0, and a polynomial multiple of b is a multiple of it even where b is 0",
    at="src/dim/ask.rs: divides",
)
def _(s, a, b, k):
    s.give(b >= 1)
    s.claim(Implies(a == k * b, a - b * s.floor(a, b) == 0), Implies(a - b * s.floor(a, b) == 0, a == s.floor(a, b) * b))


@law(
    "never-zero-off-the-lattice", "a sum of multiples of g and an offset c that g does not divide is never 0", at="src/dim/ask.rs: is_zero"
)
def _(s, x, g, c):
    s.give(g >= 1)
    s.need(offset_is_no_multiple=c - g * s.floor(c, g) != 0)
    s.claim(g * x + c != 0)


@law(
    "polynomial-division",
    "a = q·b + r stays true when a multiple m of b goes from r to q: a = (q + m)·b + (r − m·b)",
    at="src/dim/expr/polynomial.rs: divide",
)
def _(s, a, b, q, r, m):
    s.need(division_so_far=a == q * b + r)
    s.claim(a == (q + m) * b + (r - m * b))


@law("content-and-offset", "a = c·p + k with p of content 1: a ≥ g ⇔ c·p ≥ g − k", at="src/dim/expr/polynomial.rs: primitive")
def _(s, a, c, p, k, g):
    s.need(is_written_so=a == c * p + k)
    s.claim((a >= g) == (c * p >= g - k))
