"""Strings and classical machine learning."""
import numpy as np

from .cases import Case, broadcastable, family, maybe, pick, shape, smooth, values

TEXT, text = family()
LEARNING, learning = family()
ML = "ai.onnx.ml"


def words(rng, letters, dims, most=5):
    count = int(np.prod(dims))
    flat = ["".join(pick(rng, letters) for _ in range(rng.integers(0, most + 1))) for _ in range(count)]
    return np.array(flat, dtype=object).reshape(dims)


@text
def join(rng):
    dims = shape(rng, 0, 3)
    return Case("StringConcat", [words(rng, "abü", broadcastable(rng, dims)) for _ in range(2)], {}, 20)


@text
def split(rng):
    attributes = {"delimiter": maybe(rng, pick(rng, [",", ";", ", ", "", " "])), "maxsplit": maybe(rng, int(pick(rng, [1, 2])))}
    return Case("StringSplit", [words(rng, "ab ,;", [int(rng.integers(1, 4))], 8)], attributes, 20, outputs=2)


@text
def match(rng):
    pattern = pick(rng, ["a*b", "(a|b)+", "[^a]+", "a.c", r"\w+", r"[[:alpha:]]+\d{2,3}", "^a$", "a?b??", "(?i)AB", r"\.", "a{2}", ".*", "a|"])
    return Case("RegexFullMatch", [words(rng, "abcAB12. ", [4])], {"pattern": pattern}, 20)


@text
def normalize(rng):
    attributes = {"locale": "C", "case_change_action": maybe(rng, pick(rng, ["LOWER", "UPPER", "NONE"])), "is_case_sensitive": maybe(rng, int(rng.integers(2))), "stopwords": maybe(rng, ["a", "B", "ab"])}
    dims = [int(rng.integers(1, 6))]
    return Case("StringNormalizer", [words(rng, "abAB", dims if rng.random() < 0.5 else [1, *dims], 2)], attributes, 10, only_runtime=True)


@text
def count(rng):
    low = int(rng.integers(1, 3))
    high = int(rng.integers(low, 3))
    ones, twos = [int(n) for n in rng.permutation(5)[:3]], rng.integers(0, 5, [2, 2])
    if (twos[0] == twos[1]).all():
        twos[1, 0] = (twos[1, 0] + 1) % 5
    attributes = {"mode": pick(rng, ["TF", "IDF", "TFIDF"]), "min_gram_length": low, "max_gram_length": high, "max_skip_count": int(rng.integers(0, 3)),
                  "ngram_counts": [0, 3], "ngram_indexes": [int(n) for n in rng.permutation(5)], "pool_int64s": ones + twos.ravel().tolist()}
    if rng.random() < 0.5:
        attributes["weights"] = rng.uniform(0.5, 2, 5).tolist()
    dims = [int(rng.integers(1, 9))]
    dims = dims if rng.random() < 0.5 else [int(rng.integers(1, 3)), *dims]
    return Case("TfIdfVectorizer", [rng.integers(0, 5, dims).astype(pick(rng, [np.int32, np.int64]))], attributes, 9, ulps=2)


def case(operator, operands, attributes, outputs=1, **slack):
    return Case(operator, operands, attributes, 15, outputs=outputs, domain=ML, **slack)


def matrix(rng, dtypes=(np.float32, np.float64, np.int64, np.int32), columns=None):
    return values(rng, pick(rng, dtypes), [int(rng.integers(1, 5)), columns or int(rng.integers(1, 5))], special=0)


@learning
def features(rng):
    x = matrix(rng)
    count = x.shape[1]
    operator = pick(rng, ["Binarizer", "Normalizer", "Scaler", "Imputer", "ArrayFeatureExtractor", "FeatureVectorizer"])
    if operator == "Binarizer":
        return case(operator, [x.astype(np.float32)], {"threshold": float(rng.uniform(-1, 1))})
    if operator == "Normalizer":
        return case(operator, [x], {"norm": pick(rng, ["MAX", "L1", "L2"])}, ulps=8)
    if operator == "Scaler":
        n = pick(rng, [1, count])
        return case(operator, [x], {"offset": rng.uniform(-1, 1, n).tolist(), "scale": rng.uniform(0.5, 2, n).tolist()}, ulps=2)
    if operator == "Imputer":
        n = pick(rng, [1, count])
        if x.dtype == np.int64:
            return case(operator, [x], {"imputed_value_int64s": rng.integers(0, 9, n).tolist(), "replaced_value_int64": 1})
        x = np.where(rng.random(x.shape) < 0.3, np.nan, x.astype(np.float32)).astype(np.float32)
        return case(operator, [x], {"imputed_value_floats": rng.uniform(0, 1, n).tolist(), "replaced_value_float": float("nan")})
    if operator == "ArrayFeatureExtractor":
        return case(operator, [x, rng.integers(0, count, int(rng.integers(1, 4)))], {})
    return case(operator, [x.astype(np.float32), x.astype(np.float32)], {"inputdimensions": [count, count]})


