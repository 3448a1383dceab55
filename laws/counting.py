"""Counting tensors, broadcasting, and repeated values: src/rewrite/index and src/index_map.

A counting tensor is t[i₀, i₁, …] = offset + Σ step_k · i_k. Z3 decides the laws about arithmetic and layouts of such tensors. The steps of
a reshaped tensor, and repetitions behind layouts, are computed by the program's own function on dims that are monomials, as in `layout`,
for every small shape.
"""

import itertools

import numpy
from z3 import And, Function, If, Implies, IntSort, Or

from law import exhaustive, imax, imin, law
from layout import A, ONE, SIX, THREE, TWO, TWO_A, ZERO, count, numbered, product, same, shape, shapes, shown, value


@law(
    "counting-row-major",
    "with step i of an axis that goes on where the next one ends, the elements are consecutive: (i·n + j)·s = i·(n·s) + j·s",
    at="src/index_map/write/aligned.rs: step_along",
)
def _(s, offset, i, j, n, step, outer):
    # An axis of size m·n that counts along [m, n], and the inverse.
    s.give(0 <= j, j < n, 0 <= i)
    s.need(outer_goes_on_where_the_inner_ends=outer == step * n)
    s.claim(offset + outer * i + step * j == offset + step * (i * n + j))
    s.claim(s.floor(i * n + j, n) == i)


@law("counting-sum", "a + b counts with the sums, c·a with the products", at="src/ops/traits/counting.rs: plus")
def _(s, a, b, p, q, i, j, u, v, c):
    one, other = a + p * i + u * j, b + q * i + v * j
    s.claim(one + other == (a + b) + (p + q) * i + (u + v) * j, one - other == (a - b) + (p - q) * i + (u - v) * j)
    s.claim(c * one == c * a + (c * p) * i + (c * u) * j)


@law(
    "counting-moved",
    "an affine form of positions that are affine in other positions is affine in these",
    at="src/index_map/write/aligned.rs: affine_result",
)
def _(s, offset, step, other, o, c, e, p, f, i, j):
    # The positions on two axes of the source, from those on two axes of the result.
    first, second = o + c * i + e * j, p + f * i
    composed = (offset + step * o + other * p) + (step * c + other * f) * i + (step * e) * j
    s.claim(offset + step * first + other * second == composed)


@law(
    "counting-bounds",
    "offset + Σ step_k·i_k lies between the offset and that plus step·(dim − 1), by the sign of the step",
    at="src/ops/traits/counting.rs: bounds",
    forms=dict(sign=[1, -1]),
)
def _(s, offset, step, d, i, low, high, sign):
    s.give(low <= offset, offset <= high)
    s.need(step_has_this_sign=sign * step >= 0, place_is_there=And(0 <= i, i < d))
    reach = step * (d - 1)
    s.claim(
        And(low <= offset + step * i, offset + step * i <= high + reach)
        if sign > 0
        else And(low + reach <= offset + step * i, offset + step * i <= high)
    )


@law(
    "comparison-decided",
    "a difference between low and high: a < b if high < 0, a ≤ b if high ≤ 0, a = b if both are 0, and so on",
    at="src/ops/elementwise/logic.rs: decided",
)
def _(s, a, b, low, high):
    s.need(above=low <= a - b, below=a - b <= high)
    s.claim(Implies(high < 0, a < b), Implies(low >= 0, a >= b), Implies(high <= 0, a <= b), Implies(low > 0, a > b))
    s.claim(Implies(And(low >= 0, high <= 0), a == b), Implies(Or(low > 0, high < 0), a != b))


@law("counting-flags", "x ∧ 0 = 0, x ∨ 1 = 1, x ∧ y = x ∨ y = x for x = y, ¬x = [x = 0]", at="src/ops/elementwise/logic.rs: combined")
def _(s, x, y):
    s.give(Or(x == 0, x == 1), Or(y == 0, y == 1))
    s.claim(imin(x, 0) == 0, imax(x, 1) == 1, Implies(x == y, And(imin(x, y) == x, imax(x, y) == x)), 1 - x == If(x == 0, 1, 0))


@law(
    "lookup-in-rows",
    "places p·i + k of rows one behind the other are the places k < n of each row, where there is a row or n is at most its length",
    at="src/rewrite/index/lookup.rs: in_rows",
)
def _(s, rows, p, n, i, k):
    from slicing import taken

    s.give(rows >= 0, p >= 0, n >= 0)
    # A successful run looks up no index after the last row.
    s.give(Implies(And(rows >= 1, n >= 1), p * (rows - 1) + (n - 1) < rows * p))
    s.need(there_is_a_row_or_it_is_long_enough=Or(rows >= 1, n <= p))
    start, size = taken(s, p, 0, n, 1, 1)
    s.claim(size == n, Implies(n > 0, start == 0))
    s.claim(Implies(And(0 <= i, i < rows, 0 <= k, k < n), k < p))


