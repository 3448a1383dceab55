"""Slices that move through the producer of their data: src/rewrite/slices, src/rewrite/sizes.rs and src/rewrite/strided_slice.rs.

An axis is a function of its position: `concat`, `pad` and `expand` define the operand and the element at each position. A slice is its
start, its step (a sign and a size) and its number of elements; element k is at start + k steps.
"""

from z3 import And, BoolVal, If, Implies, Or

from law import imax, imin, law
from slicing import BOUNDS, FLOORS, SIGNS, agree, counted, optional, taken


@law(
    "slice-of-concat",
    "position p of a concatenation is position p − from of the piece that holds from ≤ p < to",
    at="src/index_map/compose.rs: select",
    forms=dict(sign=SIGNS),
)
def _(s, first, second, third, start, size, k, t, sign):
    # Three pieces. The slice reaches only the second; it starts at start - first there, and has the same number of elements.
    s.give(first >= 0, second >= 0, third >= 0, t >= 1, 0 <= k, k < size)
    p = start + sign * k * t
    last = start + sign * (size - 1) * t
    s.need(starts_in_the_piece=And(first <= start, start < first + second), ends_in_the_piece=And(first <= last, last < first + second))
    s.claim(first <= p, p < first + second, (start - first) + sign * k * t == p - first)
    s.wrong(in_the_first_half=p < first)


@law(
    "slice-of-slices-joined",
    "x[a:m] and x[m:b] are x[a:b] if they have as many elements together, whatever m is",
    at="src/index_map/join.rs: join",
    forms=dict(first=BOUNDS, middle=BOUNDS, last=BOUNDS),
)
def _(s, d, a, m, b, k, first, middle, last):
    a, m, b = optional(first, a), optional(middle, m), optional(last, b)
    s.give(d >= 0)
    one, other, both = taken(s, d, a, m, 1, 1), taken(s, d, m, b, 1, 1), taken(s, d, a, b, 1, 1)
    s.need(as_many_together=one[1] + other[1] == both[1])
    s.claim(Implies(And(0 <= k, k < both[1]), If(k < one[1], one[0] + k, other[0] + k - one[1]) == both[0] + k))


@law(
    "progressions-joined",
    "elements s + k·t for k < n and then from s + n·t on are elements s + k·t for k < n + m",
    at="src/index_map/join.rs: join",
    forms=dict(sign=SIGNS),
)
def _(s, start, n, m, t, k, following, sign):
    s.give(n >= 0, m >= 0, t >= 1, 0 <= k, k < n + m)
    s.need(follows=start + sign * n * t == following)
    s.claim(If(k < n, start + sign * k * t, following + sign * (k - n) * t) == start + sign * k * t)


@law("split-is-slices", "part i of a Split is x[sum of the sizes before it : that + its size]", at="src/rewrite/axes.rs: part")
def _(s, d, before, size, rest):
    s.give(before >= 0, size >= 0, rest >= 0)
    s.need(sizes_add_up=d == before + size + rest)
    found = taken(s, d, before, before + size, 1, 1)
    s.claim(agree(found, (before, size)))


@law(
    "slices-are-split",
    "pieces that do not overlap, and the gaps between them, add up to the axis",
    at="src/rewrite/slices/split.rs: slices_to_split",
)
def _(s, d, start, size, following, more):
    s.give(0 <= start, size > 0, more > 0)
    s.need(no_overlap=start + size <= following, ends_inside=following + more <= d)
    sizes = [start, size, following - (start + size), more, d - (following + more)]
    s.claim(*[one >= 0 for one in sizes], sum(sizes) == d, sizes[0] + sizes[1] + sizes[2] == following)


@law(
    "slice-inside-of-pad",
    "Pad(x, p, q)[r] = x[r − p] where r takes elements of x only",
    at="src/index_map/compose.rs: select",
    forms=dict(sign=SIGNS),
)
def _(s, d, p, q, start, size, k, t, sign):
    s.give(d >= 0, t >= 1, 0 <= k, k < size, d + p + q >= 0)
    last = start + sign * (size - 1) * t
    s.need(first_is_of_the_data=And(0 <= start - p, start - p < d), last_is_of_the_data=And(0 <= last - p, last - p < d))
    at = start + sign * k * t
    # Position i of the padded axis is position i - p of x, if that exists, for p of either sign.
    s.claim(0 <= at - p, at - p < d, (start - p) + sign * k * t == at - p)


