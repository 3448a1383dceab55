"""Lower bounds: src/dim/prove.rs. A bound of p is proved from the bounds of smaller expressions."""

from z3 import And, Implies

from law import imax, imin, law


@law("bound-of-slack", "c·p + k ≥ g ⇔ p ≥ ⌈(g − k)/c⌉ for c ≥ 1", at="src/dim/prove.rs: is_proved")
def _(s, p, c, k, g):
    s.need(content_is_positive=c >= 1)
    s.claim((c * p + k >= g) == (p >= s.ceil(g - k, c)))
    s.wrong(rounded_down=(c * p + k >= g) == (p >= s.floor(g - k, c)))


@law("bound-of-scaled", "s·p ≥ low gives p ≥ ⌈low/s⌉, which reaches g if low ≥ (g − 1)·s + 1", at="src/dim/prove.rs: low_of_scaled")
def _(s, p, scale, low, g):
    s.give(scale >= 1)
    s.need(scaled_bound=scale * p >= low)
    s.claim(p >= s.ceil(low, scale), Implies(low >= (g - 1) * scale + 1, s.ceil(low, scale) >= g))
    s.wrong(reached_at_less=Implies(low >= (g - 1) * scale, s.ceil(low, scale) >= g))


@law("bound-of-product", "a·b ≥ low_a·low_b for a ≥ low_a ≥ 0 and b ≥ low_b ≥ 0", at="src/dim/prove.rs: shifted_low")
def _(s, x, y, l, m):
    s.need(first=x >= l, second=y >= m, first_low=l >= 0, second_low=m >= 0)
    s.claim(x * y >= l * m)


@law("shift-to-bound", "x = low + x′ with x′ = x − low in 0 .. high − low, and x = high − x′ likewise", at="src/dim/prove.rs: shifted_low")
def _(s, x, low, high):
    s.need(above=low <= x, below=x <= high)
    s.claim(x == low + (x - low), 0 <= x - low, x - low <= high - low, x == high - (high - x), 0 <= high - x)


@law(
    "absorb",
    "m·n ≥ m for m ≥ 0 and n ≥ 0 where every factor of n is one of m: if m is not 0, they are all at least 1",
    at="src/dim/prove.rs: absorb",
)
def _(s, x, y, z):
    # m = x·y·z, and n a product of powers of x and y.
    m = x * y * z
    for n, name in ((x, "x"), (x * y, "xy"), (x * x * y, "xxy")):
        s.claim(Implies(And(m >= 0, n >= 0), m * n >= m))
    s.wrong(factor_of_any_sign=Implies(m >= 0, m * x >= m))
    s.wrong(product_of_any_sign=Implies(x >= 0, m * x >= m))
    s.wrong(other_factor=Implies(And(x >= 0, y >= 0), x * y >= x))


@law("absorb-counts", "p·(m·n) − q·m ≥ −(q − min(p, q))·m, and p − min(p, q) of m·n are left", at="src/dim/prove.rs: absorb")
def _(s, m, mn, p, q):
    paid = imin(p, q)
    s.give(p >= 1, q >= 1)
    s.need(at_least_as_much=mn >= m)
    s.claim(p * mn - q * m >= (p - paid) * mn - (q - paid) * m)
    s.wrong(nothing_is_used_up=p * mn - q * m >= p * mn - (q - paid) * m)


@law("bound-by-every-member", "B·max(m, n) = min(B·m, B·n) for B ≤ 0", at="src/dim/prove.rs: low_by_every_member")
def _(s, rest, b, m, n):
    s.need(cofactor_is_not_positive=b <= 0)
    s.claim(rest + b * imax(m, n) == imin(rest + b * m, rest + b * n))


@law("bound-by-some-member", "B·max(m, n) ≥ B·m for B ≥ 0", at="src/dim/prove.rs: low_by_some_member")
def _(s, rest, b, m, n):
    s.need(cofactor_is_not_negative=b >= 0)
    s.claim(rest + b * imax(m, n) >= rest + b * m)