@law(
    "range-is-front-of-longer",
    "Range(a, a + n·d, d) = Range(a, a + m·d, d)[: n] for n ≤ m",
    at="src/rewrite/index/front.rs: front_of",
)
def _(s, first, step, n, m, k):
    from slicing import taken

    s.give(n >= 0, m >= 0, 0 <= k, k < n)
    s.need(no_longer=n <= m)
    start, size = taken(s, m, 0, n, 1, 1)
    s.claim(size == n, first + step * (start + k) == first + step * k)


@law(
    "range-counts-down-from-most",
    "Range(p, p − n, −1) = Range(P, P − m, −1)[P − p : P − p + n] for p ≤ P and P − p + n ≤ m",
    at="src/rewrite/index/front.rs: begin",
)
def _(s, most, p, n, m, k):
    from slicing import taken

    s.give(n >= 0, m >= 0, 0 <= k, k < n)
    s.need(begins_no_higher=p <= most, is_within=most - p + n <= m)
    start, size = taken(s, m, most - p, most - p + n, 1, 1)
    s.claim(size == n, most - (start + k) == p - k)


@law(
    "rows-bound-positions",
    "where Gather looks up the rows o, o + 1, …, o + n − 1 of N rows, n is at most N − o",
    at="src/rewrite/index/front.rs: implied",
)
def _(s, rows, o, n):
    s.give(n >= 0, rows >= 0)
    s.need(every_row_is_there=Implies(n >= 1, o + n - 1 < rows), some_row_is_left=rows - o >= 1)
    s.claim(n <= rows - o)


@law(
    "clipped-argument",
    "f(x) = f(min(max(x, a), b)) where f is the same at all numbers up to a, and at all from b on",
    at="src/rewrite/index/saturated.rs: look_up",
)
def _(s, x, a, b):
    f = Function("f", IntSort(), IntSort())
    s.give(a <= b)
    s.need(same_below=Implies(x <= a, f(x) == f(a)), same_above=Implies(x >= b, f(x) == f(b)))
    s.claim(f(imin(imax(x, a), b)) == f(x))


@law(
    "rows-from-the-end",
    "row k of a table of b − a + 1 rows is what the numbers a ≤ k ≤ b say, those below 0 counted from its end",
    at="src/rewrite/index/saturated.rs: look_up",
)
def _(s, a, b, k):
    s.give(a <= k, k <= b)
    s.need(starts_at_most_at_0=a <= 0, ends_at_least_at_0=b >= 0)
    rows = b - a + 1
    place = If(k < 0, k + rows, k)
    s.claim(0 <= place, place < rows, If(place <= b, place, place - rows) == k)


@law(
    "column-is-chosen",
    "Concat(x₀, …, xₖ)[p] = xᵢ[p] with i the place along the axis, where each xᵢ has size 1 along it",
    at="src/rewrite/index/columns.rs: choose",
)
def _(s, p, n, first, second, third):
    s.give(0 <= p, p < 3)
    s.need(every_column_is_one=And(first == 1, second == 1, third == 1))
    piece = If(p < first, 0, If(p < first + second, 1, 2))
    s.claim(piece == p)


@law(
    "broadcast-is-idempotent",
    "f(Expand(x), y) = f(x, y) where an operand that stays has the result's size, or that is 1",
    at="src/rewrite/index/spread.rs: spread_from",
)
def _(s, own, spread, other, result, p):
    # x of size own is expanded to `spread`, which broadcasts with `other` to result.
    s.give(own >= 0, spread >= 0, other >= 0, result >= 0)
    s.give(Or(spread == own, own == 1))
    s.give(Or(And(spread == 1, result == other), And(other == 1, result == spread), And(spread == other, result == spread)))
    s.need(someone_has_the_size=Or(result == 1, own == result, other == result))
    now = If(own == 1, other, own)
    s.claim(now == result, Or(own == other, own == 1, other == 1))
    # Position p reads the same element of x.
    s.give(0 <= p, p < result)
    at = If(spread == 1, 0, p)
    s.claim(If(own == 1, 0, at) == If(own == 1, 0, p))


@law(
    "spread-form",
    "what is spread from w reads place 0 where w has size 1, and place p elsewhere; an operator of each place alone keeps that",
    at="src/ops/traits/repeats.rs: broadcast_narrow",
)
def _(s, small, wide, other, p):
    s.give(0 <= p, p < wide)
    s.need(is_spread=Or(small == wide, small == 1))
    # f of the small operands, expanded to the size of f: the narrow result has the larger size, or 1.
    narrow = If(Or(small == wide, other == wide), wide, 1)
    s.give(Or(other == wide, other == 1))
    place = lambda size, q: If(size == 1, 0, q)
    q = place(narrow, p)
    s.claim(place(small, q) == place(small, p), place(other, q) == place(other, p), Or(narrow == wide, And(small == 1, other == 1)))


