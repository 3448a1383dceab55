"""Reshapes and transposes at every small shape: src/index_map, and in src/rewrite sizes.rs, axes.rs, split.rs, moves and slices/places.rs.

The functions of the program that plan a layout are translated here, on dims that are monomials in three sizes: `a` and `b` of at least 0,
and `p` of at least 1. numpy executes the plans at sizes of 0 to 3, and the results are compared. Two dims count as equal only if they are
the same monomial, and as at least 1 only if this is certain. A scope with more facts gives answers that are true for the remaining values.
Not modelled: opset versions, and other consumers.
"""

import itertools
import math

import numpy

from law import exhaustive

# A dim is a coefficient and the exponents of a, b and p.
ONE = (1, 0, 0, 0)
ZERO = (0, 0, 0, 0)
TWO, THREE, SIX = (2, 0, 0, 0), (3, 0, 0, 0), (6, 0, 0, 0)
A, B, P = (1, 1, 0, 0), (1, 0, 1, 0), (1, 0, 0, 1)
TWO_A = (2, 1, 0, 0)
VALUES = [(a, b, p) for a in (0, 1, 2) for b in (0, 1, 3) for p in (1, 2)]


def product(dims):
    result = ONE
    for dim in dims:
        result = tuple([result[0] * dim[0]] + [x + y for x, y in zip(result[1:], dim[1:])])
    return result if result[0] else ZERO


def at_least_one(dim):
    return dim[0] >= 1 and dim[1] == 0 and dim[2] == 0


def as_const(dim):
    return dim[0] if dim[1:] == (0, 0, 0) else None


def value(dim, sizes):
    return dim[0] * sizes[0] ** dim[1] * sizes[1] ** dim[2] * sizes[2] ** dim[3]


def shape(dims, sizes):
    return tuple(value(dim, sizes) for dim in dims)


def count(dims):
    return math.prod(dims)


def numbered(dims):
    return numpy.arange(count(dims)).reshape(dims)


def same(one, other):
    return one.shape == other.shape and bool((one == other).all())


def shapes(ranks, dims):
    for rank in ranks:
        yield from itertools.product(dims, repeat=rank)


def shown(dims):
    names = ["", "a", "b", "p"]
    words = []
    for dim in dims:
        powers = "".join(name * exponent for name, exponent in zip(names[1:], dim[1:]))
        words.append(powers if dim[0] == 1 and powers else f"{dim[0]}{powers}")
    return "[" + ", ".join(words) + "]"


def reshaped_by(codes, dims):
    """The dims after a Reshape without allowzero: 0 copies the operand's dim, -1 is inferred. None if it fails."""
    target = []
    for axis, code in enumerate(codes):
        if code == 0 and axis >= len(dims):
            return None
        target.append(dims[axis] if code == 0 else code)
    size = math.prod(dims)
    if -1 in target:
        others = math.prod(dim for dim in target if dim != -1)
        if others == 0 or size % others:
            return None
        target[target.index(-1)] = size // others
    return tuple(target) if math.prod(target) == size else None


def codes_of(source, target, mutant=None):
    """`reshape_codes`."""
    rest, codes = None, []
    for axis, dim in enumerate(target):
        size = as_const(dim)
        copies = axis < len(source) and source[axis] == dim
        if mutant == "zero copies nothing":
            copies = source and dim in source
        if size is not None and size != 0:
            codes.append(size)
        elif copies:
            codes.append(0)
        elif rest is None:
            rest = axis
            codes.append(-1)
        else:
            return None
    if rest is not None and mutant != "others may be 0":
        if not all(at_least_one(dim) for axis, dim in enumerate(target) if axis != rest):
            return None
    return codes


DIMS = [ZERO, ONE, TWO, A, B, P, TWO_A]


@exhaustive(
    "reshape-codes",
    "a constant stays, 0 copies a dim that is as it was, and −1 is the rest if no other dim can be 0",
    at="src/ops/size_operand.rs: reshape_codes",
    bound="ranks up to 3, sizes 0 to 3",
)
def _(mutant):
    for source in shapes(range(4), DIMS):
        for target in shapes(range(4), DIMS):
            codes = codes_of(source, target, mutant)
            if codes is None:
                continue
            for sizes in VALUES:
                own, goal = shape(source, sizes), shape(target, sizes)
                # Elements keep their order for all dims.
                if math.prod(own) == math.prod(goal):
                    yield (source, target, sizes), reshaped_by(codes, own) == goal


_.mutants = ("others may be 0", "zero copies nothing")


