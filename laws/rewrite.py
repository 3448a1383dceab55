"""Arithmetic and sizes that rewrite rules rely on. If a law holds for all integers, both sides wrap equally, because wrapping preserves
sums, differences and products. A law that needs other operations says so.
"""

from z3 import And, If, Implies, Or

from law import imax, imin, law


@law("neutral-numbers", "x + 0 = x, x − 0 = x, x·1 = x, x / 1 = x, f ∧ 1 = f, f ∨ 0 = f", at="src/rewrite/neutral.rs: neutral")
def _(s, x, q, r, flag):
    # C's quotient by 1: x = q + r with |r| < 1.
    s.give(x == q + r, -1 < r, r < 1, 0 <= flag, flag <= 1)
    s.claim(x + 0 == x, x - 0 == x, x * 1 == x, q == x)
    s.claim(imin(flag, 1) == flag, imax(flag, 0) == flag)
    s.wrong(zero_less_x=0 - x == x)


@law("decided-selection", "Where(true, x, y) = x, Where(false, x, y) = y, Where(c, x, x) = x", at="src/rewrite/neutral.rs: decided_where")
def _(s, c, x, y):
    select = lambda flag, yes, no: If(flag != 0, yes, no)
    s.claim(select(c, x, x) == x, Implies(c == 1, select(c, x, y) == x), Implies(c == 0, select(c, x, y) == y))


@law(
    "expand-by-ones",
    "a size 1 asked of Expand leaves the operand's size: broadcast(d, 1) = d, and broadcast(d, e) = d where that is so",
    at="src/rewrite/identity.rs: same_shape",
)
def _(s, d, e, result):
    s.give(d >= 0, e >= 0, Or(And(d == 1, result == e), And(e == 1, result == d), And(d == e, result == d)))
    s.need(result_is_the_operand=result == d)
    s.claim(If(d == 1, 1, d) == result)


@law(
    "selections-joined",
    "Concat(x[i₀ …], x[j₀ …]) = x[i₀ … j₀ …]: place p is p of the first, or p − n of the second",
    at="src/index_map/join.rs: of_pieces",
)
def _(s, start, step, n, other, by, m, p):
    s.give(n >= 1, m >= 1, 0 <= p, p < n + m)
    # The indices of both, concatenated, as the new Gather reads them.
    listed = If(p < n, start + step * p, other + by * (p - n))
    piece = If(p < n, 0, 1)
    local = p - If(piece == 0, 0, n)
    s.claim(listed == If(piece == 0, start + step * local, other + by * local), 0 <= local, local < If(piece == 0, n, m))


@law(
    "repeats-are-lookups",
    "place j of n places that each stand g times in a row is place ⌊j/g⌋ of them; of g rows of n places it is j mod n",
    at="src/rewrite/index/repeated.rs: lookup",
)
def _(s, p, i, t, n, g):
    s.give(0 <= p, 0 <= i, 0 <= t)
    s.need(place_is_inside=i < n, repeat_is_inside=t < g)
    # Element [p, i, t] of [p, n, g], and element [p, t, i] of [p, g, n], laid out as [p, n·g].
    in_a_row, again = i * g + t, t * n + i
    s.claim((p * n + i) * g + t == p * (n * g) + in_a_row, s.floor(in_a_row, g) == i)
    s.claim((p * g + t) * n + i == p * (g * n) + again, again - n * s.floor(again, n) == i)


@law("rows-of-rows", "row b·S + q of x flattened to [B·S, K] is row (b, q) of x", at="src/rewrite/lift.rs: product_of_rows")
def _(s, b, q, rows, k, width):
    s.give(0 <= q, q < rows, 0 <= b, 0 <= k, k < width)
    # Position (b, q, k) of x and position (b·S + q, k) of the matrix, in row-major order.
    s.claim((b * rows + q) * width + k == b * rows * width + q * width + k)


# Digits and exponents of the floats: a wider type represents every number of a narrower one.