@law("bound-by-cases", "p(max(m, n)) is p(m) in the case that m ≥ n, and p(n) in the case that n ≥ m", at="src/dim/prove.rs: low_by_cases")
def _(s, b, c, m, n, low):
    p = lambda value: b * value * value + c * value
    s.need(first_case=Implies(m >= n, p(m) >= low), second_case=Implies(n >= m, p(n) >= low))
    s.claim(p(imax(m, n)) >= low)


@law(
    "bound-by-floor",
    "b·⌊a/b⌋ ≤ a and b·⌊a/b⌋ ≥ a − b + 1: B·b·⌊a/b⌋ ≥ B·a for B ≤ 0, and ≥ B·(a − b + 1) for B ≥ 0",
    at="src/dim/prove.rs: low_by_floor",
    forms=dict(sign=[1, -1]),
)
def _(s, a, b, rest, cofactor, sign):
    s.give(b >= 1)
    s.need(cofactor_has_this_sign=sign * cofactor >= 0)
    p = rest + cofactor * s.floor(a, b)
    s.claim(b * p >= b * rest + cofactor * (a if sign < 0 else a - b + 1))
    s.wrong(one_more=b * p >= b * rest + cofactor * (a + 1 if sign < 0 else a - b + 2)) if sign > 0 else s.wrong(
        one_less=b * p >= b * rest + cofactor * (a - 1)
    )


@law("bound-by-exact-floor", "b·⌊a/b⌋ = a where b divides a, whatever B is", at="src/dim/prove.rs: low_by_floor")
def _(s, a, b, part, rest, cofactor):
    s.give(b >= 1)
    s.need(is_a_multiple=a == b * part)
    s.claim(b * (rest + cofactor * s.floor(a, b)) == b * rest + cofactor * a)


@law(
    "bound-by-floor-of-symbolic",
    "b·(p − g) ≥ slack − b + 1 with slack ≥ 0 gives p ≥ g, the values being integers",
    at="src/dim/prove.rs: low_by_floor",
)
def _(s, p, b, g, scaled):
    s.give(b >= 1)
    s.need(scaled_bound=b * (p - g) >= scaled, slack=scaled + b - 1 >= 0)
    s.claim(p >= g)


@law("bound-by-relation", "s·p ≥ s·p − k·m·r for a given r ≥ 0, m ≥ 0 and k ≥ 0", at="src/dim/prove/relations.rs: low_by_relations")
def _(s, p, scale, k, m, r, low):
    s.give(scale >= 1, k >= 1)
    s.need(given=r >= 0, monomial_is_not_negative=m >= 0, bound=scale * p - k * m * r >= low)
    s.claim(scale * p >= low, p >= s.ceil(low, scale))


@law("terms-cancel", "with s = b/g and k = a/g for g = gcd(a, b), s·a·x − k·b·x = 0", at="src/dim/prove/relations.rs: cancelling")
def _(s, x, g, own, theirs):
    a, b = g * own, g * theirs
    s.claim(theirs * (a * x) - own * (b * x) == 0)
    s.wrong(shares_change_places=own * (a * x) - theirs * (b * x) == 0)


@law("difference-decides-order", "a ≤ b ⇔ b − a ≥ 0, a > b ⇔ a − b ≥ 1", at="src/dim/ask.rs: le")
def _(s, a, b):
    s.claim((a <= b) == (b - a >= 0), (a > b) == (a - b >= 1))


@law("drawn-within-bounds", "m·⌊(v + m − 1)/m⌋ is a multiple of m, at least v and less than v + m", at="src/dim/refute.rs: drawn")
def _(s, v, m):
    s.need(multiple_is_positive=m >= 1)
    drawn = m * s.floor(v + m - 1, m)
    s.claim(v <= drawn, drawn < v + m)


@law(
    "one-counterexample-refutes",
    "where one assignment gives a value below 0, no lower bound of 0 holds for all",
    at="src/dim/refute.rs: is_refuted",
)
def _(s, low, value):
    s.need(bound_holds_there=value >= low, is_negative=value < 0)
    s.claim(low < 0)