@learning
def labels(rng):
    keys, found = pick(rng, [("strings", ["a", "b", "ab"]), ("int64s", [1, 2, -3]), ("floats", [0.5, 1.0, -2.0])]), pick(rng, [("strings", ["x", "y", "z"]), ("int64s", [7, 8, 9]), ("floats", [0.25, 1.5, 2.5])])
    dims = shape(rng, 1, 2)
    x = {"strings": lambda: words(rng, "ab", dims, 2), "int64s": lambda: rng.integers(-4, 4, dims), "floats": lambda: rng.choice(np.array([0.5, 1.0, 3.0, -2.0], np.float32), dims)}[keys[0]]()
    default = {"strings": ("default_string", "none"), "int64s": ("default_int64", 42), "floats": ("default_float", 0.75)}[found[0]]
    return case("LabelEncoder", [x], {f"keys_{keys[0]}": keys[1], f"values_{found[0]}": found[1], default[0]: maybe(rng, default[1])})


@learning
def one_hot(rng):
    if rng.random() < 0.5:
        return case("OneHotEncoder", [words(rng, "ab", [3], 1)], {"cats_strings": ["a", "b", ""]})
    return case("OneHotEncoder", [rng.integers(0, 4, shape(rng, 1, 2, empty=0)).astype(pick(rng, [np.int64, np.float32]))], {"cats_int64s": [0, 1, 2], "zeros": maybe(rng, 1)})


@learning
def linear(rng):
    x = matrix(rng, (np.float32,))
    columns, targets = x.shape[1], int(rng.integers(1, 4))
    post = maybe(rng, pick(rng, ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]))
    weights = rng.uniform(-1, 1, columns * targets).tolist()
    if rng.random() < 0.5:
        return case("LinearRegressor", [x], {"coefficients": weights, "intercepts": rng.uniform(-1, 1, targets).tolist(), "targets": targets, "post_transform": maybe(rng, "NONE")}, ulps=16, absolute=32)
    targets += 1
    weights = rng.uniform(-1, 1, columns * targets).tolist()
    return case("LinearClassifier", [x], {"coefficients": weights, "intercepts": rng.uniform(-1, 1, targets).tolist(), "classlabels_ints": list(range(targets)), "post_transform": post}, outputs=2, ulps=32, absolute=32)


@learning
def trees(rng):
    """Trees of one decision and two leaves each."""
    count, targets = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    x = smooth(rng, np.float32, [int(rng.integers(1, 5)), 3])
    attributes = {
        "n_targets": targets,
        "nodes_treeids": [t for t in range(count) for _ in range(3)],
        "nodes_nodeids": [0, 1, 2] * count,
        "nodes_modes": [m for _ in range(count) for m in (pick(rng, ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE"]), "LEAF", "LEAF")],
        "nodes_featureids": [f for _ in range(count) for f in (int(rng.integers(3)), 0, 0)],
        "nodes_values": [v for _ in range(count) for v in (float(rng.uniform(-1, 1)), 0.0, 0.0)],
        "nodes_truenodeids": [1, 0, 0] * count,
        "nodes_falsenodeids": [2, 0, 0] * count,
        "target_treeids": [t for t in range(count) for _ in range(2)],
        "target_nodeids": [1, 2] * count,
        "target_ids": rng.integers(0, targets, 2 * count).tolist(),
        "target_weights": rng.uniform(-1, 1, 2 * count).tolist(),
        "aggregate_function": maybe(rng, pick(rng, ["SUM", "AVERAGE", "MIN", "MAX"])),
    }
    return case("TreeEnsembleRegressor", [x], attributes, ulps=16, absolute=16)


@learning
def vectors(rng):
    kernel = pick(rng, ["LINEAR", "POLY", "RBF", "SIGMOID"])
    count, columns = int(rng.integers(1, 4)), 3
    attributes = {"coefficients": rng.uniform(-1, 1, count).tolist(), "kernel_params": [0.5, 0.25, 2.0], "kernel_type": kernel, "n_supports": count,
                  "rho": [float(rng.uniform(-1, 1))], "support_vectors": rng.uniform(-1, 1, count * columns).tolist()}
    return case("SVMRegressor", [smooth(rng, np.float32, [int(rng.integers(1, 4)), columns])], attributes, ulps=64, absolute=64)
