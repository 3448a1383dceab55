"""Facts about symbols: src/dim/scope.rs."""

from law import law


@law("relation-by-primitive", "c·p + k ≥ 0 ⇔ p ≥ −⌊k/c⌋ for c ≥ 1", at="src/dim/scope/known.rs: assume_non_negative")
def _(s, p, c, k):
    s.need(content_is_positive=c >= 1)
    s.claim((c * p + k >= 0) == (p + s.floor(k, c) >= 0))
    s.wrong(rounded_up=(c * p + k >= 0) == (p + s.ceil(k, c) >= 0))


@law(
    "relation-of-numerator",
    "low ≤ ⌊n/m⌋ ⇔ n − low·m ≥ 0, and ⌊n/m⌋ ≤ high ⇔ high·m + m − 1 − n ≥ 0, for m > 0",
    at="src/dim/scope/known.rs: of_numerator",
)
def _(s, n, m, low, high):
    s.need(divisor_is_positive=m >= 1)
    q = s.floor(n, m)
    s.claim((low <= q) == (n - low * m >= 0), (q <= high) == (high * m + m - 1 - n >= 0))
    s.wrong(without_the_rest=(q <= high) == (high * m - n >= 0))


@law("equation-by-primitive", "c·p + k = 0 has a solution only if c divides k, and then p + k/c = 0", at="src/dim/scope/known.rs: assume_eq")
def _(s, p, c, k):
    s.give(c >= 1)
    s.need(they_are_equal=c * p + k == 0)
    s.claim(k - c * s.floor(k, c) == 0, p + s.floor(k, c) == 0)


@law("isolated-symbol", "s + r = 0 gives s = −r, and −s + r = 0 gives s = r", at="src/dim/scope/known.rs: assume_eq", forms=dict(sign=[1, -1]))
def _(s, symbol, r, sign):
    difference = sign * symbol + r
    s.need(they_are_equal=difference == 0)
    s.claim(symbol == (symbol - difference if sign > 0 else symbol + difference))
    s.claim((symbol - difference == -r) if sign > 0 else (symbol + difference == r))


@law(
    "common-multiple",
    "what is a multiple of g·a and of g·b, a and b without a common divisor, is one of g·a·b",
    at="src/dim/scope/known.rs: set_multiple",
)
def _(s, x, k, n, g, a, b, u, v):
    # a and b have no common divisor: u·a + v·b = 1 for some u and v.
    s.need(first=x == g * a * k, second=x == g * b * n, no_common_divisor=u * a + v * b == 1)
    # x = (u·a + v·b)·x = g·a·b·(u·n + v·k).
    s.claim(x == g * a * b * (u * n + v * k))


@law("bounds-of-what-is-written", "low ≤ s ≤ high and s = v give v − low ≥ 0 and high − v ≥ 0", at="src/dim/scope/known.rs: assume_within")
def _(s, symbol, value, low, high):
    s.need(above=low <= symbol, below=symbol <= high, is_written_so=symbol == value)
    s.claim(value - low >= 0, high - value >= 0)
