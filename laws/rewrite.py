"""Arithmetic, cuts, sizes and types that rewrite rules rest on. Integers wrap alike on both sides of a law that holds for all of them,
for wrapping keeps sums, differences and products; where a law needs more than those it says so.
"""

import itertools
import pathlib
import re

from z3 import And, If, Implies, Not, Or

from law import exhaustive, imax, imin, law

ROOT = pathlib.Path(__file__).resolve().parent.parent


@law(
    "constant-sums",
    "±(±x + a) ± b = ±x + (±a ± b), by the signs that the two steps give x and their constants",
    at="src/rewrite/fuse/chain.rs: whole",
    forms=dict(first=["+", "-", "from"], second=["+", "-", "from"]),
)
def _(s, x, a, b, first, second):
    step = lambda value, kind, constant: {"+": value + constant, "-": value - constant, "from": constant - value}[kind]
    twice = step(step(x, first, a), second, b)
    negates = [kind == "from" for kind in (first, second)]
    inverse = [kind == "-" for kind in (first, second)]
    signed = lambda value, negative: -value if negative else value
    combined = signed(a, inverse[0] != negates[1]) + signed(b, inverse[1])
    s.claim(twice == (combined - x if negates[0] != negates[1] else x + combined))
    if second == "from":
        s.wrong(first_constant_keeps_its_sign=twice == signed(a, inverse[0]) + signed(b, inverse[1]) + (-x if not negates[0] else x))


@law("constant-products", "(x·a)·b = x·(a·b)", at="src/rewrite/fuse/chain.rs: whole")
def _(s, x, a, b):
    s.claim((x * a) * b == x * (a * b))


@law("neutral-numbers", "x + 0 = x, x − 0 = x, x·1 = x, x / 1 = x, f ∧ 1 = f, f ∨ 0 = f", at="src/rewrite/neutral.rs: neutral")
def _(s, x, q, r, flag):
    # C's quotient by 1: x = q + r with |r| < 1.
    s.give(x == q + r, -1 < r, r < 1, 0 <= flag, flag <= 1)
    s.claim(x + 0 == x, x - 0 == x, x * 1 == x, q == x)
    s.claim(imin(flag, 1) == flag, imax(flag, 0) == flag)
    s.wrong(zero_less_x=0 - x == x)


@law("double-negation", "−−x = x, and ¬¬x = x", at="src/rewrite/neutral.rs: double")
def _(s, x, flag):
    s.give(Or(flag == 0, flag == 1))
    s.claim(-(-x) == x, 1 - (1 - flag) == flag)


@law("negated-difference", "−(a − b) = b − a", at="src/rewrite/neutral.rs: negated_difference")
def _(s, a, b):
    s.claim(-(a - b) == b - a)


@law("negated-comparison", "¬(a < b) = a ≥ b, ¬(a ≤ b) = a > b, of integers", at="src/rewrite/neutral.rs: negated_comparison")
def _(s, a, b):
    s.claim(Not(a < b) == (a >= b), Not(a > b) == (a <= b), Not(a <= b) == (a > b), Not(a >= b) == (a < b))
    s.wrong(operands_change_sides=Not(a < b) == (b >= a))


@law(
    "twice-is-once",
    "|  |x|  | = |x|, sign(sign(x)) = sign(x), max(0, max(0, x)) = max(0, x); of integers ⌊x⌋ = ⌈x⌉ = x",
    at="src/rewrite/neutral.rs: idempotent",
)
def _(s, x):
    # The least number of a type, whose magnitude wraps to itself, is its own too.
    magnitude = lambda value: If(value >= 0, value, -value)
    sign = lambda value: If(value > 0, 1, If(value < 0, -1, 0))
    s.claim(magnitude(magnitude(x)) == magnitude(x), sign(sign(x)) == sign(x), imax(0, imax(0, x)) == imax(0, x))


@law(
    "cut-of-cut",
    "cut(cut(x, a, b), c, d) = cut(x, max(a, c), min(b, d)) where the intervals meet, in any total order",
    at="src/rewrite/fuse/clamp.rs: cut_of_cut",
)
def _(s, x, a, b, c, d):
    cut = lambda value, low, high: imin(imax(value, low), high)
    s.give(a <= b, c <= d)
    s.need(they_meet=imax(a, c) <= imin(b, d))
    s.claim(cut(cut(x, a, b), c, d) == cut(x, imax(a, c), imin(b, d)))


@law("needless-cut", "cut(x, a, b) = x where a ≤ x ≤ b", at="src/rewrite/fuse/clamp.rs: needless")
def _(s, x, a, b, low, high):
    s.give(low <= x, x <= high)
    s.need(low_is_inside=a <= low, high_is_inside=high <= b)
    s.claim(imin(imax(x, a), b) == x)


@law("decided-selection", "Where(true, x, y) = x, Where(false, x, y) = y, Where(c, x, x) = x", at="src/rewrite/neutral.rs: decided_where")
def _(s, c, x, y):
    select = lambda flag, yes, no: If(flag != 0, yes, no)
    s.claim(select(c, x, x) == x, Implies(c == 1, select(c, x, y) == x), Implies(c == 0, select(c, x, y) == y))


@law(
    "expand-by-ones",
    "a size 1 asked of Expand leaves the operand's size: broadcast(d, 1) = d, and broadcast(d, e) = d where that is so",
    at="src/rewrite/sizes.rs: expand",
)
def _(s, d, e, result):
    s.give(d >= 0, e >= 0, Or(And(d == 1, result == e), And(e == 1, result == d), And(d == e, result == d)))
    s.need(result_is_the_operand=result == d)
    s.claim(If(d == 1, 1, d) == result)