@law(
    "spread-by-shape",
    "Tile(x, r) with r = 1 but where x has size 1, and Expand, read place p mod d = p, or 0 where d = 1",
    at="src/rewrite/index/spread.rs: narrowed",
)
def _(s, d, repeats, p):
    s.give(d >= 1, repeats >= 1, 0 <= p, p < d * repeats)
    s.need(repeats_only_ones=Or(d == 1, repeats == 1))
    s.claim(p - d * s.floor(p, d) == If(d == 1, 0, p))


def laid_out(wide, narrow, target, mutant=None):
    """`Repetition::layout`: the shape of the smaller form behind a layout."""
    full = [ONE] * (len(wide) - len(narrow)) + list(narrow)
    result, i, j = [], 0, 0
    while i < len(wide) or j < len(target):
        a = wide[i] if i < len(wide) else None
        b = target[j] if j < len(target) else None
        if a is not None and b is not None and a == b:
            result.append(full[i])
            i, j = i + 1, j + 1
        elif b is not None and b == ONE:
            result.append(ONE)
            j += 1
        elif a is not None and a == ONE:
            i += 1
        else:
            own, goal = list(wide[i:]), list(target[j:])
            while own and goal and own[-1] == goal[-1]:
                own.pop()
                goal.pop()
            part = full[i : i + len(own)]
            if product(own) != product(goal):
                return None
            if part == own:
                result.extend(goal)
            elif all(dim == ONE for dim in part) or mutant == "some may repeat":
                result.extend([ONE] * len(goal))
            else:
                return None
            i, j = i + len(own), j + len(goal)
    return result


@exhaustive(
    "spread-through-layout",
    "axes that are run together or taken apart must all repeat, or none of them; then the smaller form is laid out alike",
    at="src/ops/traits/repeats.rs: layout",
    bound="ranks up to 3 to ranks up to 3, every choice of repeated axes, sizes 0 to 3",
)
def through(mutant):
    dims = [ZERO, ONE, TWO, THREE, A, SIX]
    for wide in shapes(range(1, 4), dims):
        for repeats in itertools.product((False, True), repeat=len(wide)):
            narrow = [ONE if again else dim for dim, again in zip(wide, repeats)]
            for target in shapes(range(1, 4), dims):
                found = laid_out(wide, narrow, target, mutant)
                if found is None:
                    continue
                for sizes in [(0, 0, 1), (2, 0, 1)]:
                    own, goal = shape(wide, sizes), shape(target, sizes)
                    if count(own) != count(goal):
                        continue
                    small = numbered(shape(narrow, sizes))
                    expected = numpy.broadcast_to(small, own).reshape(goal)
                    laid = shape(found, sizes)
                    holds = count(laid) == small.size and same(numpy.broadcast_to(small.reshape(laid), goal), expected)
                    yield f"{shown(narrow)} spread to {shown(wide)}, laid out {shown(target)} at a = {sizes[0]}", holds


through.mutants = ("some may repeat",)


@exhaustive(
    "part-looked-up-by-sizes",
    "a grid in order of [b, s] looks up x[: b] of x of [c, s], laid out as [b, s]; with c < b it fails, unless s = 0",
    at="src/rewrite/index/lookup.rs: by_sizes",
    bound="sizes of 0 to 3",
)
def part_looked_up(mutant):
    for b, c, s in itertools.product(range(4), repeat=3):
        fails = b > c and s > 0
        if fails:
            continue
        x = numbered((c, s))
        wanted = numpy.array([[x[i, j] for j in range(s)] for i in range(b)], dtype=x.dtype).reshape(b, s)
        part = x[:b]
        yield f"[{c}, {s}] by [{b}, {s}]", same(wanted, part if mutant == "not laid out" else part.reshape(b, s))


part_looked_up.mutants = ("not laid out",)


@law(
    "block-in-filled",
    "a block u written into v at start is Pad(u, start, d − start − n) with v, for a start of either sign",
    at="src/rewrite/index/number.rs: margins_of",
)
def _(s, d, first, n, j):
    s.give(d >= 0, 0 <= j, j < n)
    # Entry j is written to position first + j, counted from the end if that is negative. Every successful run has positions in range only.
    s.give(-d <= first, first + n <= d)
    s.need(block_does_not_turn_around=Or(first >= 0, first + n <= 0))
    index = first + j
    place = If(index < 0, index + d, index)
    start = If(first < 0, first + d, first)
    s.claim(place == start + j, start >= 0, d - (start + n) >= 0)
    s.wrong(start_is_not_counted=place == first + j)


@law(
    "places-of-a-slice",
    "places o + k for k < size are x[o : e], whatever the axis's size d, if size is min(d, e) − min(d, o)",
    at="src/rewrite/index/number.rs: end_of_slice",
)
def _(s, d, o, e, size, k):
    s.give(d >= 0, 0 <= o, o <= e)
    s.need(as_long_as_the_slice=size == imin(d, e) - imin(d, o))
    s.claim((And(0 <= k, k < size)) == And(o <= o + k, o + k < e, o + k < d))
    s.claim(imin(d, o) + size + (d - imin(d, e)) == d)