@exhaustive(
    "transpose-of-transpose",
    "Transpose(Transpose(x, p), q) = Transpose(x, p∘q): axis i of the result is axis p[q[i]] of x",
    at="src/index_map/compose.rs: pull",
    bound="ranks up to 5, distinct sizes",
)
def transposes(mutant):
    for rank in range(1, 6):
        tensor = numbered(tuple(range(2, 2 + rank)))
        perms = list(itertools.permutations(range(rank)))
        # For rank 5, each permutation is combined with a sample of the others.
        seconds = perms if rank < 5 else perms[::7]
        for p in perms:
            for q in seconds:
                both = [q[i] for i in p] if mutant == "the other order" else [p[i] for i in q]
                yield f"{p} then {q}", same(tensor.transpose(p).transpose(q), tensor.transpose(both))


transposes.mutants = ("the other order",)


@exhaustive(
    "transpose-of-ones",
    "a Transpose that moves only axes of size 1 past others keeps all elements in order",
    at="src/index_map/canonical.rs: with_merged_digits",
    bound="ranks up to 4, sizes 0 to 3",
)
def ones(mutant):
    for source in shapes(range(1, 5), [ZERO, ONE, TWO, A, THREE]):
        for perm in itertools.permutations(range(len(source))):
            kept = [axis for axis in perm if source[axis] != ONE]
            if mutant == "any axes may move":
                kept = []
            if kept != sorted(kept):
                continue
            for sizes in [(0, 0, 1), (1, 0, 1), (2, 0, 1)]:
                tensor = numbered(shape(source, sizes))
                turned = tensor.transpose(perm)
                yield f"{shown(source)} by {perm}", same(turned, tensor.reshape(turned.shape))


ones.mutants = ("any axes may move",)


def ones_between(short, long, mutant=None):
    """`inserted_ones`."""
    axes, matched = [], 0
    for axis, dim in enumerate(long):
        if matched < len(short) and short[matched] == dim:
            matched += 1
        elif dim == ONE or mutant == "any axis may go":
            axes.append(axis)
        else:
            return None
    return axes if matched == len(short) else None


@exhaustive(
    "reshape-that-inserts-ones",
    "a Reshape that only adds or only drops axes of size 1 is an Unsqueeze or a Squeeze of them",
    at="src/ops/size_operand.rs: inserted_ones",
    bound="ranks up to 4, sizes 0 to 3",
)
def inserted(mutant):
    dims = [ZERO, ONE, TWO, A, P]
    for short in shapes(range(3), dims):
        for long in shapes(range(len(short) + 1, 5), dims):
            axes = ones_between(short, long, mutant)
            if axes is None:
                continue
            for sizes in [(0, 0, 1), (1, 0, 1), (2, 0, 2)]:
                tensor = numbered(shape(short, sizes))
                goal = shape(long, sizes)
                case = f"{shown(short)} to {shown(long)}"
                unsqueezed = numpy.expand_dims(tensor, tuple(axes))
                yield case, unsqueezed.shape == goal and same(numbered(goal).reshape(tensor.shape), tensor)
                if unsqueezed.shape == goal:
                    yield case, same(numpy.squeeze(numbered(goal), tuple(axes)), tensor)


inserted.mutants = ("any axis may go",)


@exhaustive(
    "slice-of-transpose",
    "Transpose(x, p)[r] = Transpose(x[r∘p⁻¹], p): axis i of the transposed data is axis p[i] of x",
    at="src/index_map/compose.rs: pull",
    bound="ranks up to 4",
)
def sliced_transpose(mutant):
    for rank in range(1, 5):
        tensor = numbered(tuple(range(2, 2 + rank)))
        for perm in itertools.permutations(range(rank)):
            for axis in range(rank):
                after, before = [slice(None)] * rank, [slice(None)] * rank
                own = perm.index(axis) if mutant == "the other way" else perm[axis]
                after[axis] = before[own] = slice(1, None)
                yield f"axis {axis} by {perm}", same(tensor.transpose(perm)[tuple(after)], tensor[tuple(before)].transpose(perm))


sliced_transpose.mutants = ("the other way",)


def joined_places(made, perm, axis, mutant=None):
    """`places` of slices/places.rs: the dims of the Reshape, the permutation and the axis of the Split."""
    own = perm[axis]
    behind = own - 1 if mutant == "the axis before" else own + 1
    if not 0 <= behind < len(made):
        return None
    dims = [made[own] * dim if at == behind else dim for at, dim in enumerate(made) if at != own]
    turned = [at - 1 if at > own else at for at in perm if at != own]
    joined = min(own, behind)
    return dims, turned, own if mutant == "not turned" and own < len(turned) else turned.index(joined)