@law("tile-counts", "d·r = e gives r = e/d for d > 0, and r = 1 for e = d", at="src/rewrite/sizes.rs: tile")
def _(s, d, r, e):
    s.give(d * r == e, d >= 0, r >= 0)
    s.need(operand_has_elements=d > 0)
    s.claim(s.floor(e, d) == r, Implies(e == d, r == 1))


@law("tile-of-nothing", "0·r = 0·1 whatever r is", at="src/rewrite/sizes.rs: tile")
def _(s, r):
    s.claim(0 * r == 0 * 1)


@law("resize-by-factor", "⌊k·d⌋ = k·d, and k·d / d = k for d > 0", at="src/rewrite/sizes.rs: resize")
def _(s, k, d):
    s.need(axis_has_elements=d > 0)
    s.claim(s.floor(k * d, d) == k)


@law(
    "selections-joined",
    "Concat(x[i₀ …], x[j₀ …]) = x[i₀ … j₀ …]: place p is p of the first, or p − n of the second",
    at="src/rewrite/slices/select.rs: selections",
)
def _(s, start, step, n, other, by, m, p):
    s.give(n >= 1, m >= 1, 0 <= p, p < n + m)
    # The indices of both, one after the other, as the new Gather reads them.
    listed = If(p < n, start + step * p, other + by * (p - n))
    piece = If(p < n, 0, 1)
    local = p - If(piece == 0, 0, n)
    s.claim(listed == If(piece == 0, start + step * local, other + by * local), 0 <= local, local < If(piece == 0, n, m))


@law(
    "gathers-are-split",
    "elements i₀ < i₁ < … of an axis and the gaps between them add up to the axis",
    at="src/rewrite/slices/select.rs: gathers",
)
def _(s, d, first, second):
    s.need(in_order=first < second, first_is_inside=0 <= first, last_is_inside=second < d)
    sizes = [first, 1, second - (first + 1), 1, d - (second + 1)]
    s.claim(*[size >= 0 for size in sizes], sum(sizes) == d, sizes[0] + 1 + sizes[2] == second)


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


@law("position-digits", "index i of a tensor [m, n] is (⌊i/n⌋, i mod n)", at="src/rewrite/index/positions.rs: written")
def _(s, i, m, n):
    s.give(0 <= i, i < m * n, m >= 1, n >= 1)
    along = i - n * s.floor(i, n)
    s.claim(s.floor(i, n) * n + along == i, 0 <= along, along < n, 0 <= s.floor(i, n), s.floor(i, n) < m)


@law(
    "remainder-of-repeated",
    "index p of n rows of k elements, counted from the end where p < 0, is element p mod k of its row",
    at="src/rewrite/index/periodic.rs: by_remainder",
)
def _(s, p, n, k):
    s.give(0 <= n, k >= 1, -n * k <= p, p < n * k)
    quotient = s.floor(p, k)
    along = p - k * quotient
    # A whole number of rows further on, the remainder is the same.
    row = quotient + If(p < 0, n, 0)
    place = p + If(p < 0, n * k, 0)
    s.claim(0 <= along, along < k, 0 <= row, row < n, row * k + along == place)
    s.wrong(from_the_start=row * k + along == p)


@law("rows-of-rows", "row b·S + q of x flattened to [B·S, K] is row (b, q) of x", at="src/rewrite/lift.rs: product_of_rows")
def _(s, b, q, rows, k, width):
    s.give(0 <= q, q < rows, 0 <= b, 0 <= k, k < width)
    # Place (b, q, k) of x and place (b·S + q, k) of the matrix in row-major order.
    s.claim((b * rows + q) * width + k == b * rows * width + q * width + k)


def widths():
    """Which integers a type holds exactly, by name: (least, largest), all in between."""
    found = {"Bool": (0, 1)}
    for bits in (8, 16, 32, 64):
        found[f"Int{bits}"] = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        found[f"Uint{bits}"] = (0, 2**bits - 1)
    for name, digits in (("Float16", 11), ("Bfloat16", 8), ("Float", 24), ("Double", 53)):
        found[name] = (-(2**digits), 2**digits)
    return found


# Digits and exponents of the floats: a wider one holds every number of a narrower one.
FLOATS = {"Float16": (11, -24, 16), "Bfloat16": (8, -133, 128), "Float": (24, -149, 128), "Double": (53, -1074, 1024)}


@exhaustive(
    "cast-keeps-every-value",
    "every value of the first type has one of the second that stands for it exactly, and for nothing else",
    at="src/tensor/dtype.rs: is_lossless_in",
    bound="every pair of types that the program lists",
)
def lossless(mutant):
    text = (ROOT / "src/tensor/dtype.rs").read_text()
    body = re.search(r"fn is_lossless_in.*?matches!\((.*?)\n        \)\n", text, re.S).group(1)
    pairs = []
    for left, right in re.findall(r"\(\s*([A-Z][\w |]*?),\s*([A-Z][\w |]*?)\s*\)", body):
        pairs += itertools.product(left.split(" | "), right.split(" | "))
    if mutant == "32-bit integers in Float":
        pairs.append(("Int32", "Float"))
    if mutant == "Bfloat16 in Float16":
        pairs.append(("Bfloat16", "Float16"))
    ranges = widths()
    for source, goal in pairs:
        if source in FLOATS:
            holds = goal in FLOATS and all(
                (FLOATS[goal][0] >= FLOATS[source][0], FLOATS[goal][1] <= FLOATS[source][1], FLOATS[goal][2] >= FLOATS[source][2])
            )
        else:
            holds = ranges[goal][0] <= ranges[source][0] and ranges[source][1] <= ranges[goal][1]
        yield f"{source} in {goal}", holds


lossless.mutants = ("32-bit integers in Float", "Bfloat16 in Float16")