@law(
    "slice-across-pad",
    "Pad(x, p, q)[a : dim − b] is Pad(x[max(0, a − p) : d − max(0, b − q)], max(0, p − a), max(0, q − b))",
    at="src/index_map/compose.rs: select",
)
def _(s, d, before, after, front, back, k):
    s.give(d >= 0)
    off_front, off_back = imax(front - before, 0), imax(back - after, 0)
    kept = d - off_front - off_back
    pads = imax(before - front, 0), imax(after - back, 0)
    size = before + d + after - front - back
    s.give(0 <= k, k < size)
    # The program requires non-negative pads, but the law does not.
    s.need(nothing_is_cut_twice=kept >= 0)
    # The element at a position: its index in x, or -1 for the constant.
    old = If(And(before <= front + k, front + k < before + d), front + k - before, -1)
    new = If(And(pads[0] <= k, k < pads[0] + kept), off_front + k - pads[0], -1)
    s.claim(pads[0] + imax(kept, 0) + pads[1] == size, old == new)
    s.wrong(all_of_the_data_is_left=old == If(And(pads[0] <= k, k < pads[0] + d), k - pads[0], -1))


@law(
    "pads-of-a-window",
    "tap j of window o over Pad(x, p, q) with pads u, v is tap j over x with pads p + u, q + v: o·s + j·l − u − p",
    at="src/rewrite/fuse/pad.rs: pad_into_window",
)
def _(s, d, p, q, u, v, o, j, stride, dilation, taps):
    s.give(d >= 0, stride >= 1, dilation >= 1, taps >= 1)
    s.need(pads_are_not_negative=And(p >= 0, q >= 0, u >= 0, v >= 0))
    # The element that the tap reads: an index of x, or -1 for padding.
    in_padded = o * stride + j * dilation - u
    twice = If(And(0 <= in_padded, in_padded < d + p + q), If(And(p <= in_padded, in_padded < p + d), in_padded - p, -1), -1)
    at_once = o * stride + j * dilation - (u + p)
    s.claim(twice == If(And(0 <= at_once, at_once < d), at_once, -1))
    reach = dilation * (taps - 1) + 1
    s.claim(s.floor((d + p + q) + u + v - reach, stride) == s.floor(d + (p + u) + (q + v) - reach, stride))


@law(
    "window-has-an-element",
    "a window of side-by-side taps that is whole, with pads shorter than it, reaches one of d ≥ 1 elements",
    at="src/rewrite/fuse/pad.rs: check_pool",
)
def _(s, d, p, q, o, stride, taps):
    s.give(stride >= 1, taps >= 1, o >= 0)
    first = o * stride - p
    s.need(
        axis_has_elements=d >= 1,
        front_is_shorter=And(0 <= p, p < taps),
        end_is_shorter=And(0 <= q, q < taps),
        window_is_whole=first + taps <= d + q,
    )
    s.claim(imax(first, 0) <= imin(first + taps - 1, d - 1))


@law(
    "one-element-slice",
    "x[i:i + 1] is element i, or nothing where there is no such element, for i ≥ 0 and i < −1; so is x[−1:]",
    at="src/index_map/write/single.rs: gather",
)
def _(s, d, i, t):
    s.give(d >= 0, t >= 1)
    end = i + 1
    exists = And(-d <= i, i < d)
    given, opened = taken(s, d, i, end, 1, t), taken(s, d, i, None, 1, t)
    found = tuple(If(i == -1, o, g) for o, g in zip(opened, given))
    s.claim(found[1] == If(exists, 1, 0), Implies(exists, found[0] == counted(i, d)))
    s.wrong(the_last_by_its_end=given[1] == If(exists, 1, 0))


