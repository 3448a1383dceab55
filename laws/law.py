"""Laws as data, and their decision by Z3.

A law is a function from integer variables to premises and a claim. Its parameters are the variables. A parameter that `forms` lists takes
each of these values in turn (the forms are exhaustive: signs, open bounds, …). One that `cases` lists takes each of these numbers (which
are only a sample). Any other is an unbounded integer of Z3. So a law without cases is proved for all integers. A law with cases is bounded:
it is proved for all integers in combination with the listed numbers.
"""

import inspect
import itertools
from dataclasses import dataclass, field

import z3

LAWS = {}


@dataclass
class Statement:
    """One instance of a law: definitions, premises, claims, and false claims."""

    given: list = field(default_factory=list)
    needs: dict = field(default_factory=dict)
    claims: list = field(default_factory=list)
    wrongs: dict = field(default_factory=dict)
    variables: list = field(default_factory=list)
    counter: int = 0

    def give(self, *facts):
        """Definitions, and facts about every operand. They are not premises, so no mutation drops them."""
        self.given.extend(facts)

    def need(self, **facts):
        """Premises by name. `--mutants` drops each of them and expects a counterexample."""
        self.needs.update(facts)

    def claim(self, *facts):
        self.claims.extend(facts)

    def wrong(self, **facts):
        """Claims that look like the law and are false: `--mutants` expects a counterexample to each."""
        self.wrongs.update(facts)

    def int(self, name="v"):
        self.counter += 1
        variable = z3.Int(f"{name}!{self.counter}")
        self.variables.append(variable)
        return variable

    def said(self, fact, name="said"):
        """A definite answer of the scope: if it is true, the fact holds; if not, nothing is known."""
        self.counter += 1
        answer = z3.Bool(f"{name}!{self.counter}")
        self.given.append(z3.Implies(answer, fact))
        return answer

    def floor(self, a, b):
        """The floor of a / b for b >= 1; by its definition if b is a variable."""
        if isinstance(b, int):
            assert b >= 1
            return a // b if isinstance(a, int) else a / z3.IntVal(b)
        quotient = self.int("q")
        self.given.append(z3.Implies(b >= 1, z3.And(b * quotient <= a, a <= b * quotient + b - 1)))
        return quotient

    def ceil(self, a, b):
        return -self.floor(-a, b)


@dataclass
class Law:
    name: str
    says: str
    at: str
    build: object
    cases: dict
    where: object
    bound: str
    kind: str
    area: str
    bounded: bool

    def instances(self):
        names = list(self.cases)
        for values in itertools.product(*(self.cases[name] for name in names)):
            case = dict(zip(names, values))
            if self.where is None or self.where(**case):
                yield case

    def state(self, case):
        statement = Statement()
        arguments = []
        for name in list(inspect.signature(self.build).parameters)[1:]:
            if name in case:
                arguments.append(case[name])
            else:
                variable = z3.Int(name)
                statement.variables.append(variable)
                arguments.append(variable)
        self.build(statement, *arguments)
        return statement


def law(name, says, at, forms=None, cases=None, where=None):
    """Registers a law. `at` is the file and the function that rely on it: "src/dim/quotient.rs: merge_nested"."""

    def register(build):
        assert name not in LAWS, f"two laws are named {name}"
        area = inspect.getmodule(build).__name__
        bound = ", ".join(f"{key} in {span(values)}" for key, values in (cases or {}).items())
        LAWS[name] = Law(name, says, at, build, (forms or {}) | (cases or {}), where, bound, "z3", area, bool(cases))
        return build

    return register


def exhaustive(name, says, at, bound):
    """Registers a law about whole shapes that is tried at every small case. The function yields (case, whether it holds), and receives the
    name of a mutation or None.
    """

    def register(build):
        assert name not in LAWS, f"two laws are named {name}"
        area = inspect.getmodule(build).__name__
        LAWS[name] = Law(name, says, at, build, {}, None, bound, "exhaustive", area, True)
        return build

    return register


