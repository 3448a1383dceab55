"""Index maps: src/index_map.

A position is a number in mixed radix: a digit of size n has the values 0 to n - 1, and every digit of a non-empty result has at least one
value. The laws are about one or two digits; longer positions follow by repeated application.
"""

import itertools

from z3 import And, If, Implies

from law import exhaustive, law


def digit(s, size, name="digit"):
    """A value of a digit of this size."""
    value = s.int(name)
    s.give(0 <= value, value < size)
    return value


@law(
    "position-splits",
    "e = r*h + l with 0 <= l < r has the quotient h and the remainder l",
    at="src/index_map/refine.rs: split_offset",
)
def position_splits(s, e, r, h, low, q, m):
    s.give(r >= 1, e == r * h + low)
    # Euclid's quotient and remainder.
    s.give(e == r * q + m, 0 <= m, m < r)
    s.need(not_negative=low >= 0, below=low < r)
    s.claim(q == h, m == low)


@law(
    "digit-splits",
    "a digit of a*b positions is two digits, of a and of b; every value is one pair of values",
    at="src/index_map/refine.rs: split_digit",
)
def digit_splits(s, a, b, high, low, other_high, other_low):
    s.give(0 <= low, low < b, 0 <= high, 0 <= other_low, other_low < b, 0 <= other_high)
    s.need(within=high < a)
    s.claim(And(0 <= high * b + low, high * b + low < a * b))
    s.claim(Implies(high * b + low == other_high * b + other_low, And(high == other_high, low == other_low)))


@law(
    "digits-merge",
    "c_1*x + c_2*y = c_2*(x*n + y) if c_1 = c_2*n, for a second digit of n positions",
    at="src/index_map/canonical.rs: with_merged_digits",
)
def digits_merge(s, first, second, n, x, y):
    s.need(moves_as_far=first == second * n)
    s.claim(first * x + second * y == second * (x * n + y))


@law(
    "reversed-digit",
    "o - c*x = (o - c*(n - 1)) + c*(n - 1 - x): a negative coefficient counts from the other end",
    at="src/index_map/refine.rs: halves",
)
def reversed_digit(s, o, c, n, x):
    s.give(0 <= x, x < n)
    s.claim(o - c * x == (o - c * (n - 1)) + c * (n - 1 - x))
    s.claim(And(0 <= n - 1 - x, n - 1 - x < n))
    s.wrong(without_last=o - c * x == (o - c * n) + c * (n - 1 - x))


@law(
    "greatest-position",
    "o + c*x lies between its values at the first and at the last value of the digit",
    at="src/index_map/form.rs: most",
    forms={"sign": [1, -1]},
)
def greatest_position(s, sign, o, c, n, x):
    s.give(c >= 0)
    s.need(first=0 <= x, last=x <= n - 1)
    value, end = o + sign * c * x, o + sign * c * (n - 1)
    s.claim(value <= (end if sign > 0 else o), value >= (o if sign > 0 else end))


@law(
    "cut-of-pieces",
    "first + w*x lies before a border exactly for the x before ceil((border - first)/w)",
    at="src/index_map/compose.rs: cuts_of",
)
def cut_of_pieces(s, first, w, x, border, n):
    s.give(0 <= x, x < n)
    s.need(positive=w >= 1)
    cut = s.ceil(border - first, w)
    limited = If(cut < 0, 0, If(cut > n, n, cut))
    s.claim((first + w * x < border) == (x < cut))
    # The limits of the digit do not affect its values.
    s.claim((x < cut) == (x < limited))
    s.wrong(floor=(first + w * x < border) == (x < s.floor(border - first, w)))


@law(
    "cut-with-span",
    "first + w*x + y with 0 <= y < w lies before a border that w divides from first exactly for the x before the quotient",
    at="src/index_map/compose.rs: cuts_of",
)
def cut_with_span(s, first, w, x, y, k):
    s.give(w >= 1, 0 <= y)
    s.need(narrow=y < w)
    border = first + w * k
    s.claim((first + w * x + y < border) == (x < k))


@law(
    "pieces-continue",
    "two pieces are one where the second begins as far on as the first is long: o_2 = o_1 + c*len",
    at="src/index_map/join.rs: step_to",
)
def pieces_continue(s, one, other, c, length, x):
    s.give(length >= 0, x >= 0)
    s.need(continues=other == one + c * length)
    piecewise = If(x < length, one + c * x, other + c * (x - length))
    s.claim(piecewise == one + c * x)


@law(
    "slice-then-rest",
    "start + step*((o - start)/step + (c/step)*x) = o + c*x where step divides both",
    at="src/index_map/write/candidates.rs: behind_slice",
)
def slice_then_rest(s, start, step, shift, k, x):
    s.give(step != 0)
    # The quotients of o - start and of c by the step, by definition.
    o, c = start + step * shift, step * k
    s.claim(start + step * (shift + k * x) == o + c * x)


@law(
    "table-separates",
    "a table with T(a + 1, b) = T(a, b) + c is c*a + T(0, b), for rows of one length",
    at="src/index_map/tables.rs: separated",
)
def table_separates(s, c, a, start, nxt, column):
    # By induction over the rows: a row, and the next one.
    s.need(row=start == c * a + column, step=nxt == start + c)
    s.claim(nxt == c * (a + 1) + column)