@law(
    "slice-of-broadcast",
    "f(x, y)[r] = f(x[r], y) where x has the axis, and y has size 1 along it or lacks it: place p of f reads x at p and y at 0",
    at="src/rewrite/slices/elementwise.rs: full_operand",
)
def _(s, d, own, other, p, n):
    s.give(0 <= p, p < d, n >= 0)
    s.need(operand_has_the_axis=own == d, other_is_spread=other == 1)
    # The index that a broadcasting operator reads at position p of an axis of size d.
    place = lambda size: If(size == 1, 0, p)
    s.claim(place(own) == p, place(other) == 0)
    # A result of size n: the operands broadcast to n again.
    s.claim(If(other == 1, n, other) == n)


@law(
    "equal-cuts",
    "two progressions of one length, one start and one step take the same; of one element the step says nothing, of none the start neither",
    at="src/index_map/equal.rs: equals",
)
def _(s, n, start, other, step, by, k):
    s.give(0 <= k, k < n)
    s.need(same_start=Or(n == 0, start == other), same_step=Or(n <= 1, step == by))
    s.claim(start + k * step == other + k * by)


@law(
    "bound-beyond-forward",
    "going forward, a bound at or beyond the end may be any number that is",
    at="src/rewrite/sizes.rs: slice_bounds",
    forms=dict(last=BOUNDS),
)
def _(s, d, bound, huge, other, t, last):
    other = optional(last, other)
    s.give(d >= 0, t >= 1)
    s.need(bound_is_beyond=bound >= d, so_is_the_other=huge >= d)
    s.claim(agree(taken(s, d, bound, other, 1, t), taken(s, d, huge, other, 1, t)))
    s.claim(agree(taken(s, d, other, bound, 1, t), taken(s, d, other, huge, 1, t)))


@law("cut-of-nothing", "x[0:e] = x where e ≥ d", at="src/passes/chains/conventions.rs: cuts_nothing")
def _(s, d, end):
    s.give(d >= 0)
    s.need(reaches_the_end=end >= d)
    s.claim(agree(taken(s, d, 0, end, 1, 1), (0, d)))


@law(
    "backward-from-before-the-first",
    "x[b:e:−s] = x[:b + 1][:e − b − 1:−s] for b < −1 and e ≤ b, where a begin before the first element takes nothing",
    at="src/rewrite/strided_slice.rs: range",
    forms=dict(last=BOUNDS),
)
def _(s, d, b, e, t, last):
    e = optional(last, e)
    s.give(d >= 0, t >= 1)
    needs = dict(begin_counts_from_the_end=b < -1)
    if e is not None:
        needs["end_is_not_after"] = e <= b
    s.need(**needs)
    expected = taken(s, d, b, e, -1, t, "before-first")
    kept = taken(s, d, 0, b + 1, 1, 1)[1]
    found = taken(s, kept, -1, None if e is None else e - b - 1, -1, t, "first")
    s.claim(agree(found, expected))
    s.wrong(raised_to_the_first=agree(taken(s, d, b, e, -1, t, "first"), expected))


@law(
    "backward-begin-is-safe",
    "both readings agree if the begin is at least −1, or reaches the axis, or the end is not negative",
    at="src/rewrite/strided_slice.rs: range",
    forms=dict(last=BOUNDS),
)
def _(s, d, b, e, t, last):
    e = optional(last, e)
    s.give(d >= 0, t >= 1)
    in_front = BoolVal(False) if e is None else e >= 0
    s.need(begin_is_safe=Or(b >= -1, b + d >= 0, in_front))
    s.claim(agree(taken(s, d, b, e, -1, t, "before-first"), taken(s, d, b, e, -1, t, "first")))


@law(
    "backward-end-after-begin",
    "going backward, nothing lies between a begin and an end behind it, both counted from the end",
    at="src/rewrite/strided_slice.rs: range",
)
def _(s, d, b, e, t):
    s.give(d >= 0, t >= 1, b < 0, e < 0)
    s.need(end_is_after=e > b)
    s.claim(taken(s, d, b, e, -1, t, "before-first")[1] == 0)


@law(
    "backward-end-beyond",
    "going backward, nothing lies before an end that no axis reaches",
    at="src/rewrite/strided_slice.rs: range",
    forms=dict(last=BOUNDS, floor=FLOORS),
)
def _(s, d, b, huge, t, last, floor):
    b = optional(last, b)
    s.give(d >= 0, t >= 1)
    s.need(end_is_beyond=huge >= d)
    s.claim(taken(s, d, b, huge, -1, t, floor)[1] == 0)