@exhaustive(
    "places-are-parts",
    "place i of an axis of n is part i of n along that axis and the one behind it as one, wherever a Transpose puts it",
    at="src/rewrite/slices/places.rs: places",
    bound="ranks 2 to 4, every permutation, sizes 0 to 3",
)
def placed(mutant):
    for rank in (2, 3, 4):
        for made in itertools.product((0, 1, 2, 3) if rank < 4 else (1, 2, 3), repeat=rank):
            tensor = numbered(made)
            for perm in itertools.permutations(range(rank)):
                for axis in range(rank):
                    found = joined_places(made, perm, axis, mutant)
                    if found is None or made[perm[axis]] == 0:
                        continue
                    dims, turned, along = found
                    whole = tensor.reshape(dims).transpose(turned)
                    case = f"{list(made)} by {perm}, axis {axis}"
                    if whole.shape[along] % made[perm[axis]]:
                        yield case, False
                        continue
                    parts = numpy.split(whole, made[perm[axis]], axis=along)
                    places = numpy.moveaxis(tensor.transpose(perm), axis, 0)
                    yield case, all(same(a, b) for a, b in zip(places, parts))


placed.mutants = ("the axis before", "not turned")


def looked_up(source, places, before, behind):
    """src/index_map/write/candidates.rs, gathered_shapes: merges the positions along these axes, if the map has no other part."""
    outer, along, inner = count(source[:before]), count(source[before:behind]), count(source[behind:])
    if places.size % (outer * inner):
        return None
    rows = places.size // (outer * inner)
    found = [int(places[row * inner]) // inner for row in range(rows)]
    for at, own in enumerate(places):
        row, q = divmod(at, inner)
        p, r = divmod(row, rows)
        if found[r] >= along or own != (p * along + found[r]) * inner + q:
            return None
    return found


def digits(places, source):
    """src/index_map/tables.rs, split_tables: sizes in the order of the result, and the distances of neighbours in the source."""
    if places.size != source or places[0] != 0:
        return None
    found, width = [], 1
    while width < source:
        step, rest = int(places[width]), source // width
        run = 2
        while run < rest and places[run * width] == run * step:
            run += 1
        size = next(size for size in range(run, 1, -1) if rest % size == 0) if any(rest % size == 0 for size in range(2, run + 1)) else None
        if size is None:
            return None
        found.insert(0, (size, step))
        width *= size
    tile = 1
    for size, step in sorted(found, key=lambda digit: digit[1]):
        if step != tile:
            return None
        tile *= size
    for at, own in enumerate(places):
        rest, total = at, 0
        for size, step in reversed(found):
            rest, digit = divmod(rest, size)
            total += digit * step
        if total != own:
            return None
    return found


def moved(shape):
    """The effect of two consecutive moves on a tensor: permutations, reshapes, and positions of an axis."""

    def moves(tensor):
        for perm in itertools.permutations(range(tensor.ndim)):
            yield tensor.transpose(perm)
        for dims in {(4, -1), (2, -1), (-1, 2), (2, 2, -1), (3, -1)}:
            if tensor.size % abs(count(dims)) == 0:
                yield tensor.reshape(dims)
        for axis in range(tensor.ndim):
            size = tensor.shape[axis]
            yield numpy.roll(tensor, 1, axis)
            yield numpy.take(tensor, range(0, size, 2), axis)
            yield numpy.concatenate([numpy.take(tensor, range(1, size), axis), tensor], axis)

    for once in moves(numbered(shape)):
        for twice in moves(once):
            yield from moves(twice)


@exhaustive(
    "moves-are-a-lookup",
    "if places (p, r, q) of a result are places (p, kᵣ, q) of the source, it is Gather(x, k) along those axes as one",
    at="src/index_map/write/candidates.rs: gathered_shapes",
    bound="three moves, up to 12 elements",
)
def moved_by_lookup(mutant):
    for shape in [(2, 4), (2, 2, 3), (3, 2, 2), (8,)]:
        for result in moved(shape):
            places = result.reshape(-1)
            for before in range(len(shape)):
                for behind in range(before + 1, len(shape) + 1):
                    found = looked_up(shape, places, before, behind)
                    if mutant == "first block" and places.size:
                        inner = count(shape[behind:])
                        rows = places.size // max(1, count(shape[:before]) * inner)
                        found = [int(places[row * inner]) // inner for row in range(rows) if row * inner < places.size]
                    if not found or max(found) >= count(shape[before:behind]):
                        continue
                    dims = (*shape[:before], count(shape[before:behind]), *shape[behind:])
                    gathered = numpy.take(numbered(dims), found, axis=before)
                    yield f"{shape}, axes {before} to {behind}", same(gathered.reshape(-1), places)


moved_by_lookup.mutants = ("first block",)


@exhaustive(
    "moves-are-a-turn",
    "if places of a result are sums of digits times steps, and the steps tile the source, it is a Transpose between Reshapes",
    at="src/index_map/tables.rs: split_tables",
    bound="three moves, up to 12 elements",
)
def moved_by_turn(mutant):
    for shape in [(2, 4), (2, 2, 3), (3, 2, 2), (8,)]:
        for result in moved(shape):
            places = result.reshape(-1)
            found = digits(places, count(shape)) if places.size else None
            if found is None:
                continue
            order = sorted(range(len(found)), key=lambda at: -found[at][1])
            if mutant == "not ordered":
                order = list(range(len(found)))
            dims = [found[at][0] for at in order]
            perm = [order.index(at) for at in range(len(found))]
            yield f"{shape}: {found}", same(numbered(dims).transpose(perm).reshape(-1), places)


moved_by_turn.mutants = ("not ordered",)


@exhaustive(
    "split-behind-reshape",
    "parts [L…, nᵢ, T…] reshaped to [L…, hᵢ, I…, T…] with the same I… for all are parts of the whole reshaped so",
    at="src/rewrite/parts.rs: reshape",
    bound="up to 3 parts, blocks of up to 4, one axis before and behind",
)
def behind(mutant):
    for lead, tail in itertools.product((0, 1, 2), repeat=2):
        for blocks in [(), (1,), (2,), (3,), (2, 2), (1, 2)]:
            size = count(blocks)
            for heads in itertools.product((1, 2, 3), repeat=3):
                counts = [head * size for head in heads]
                whole = numbered((lead, sum(counts), tail))
                parts = numpy.split(whole, numpy.cumsum(counts)[:-1], axis=1)
                done = [part.reshape((lead, head, *blocks, tail)) for part, head in zip(parts, heads)]
                if mutant == "blocks first":
                    done = [part.reshape((lead, *blocks, head, tail)) for part, head in zip(parts, heads)]
                    at = 1 + len(blocks)
                else:
                    at = 1
                target = list(done[0].shape)
                target[at] = sum(heads)
                again = numpy.split(whole.reshape(target), numpy.cumsum(heads)[:-1], axis=at)
                yield f"{lead}, {counts}, {tail} in blocks of {blocks}", all(same(a, b) for a, b in zip(done, again))


behind.mutants = ("blocks first",)


@exhaustive(
    "split-behind-transpose",
    "Transpose(Split(x; a)[i], q) = Transpose(Split(Transpose(x, p); a′)[i], p⁻¹∘q), with a′ where p puts axis a",
    at="src/rewrite/parts.rs: transpose",
    bound="ranks up to 3",
)
def turned(mutant):
    for rank in range(1, 4):
        tensor = numbered(tuple(range(4, 4 + rank)))
        for p, q in itertools.product(itertools.permutations(range(rank)), repeat=2):
            for axis in range(rank):
                after = [p.index(own) for own in q]
                at = p[axis] if mutant == "the axis itself" else p.index(axis)
                if tensor.shape[axis] != tensor.transpose(p).shape[at]:
                    yield f"{p}, {q}, axis {axis}", False
                    continue
                one = [part.transpose(q) for part in numpy.split(tensor, [1, 3], axis=axis)]
                other = [part.transpose(after) for part in numpy.split(tensor.transpose(p), [1, 3], axis=at)]
                yield f"{p}, {q}, axis {axis}", all(same(a, b) for a, b in zip(one, other))


turned.mutants = ("the axis itself",)


@exhaustive(
    "concat-of-concat",
    "Concat(…, Concat(a, b), …) = Concat(…, a, b, …) along one axis",
    at="src/index_map/join.rs: of_pieces",
    bound="ranks up to 3, sizes 0 to 2",
)
def concats(mutant):
    for rank in range(1, 4):
        for axis in range(rank):
            for sizes in itertools.product(range(3), repeat=4):
                parts, start = [], 0
                for size in sizes:
                    dims = [2] * rank
                    dims[axis] = size
                    parts.append(start + numbered(tuple(dims)))
                    start += 100
                inner = numpy.concatenate(parts[1:3], axis=axis)
                nested = numpy.concatenate([parts[0], inner, parts[3]], axis=axis)
                flat = [parts[1], parts[2], parts[0], parts[3]] if mutant == "inner first" else parts
                yield f"axis {axis}, {sizes}", same(nested, numpy.concatenate(flat, axis=axis))


concats.mutants = ("inner first",)