def span(values):
    values = list(values)
    if len(values) > 2 and values == list(range(values[0], values[-1] + 1)):
        return f"{values[0]}..{values[-1]}"
    return "{" + ", ".join(str(value) for value in values) + "}"


def imin(first, *rest):
    for other in rest:
        first = z3.If(first <= other, first, other)
    return first


def imax(first, *rest):
    for other in rest:
        first = z3.If(first >= other, first, other)
    return first


def clamp(value, low, high):
    return imax(low, imin(value, high))


# The limit of one question in Z3's own units, about ten times the cost of the hardest law. Unlike a time, it is the same on every machine.
EFFORT = 100_000_000


def solve(facts, timeout, variables=None, reach=None):
    """Returns sat, unsat or unknown, and the model. With a reach, all variables are within it."""
    solver = z3.Solver()
    solver.set("timeout", int(timeout * 1000))
    solver.set("rlimit", EFFORT)
    solver.set("random_seed", 1)
    solver.add(*facts)
    if reach is not None:
        solver.add(*[z3.And(-reach <= variable, variable <= reach) for variable in variables])
    result = solver.check()
    return str(result), solver.model() if result == z3.sat else None


def described(model):
    pairs = sorted((str(name), str(model[name])) for name in model)
    return ", ".join(f"{name} = {value}" for name, value in pairs if "!" not in name)


def decide(law_, timeout):
    """Returns the verdict on a law ("proved" | "bounded" | "FAILED") and a message."""
    count = 0
    if law_.kind == "exhaustive":
        for case, holds in law_.build(None):
            count += 1
            if not holds:
                return "FAILED", f"at {case}"
        if count == 0:
            return "FAILED", "there is no case"
        return "bounded", f"{law_.bound}: {count} cases"
    for case in law_.instances():
        count += 1
        statement = law_.state(case)
        facts = [*statement.given, *statement.needs.values()]
        # Contradictory premises prove everything.
        possible, _ = solve(facts, timeout)
        if possible == "unsat":
            return "FAILED", f"no case meets the premises{at(case)}"
        for claim in statement.claims:
            result, model = solve([*facts, z3.Not(claim)], timeout)
            if result == "sat":
                return "FAILED", f"counterexample{at(case)}: {described(model)}"
            if result != "unsat":
                return "FAILED", f"not decided{at(case)}"
    if count == 0:
        return "FAILED", "there is no case"
    if law_.bounded:
        return "bounded", f"{law_.bound}: {count} cases"
    return "proved", "all integers" + (f", {count} forms" if count > 1 else "")


def at(case):
    return f" at {', '.join(f'{name} = {value}' for name, value in case.items())}" if case else ""


def mutants_of(law_):
    """The names of the mutations of a law."""
    if law_.kind == "exhaustive":
        return list(getattr(law_.build, "mutants", ()))
    case = next(law_.instances(), None)
    if case is None:
        return []
    names = []
    for case in law_.instances():
        statement = law_.state(case)
        for name in [f"without {need}" for need in statement.needs] + [f"claim {wrong}" for wrong in statement.wrongs]:
            if name not in names:
                names.append(name)
    return names


def refute(law_, mutant, timeout):
    """Returns whether a mutated law has a counterexample, as it must, and the counterexample."""
    if law_.kind == "exhaustive":
        for case, holds in law_.build(mutant):
            if not holds:
                return True, str(case)
        return False, "every case passes"
    kind, _, name = mutant.partition(" ")
    for case in law_.instances():
        statement = law_.state(case)
        if kind == "without":
            if name not in statement.needs:
                continue
            needs = [fact for key, fact in statement.needs.items() if key != name]
            facts = [*statement.given, *needs, z3.Not(z3.And(*statement.claims))]
        else:
            if name not in statement.wrongs:
                continue
            facts = [*statement.given, *statement.needs.values(), z3.Not(statement.wrongs[name])]
        # Small numbers usually suffice, and are found fastest.
        for reach in (6, 40, None):
            result, model = solve(facts, timeout, statement.variables, reach)
            if result == "sat":
                return True, described(model) + at(case)
    return False, "no counterexample"