@law(
    "rows-regroup",
    "a position in rows of k*w elements lies in piece p exactly if it does with k times as many rows of w elements",
    at="src/index_map/equal.rs: equals",
)
def rows_regroup(s, position, k, w, start, length):
    s.give(k >= 1, w >= 1, 0 <= position)
    row, end = s.floor(position, w), start + length
    s.claim(And(start * k <= row, row < end * k) == And(start * k * w <= position, position < end * k * w))
    s.wrong(not_scaled=And(start <= row, row < end) == And(start * k * w <= position, position < end * k * w))


@law(
    "table-adds",
    "where T(a, b) - T(0, b) is the same for every b, T(a, b) = (T(a, 0) - T(0, 0)) + T(0, b)",
    at="src/index_map/form.rs: steps_along",
)
def table_adds(s, value, base, first_value, first):
    s.need(adds=value - base == first_value - first)
    s.claim(value == (first_value - first) + base)


@law(
    "table-divides",
    "a table is its least value plus a common divisor times a table whose least value is 0",
    at="src/index_map/form.rs: add_table",
)
def table_divides(s, value, least, common, quotient):
    s.give(common >= 1)
    s.need(divides=value - least == common * quotient)
    s.claim(value == least + common * quotient)


def boxes():
    for shape in itertools.product((0, 1, 2, 3), (0, 1, 2, 4, 6)):
        for factor in (1, 2, 3):
            if shape[1] % factor == 0:
                yield shape, factor


@exhaustive(
    "reshape-keeps-positions",
    "a map over flat positions is the same map for every shape of equally many elements",
    at="src/index_map/construct.rs: reshape",
    bound="two axes of 0 to 6 positions, one split by 1 to 3",
)
def reshape_keeps_positions(mutant):
    for (rows, columns), factor in boxes():
        for row, column in itertools.product(range(rows), range(columns)):
            high, low = divmod(column, factor)
            flat = row * columns + column
            split = (row * (columns // factor) + high) * factor + low
            if mutant == "digits exchanged":
                split = (row * factor + low) * (columns // factor) + high
            yield f"{rows}x{columns} by {factor} at {row}, {column}", flat == split
    # At least one case has elements; otherwise the law is empty.
    yield "there are elements", any(rows * columns for (rows, columns), _ in boxes())


reshape_keeps_positions.mutants = ("digits exchanged",)


@exhaustive(
    "composition-substitutes",
    "the map of one movement after another replaces each digit of the inner map by the position of the outer one",
    at="src/index_map/compose.rs: pull",
    bound="affine positions with offsets, steps and sizes of 0 to 3",
)
def composition_substitutes(mutant):
    for size, o, c, inner_o, inner_c in itertools.product((1, 2, 3), (0, 1, 2), (-1, 0, 1, 2), (0, 1), (-2, 1, 3)):
        source = [10 * at for at in range(40)]
        middle = {x: source[inner_o + 6 + inner_c * x] for x in range(0, 9) if 0 <= inner_o + 6 + inner_c * x < 40}
        for x in range(size):
            at = o + c * x
            if at not in middle:
                continue
            offset, step = inner_o + 6 + inner_c * o, inner_c * c
            if mutant == "offset not scaled":
                offset = inner_o + 6 + o
            place = offset + step * x
            yield f"o={o} c={c} of o={inner_o} c={inner_c} at {x}", 0 <= place < 40 and middle[at] == source[place]


composition_substitutes.mutants = ("offset not scaled",)


@law(
    "block-by-periods",
    "position start + s·k is column start mod s of row ⌊start / s⌋ + k of a table with s columns",
    at="src/index_map/block.rs: written",
)
def _(s, start, step, k):
    s.give(start >= 0, k >= 0)
    s.need(steps_forward=step >= 1)
    row, column = start / step + k, start % step
    s.claim(row * step + column == start + step * k, 0 <= column, column < step)


@law(
    "equal-quotients",
    "⌈n / k⌉ = ⌊n / k⌋ only if k divides n",
    at="src/rewrite/movement/weights.rs: scope_of_equal_sizes",
)
def _(s, n, k):
    s.give(n >= 0, k > 1)
    s.need(equal=(n + k - 1) / k == n / k)
    s.claim(n == k * (n / k))


@law(
    "grid-is-taps",
    "tap u of row i of a grid x[g::b] is tap b·u + g of a window with strides b·s and pads b·p, and lies on the axis if it does on the grid",
    at="src/rewrite/movement/weights.rs: window_of_steps",
)
def _(s, i, u, g, b, stride, pad, size):
    s.give(b >= 1, size >= 0)
    s.need(in_first_block=And(0 <= g, g < b))
    row = i * stride + u - pad
    place = i * (b * stride) + (b * u + g) - b * pad
    s.claim(place == b * row + g)
    s.claim((And(0 <= row, row < size)) == (And(0 <= place, place < b * size)))


@law(
    "grid-has-as-many-windows",
    "⌊(b·n − b·k) / (b·s)⌋ = ⌊(n − k) / s⌋",
    at="src/rewrite/movement/weights.rs: window_of_steps",
)
def _(s, n, b, stride):
    s.need(blocks=b >= 1, strides=stride >= 1)
    s.claim((b * n) / (b * stride) == n / stride)
