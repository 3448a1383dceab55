"""Plans of size chains: src/passes/chains and src/dim/parts.rs.

A term is identified by its expression, so the law of the pass is that of `dim`: equal canonical forms are equal numbers. The laws of this
file translate an operation on terms to the operators of the standard.
"""

from z3 import And, Implies

from law import imax, imin, law


@law("way-of-quotient", "Div rounds towards zero, which is ⌊a/b⌋ for a ≥ 0 and b ≥ 1", at="src/dim/parts.rs: gives")
def _(s, a, b, q, r):
    # The quotient of C.
    s.give(a == b * q + r, Implies(a >= 0, r >= 0), Implies(a <= 0, r <= 0), b >= 1, -b < r, r < b)
    s.need(dividend_is_not_negative=a >= 0)
    s.claim(q == s.floor(a, b))


@law("way-of-remainder", "Mod has the sign of the divisor, which is a − b·⌊a/b⌋ for b ≥ 1", at="src/dim/parts.rs: gives")
def _(s, a, b, q, r):
    # The remainder of Python.
    s.give(a == b * q + r, b >= 1)
    s.need(has_the_sign_of_the_divisor=And(0 <= r, r < b))
    s.claim(r == a - b * s.floor(a, b))


@law("way-of-quotient-and-offset", "⌊n/d⌋ + k = ⌊(n + k·d)/d⌋", at="src/dim/parts.rs: atom_parts")
def _(s, n, k, d):
    s.need(divisor_is_positive=d >= 1)
    s.claim(s.floor(n, d) + k == s.floor(n + k * d, d))


@law(
    "way-of-missing-to-multiple",
    "d·⌊(m + d − 1)/d⌋ − m = (d − 1)·m mod d: what m misses to a multiple of d",
    at="src/dim/parts.rs: next_multiple",
)
def _(s, m, c, d):
    # c is the ceiling of m / d, which that floor computes (`ceil-by-floor`).
    s.give(d >= 1)
    s.need(reaches=d * c >= m, is_the_next=d * c < m + d)
    missing = d * c - m
    s.claim(0 <= missing, missing < d, (d - 1) * m - missing == d * (m - c))


@law("way-that-does-nothing", "a term is itself + 0, − 0, · 1 and / 1", at="src/passes/chains/operations.rs: neutral")
def _(s, x, q, r):
    s.give(x == q * 1 + r, -1 < r, r < 1)
    s.claim(x + 0 == x, x - 0 == x, x * 1 == x, q == x)


@law("way-of-small-remainder", "t mod d = t for 0 ≤ t < d", at="src/passes/chains/operations.rs: neutral")
def _(s, t, d):
    s.need(not_negative=t >= 0, below_the_divisor=t < d)
    s.give(d >= 1)
    s.claim(t - d * s.floor(t, d) == t)


@law(
    "way-of-reduction",
    "the least, largest, sum and product of a row are those of its first and of the least, largest, sum and product of the rest",
    at="src/passes/chains/terms.rs: reduction",
)
def _(s, x, y, z):
    s.claim(imin(x, y, z) == imin(x, imin(y, z)), imax(x, y, z) == imax(x, imax(y, z)), x + y + z == x + (y + z), x * y * z == x * (y * z))


@law(
    "reshape-said-otherwise",
    "in a target that gives [d₀, d₁], 0 may stand for d₀ where the operand has it, and −1 for d₁ where d₀ ≥ 1",
    at="src/passes/chains/conventions.rs: reshape_codes",
)
def _(s, own, d0, d1, size):
    s.give(d0 >= 0, d1 >= 0, size == d0 * d1)
    s.need(is_kept=own == d0, other_is_not_zero=d0 >= 1)
    s.claim(own == d0, s.floor(size, d0) == d1, size - d0 * s.floor(size, d0) == 0)


@law(
    "rest-said-elsewhere",
    "−1 may stand for the number n beside sizes whose product is p where another Reshape says −1 beside sizes whose product is p: it ends only if p is not 0",
    at="src/passes/chains/rests.rs: shared_rests",
)
def _(s, n, p, size):
    s.give(n >= 1, p >= 0, size == n * p)
    s.need(the_other_ends=p != 0)
    s.claim(s.floor(size, p) == n, size - p * s.floor(size, p) == 0)
