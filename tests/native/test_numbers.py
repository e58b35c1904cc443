"""Number languages: the native code against brute force over texts, and its documented corners.

The native code is driven through a small program (numbers_driver.cpp) that is compiled here, so that
what is tested needs no binding.  Exactness is tested from both sides: every prefix of an admissible
text must be alive, and every prefix that is alive must come with a completion that the reference
finds admissible.
"""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "constrain" / "native"

FALSE, TRUE = 0, 1


def _load_reference() -> ModuleType:
    # By path: as a top-level module it would shadow the standard library's `numbers`.
    path = ROOT / "tests" / "reference" / "numbers.py"
    spec = importlib.util.spec_from_file_location("constrain_tests_reference_numbers", path)
    if spec is None or spec.loader is None:
        raise ImportError(str(path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = _load_reference()


class Driver:
    """The driver program: one command, one answer."""

    def __init__(self, program: Path) -> None:
        self.process = subprocess.Popen(
            [str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, command: str) -> str:
        stdin, stdout = self.process.stdin, self.process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the driver has no pipes")
        stdin.write(command + "\n")
        stdin.flush()
        answer = stdout.readline()
        if not answer:
            raise RuntimeError(f"the driver died on {command!r}")
        return answer.strip()

    def define(self, *formula: str) -> int:
        return int(self("def " + " ".join(formula)))

    def read(
        self, goal: int, text: str, tracked: tuple[int, ...] = (), capture: bool = False
    ) -> list[str]:
        ids = " ".join(map(str, (len(tracked), *tracked)))
        return self(f"read {goal} {int(capture)} {ids} {text}").split(" ")

    def alive(self, goal: int, text: str) -> bool:
        return self.read(goal, text)[0] == "alive"

    def accepts(self, goal: int, text: str) -> bool:
        answer = self.read(goal, text)
        return answer[0] == "alive" and answer[2] == "1"

    def completion(self, goal: int, text: str) -> str | None:
        answer = self.read(goal, text)
        return answer[-1][1:] if answer[-1].startswith("=") else None

    def cursor(self, goal: int, text: str) -> str:
        return self(f"cursor {goal} 0 0 {text}")

    def close(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        code = self.process.wait(timeout=30)
        if self.process.stdout is not None:
            self.process.stdout.close()
        assert code == 0


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        if os.environ.get("CI"):
            pytest.fail("no C++ compiler")
        pytest.skip("no C++ compiler")
    out = tmp_path_factory.mktemp("numbers") / "driver"
    sources = [NATIVE / "src" / "decimal.cpp", *sorted((NATIVE / "src").glob("number_*.cpp"))]
    command = [compiler, "-std=c++20", "-O1", "-Wall", "-Wextra", f"-I{NATIVE}/include"]
    command += [*map(str, sources), str(ROOT / "tests" / "native" / "numbers_driver.cpp")]
    subprocess.run([*command, "-o", str(out)], check=True)
    return out


@pytest.fixture
def driver(program: Path) -> Iterator[Driver]:
    made = Driver(program)
    yield made
    made.close()


@pytest.fixture
def any_spelling(driver: Driver) -> Driver:
    driver("pool any")
    return driver


# ---------------------------------------------------------------- exactness

CONSTANTS = [
    "0",
    "1",
    "2",
    "5",
    "10",
    "12",
    "20",
    "25",
    "50",
    "-1",
    "-2",
    "-5",
    "-12",
    "0.5",
    "1.5",
    "2.5",
    "0.25",
    "-0.5",
]
DIVISORS = ["1", "2", "3", "4", "5", "10", "0.5", "0.25", "2.5", "0.1"]
ALPHABET = "-0125.e"
LENGTH = 5

_values = st.sampled_from(CONSTANTS)
_atoms = st.one_of(
    st.tuples(st.sampled_from(["min", "max"]), _values, st.booleans()),
    st.tuples(st.just("mult"), st.sampled_from(DIVISORS)),
    st.just(("int",)),
    st.just(("lex",)),
    st.tuples(st.just("in"), st.lists(_values, min_size=1, max_size=3, unique=True).map(tuple)),
)
_formulas = st.recursive(
    _atoms,
    lambda inner: st.one_of(
        st.tuples(
            st.sampled_from(["and", "and", "or", "one"]),
            st.lists(inner, min_size=2, max_size=3).map(tuple),
        ),
        st.tuples(st.just("not"), inner),
    ),
    max_leaves=6,
)


def check_exact(driver: Driver, formula: tuple, plain: bool, seed: int) -> None:
    driver("pool plain" if plain else "pool any")
    goal = driver.define(reference.notation(formula))
    mode = reference.policy(formula, plain)
    accepted = reference.accepted(formula, plain, ALPHABET, LENGTH)
    prefixes = {text[:end] for text in accepted for end in range(1, len(text) + 1)}
    walked = dict(
        item.rsplit(":", 1) for item in driver(f"walk {goal} {LENGTH} {ALPHABET}").split()
    )
    assert prefixes <= set(walked), "a prefix of an admissible text is dead"
    assert {text for text, truth in walked.items() if truth == "1"} == accepted
    rng = random.Random(seed)
    alive = sorted(walked)
    for text in rng.sample(alive, min(len(alive), 30)):
        more = driver.completion(goal, text)
        assert more is not None, f"no completion of {text}"
        whole = text + more
        assert reference.text_in(formula, whole), f"{whole} is not in the language"
        assert reference.spelling_allowed(whole, mode)
        shorter = [len(t) for t in accepted if t.startswith(text)]
        assert not shorter or len(whole) <= min(shorter)
    assert driver(f"sat {goal}") == str(int(bool(alive)))
    listed = driver(f"enum {goal} 60").split()
    if listed[0] == "yes":
        wanted = {
            v
            for v in reference.SAMPLES
            if (mode != "integer" and reference.holds(formula, v, False))
            or (v.denominator == 1 and reference.holds(formula, v, True))
        }
        assert [Fraction(v) for v in listed[1:]] == sorted(wanted)


def check_tracked(driver: Driver, formula: tuple, others: list[tuple], plain: bool) -> None:
    driver("pool plain" if plain else "pool any")
    goal = driver.define(reference.notation(formula))
    tracked = tuple(driver.define(reference.notation(other)) for other in others)
    accepted = sorted(reference.accepted(formula, plain, ALPHABET, LENGTH))
    for text in random.Random(len(accepted)).sample(accepted, min(len(accepted), 25)):
        value = reference.value_of(text)
        lexical = reference.is_lexical_integer(text)
        truths = "".join(str(int(reference.holds(other, value, lexical))) for other in others)
        answer = driver.read(goal, text, tracked)
        assert answer[:4] == ["alive", "1", "1", "-" + truths], text
        answer = driver.read(goal, text, tracked, capture=True)
        assert answer[:4] == ["alive", "1", "1", "-" + truths], text
        assert Fraction(answer[4]) == value


@given(formula=_formulas, plain=st.booleans(), seed=st.integers(0, 999))
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_viability_is_exact(driver: Driver, formula: tuple, plain: bool, seed: int) -> None:
    check_exact(driver, formula, plain, seed)


@given(formula=_formulas, others=st.lists(_formulas, min_size=1, max_size=3), plain=st.booleans())
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_tracked_truths_and_values(
    driver: Driver, formula: tuple, others: list[tuple], plain: bool
) -> None:
    check_tracked(driver, formula, others, plain)


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize(
    "formula",
    [
        ("true",),
        ("int",),
        ("lex",),
        ("min", "0", False),
        ("and", (("int",), ("min", "1", False), ("max", "50", False))),
        ("and", (("min", "0", False), ("max", "1", False))),
        ("one", (("min", "10", False), ("max", "25", True))),
        ("and", (("int",), ("not", ("mult", "2")), ("not", ("mult", "3")))),
        ("and", (("int",), ("not", ("lex",)))),
        ("and", (("mult", "0.25"), ("min", "-1", True), ("max", "2", True))),
        ("or", (("in", ("5", "0.5")), ("and", (("int",), ("max", "-12", False))))),
    ],
)
def test_typical_languages(driver: Driver, formula: tuple, plain: bool) -> None:
    check_exact(driver, formula, plain, 1)
    check_tracked(driver, formula, [("int",), ("lex",), ("min", "5", False)], plain)


# ---------------------------------------------------------------- policies


def test_plain_integers_have_one_spelling(driver: Driver) -> None:
    goal = driver.define("int")
    assert driver.accepts(goal, "-12")
    assert driver.accepts(goal, "0")
    for text in ["1.", "1e", "0.", "-0", "01", "+1"]:
        assert not driver.alive(goal, text)


def test_plain_numbers_have_no_exponent_but_where_anything_goes(driver: Driver) -> None:
    bounded = driver.define("min 0 0")
    assert driver.accepts(bounded, "1.5")
    assert not driver.alive(bounded, "1e")
    assert not driver.alive(driver.define("min 1 0"), "0")
    assert driver.accepts(TRUE, "-0.5e+7")
    # Everything, said in another way.
    assert driver.accepts(driver.define("or 2 min 0 0 max 5 0"), "1e5")


def test_any_spelling_of_a_value(any_spelling: Driver) -> None:
    goal = any_spelling.define("and 2 int min 1 0")
    for text in ["1.0", "10e-1", "0.1e1", "1e400", "0.00001e5"]:
        assert any_spelling.accepts(goal, text)
    assert any_spelling.alive(goal, "0")
    assert any_spelling.alive(goal, "12.5")
    assert not any_spelling.alive(goal, "12.5e-")
    assert not any_spelling.alive(goal, "12.5e-1")
    zero = any_spelling.define("in 1 0")
    for text in ["-0", "0.000", "0e99", "-0.0E-7"]:
        assert any_spelling.accepts(zero, text)


def test_no_enum_value_is_unwritable(driver: Driver) -> None:
    goal = driver.define("in 2 5 1e300")
    assert driver.accepts(goal, "1e300")
    assert driver.accepts(goal, "5")
    assert not driver.alive(goal, "1e301")
    # 40 digits are written out, 41 may have an exponent.
    assert not driver.alive(driver.define("in 1 1e39"), "1e")
    assert driver.accepts(driver.define("in 1 1e40"), "1e40")
    assert driver.accepts(driver.define("min 1e300 0"), "2e300")
    # What is excluded does not change what may be written.
    assert not driver.alive(driver.define("and 2 int not in 1 1e300"), "1e")


def test_integers_not_written_as_integers(driver: Driver) -> None:
    goal = driver.define("and 2 int not lex")
    assert driver(f"sat {goal}") == "1"
    assert driver.accepts(goal, "7.0")
    assert not driver.accepts(goal, "7")


# ---------------------------------------------------------------- what cursors remember


def test_digits_are_forgotten_when_nothing_depends_on_them(driver: Driver) -> None:
    for formula, texts in [
        ("int", ["1", "123456", "-5"]),
        ("min 0 0", ["1", "99", "123456789012345678901234567890"]),
        ("and 2 int min 10 0", ["10", "77", "1000000"]),
        ("and 2 min 0 0 max 1 0", ["0.5", "0.123", "0.1234567890123456789012345"]),
        ("true", ["1", "-1", "99"]),
    ]:
        goal = driver.define(*formula.split())
        cursors = {driver.cursor(goal, text) for text in texts}
        assert len(cursors) == 1, formula
        assert cursors.pop().split()[1] == "0"
    goal = driver.define("and 2 int min 10 0")
    assert driver.cursor(goal, "5") != driver.cursor(goal, "6")


def test_long_prefixes_are_exact_and_can_be_released(driver: Driver) -> None:
    big = "123456789012345678901234567890"
    goal = driver.define("in 2", big, "7")
    for end in range(1, len(big) + 1):
        assert driver.alive(goal, big[:end])
        assert not driver.alive(goal, big[:end] + "x")
    assert driver.accepts(goal, big)
    assert not driver.alive(goal, big[:-1] + "1")
    assert driver.completion(goal, big[:3]) == big[3:]
    product = 123456789123456789123
    multiple = driver.define("and 2 int mult", str(product))
    assert driver.accepts(multiple, str(product * 987654321987654321))
    assert not driver.accepts(multiple, str(product * 987654321987654321 + 1))
    before = int(driver("bytes"))
    driver("mark")
    digits = "".join(random.Random(1).choice("0123456789") for _ in range(600))
    assert driver.alive(multiple, "1" + digits)
    driver("release")
    assert driver.alive(multiple, "1" + digits[::-1])
    assert int(driver("bytes")) - before < 400_000


def test_captured_values(driver: Driver) -> None:
    for text in ["0", "-0", "1.50", "12e-1", "1e400", "-123456789.123456789123456789e-5"]:
        answer = driver.read(TRUE, text, capture=True)
        assert Decimal(answer[4]) == Decimal(text)
    assert driver.read(TRUE, "1e9000001", capture=True)[0] == "dead"
    assert driver.alive(TRUE, "1e99999999999999999999")


def test_huge_exponents_are_judged(any_spelling: Driver) -> None:
    small = any_spelling.define("max 5 0")
    assert any_spelling.accepts(small, "9e-99999999999999999999")
    assert not any_spelling.alive(small, "9e99999999999999999999")
    whole = any_spelling.define("int")
    assert any_spelling.accepts(whole, "1.5e99999999999999999999")
    assert not any_spelling.alive(whole, "1.5e-99999999999999999999")


# ---------------------------------------------------------------- formulas


def test_formulas_simplify(driver: Driver) -> None:
    one = driver.define
    assert one("and 2 min 5 0 max 4 0") == FALSE
    assert one("and 2 min 5 1 max 5 0") == FALSE
    assert one("and 2 in 2 1 2 in 2 3 4") == FALSE
    assert one("and 2 mult 4 not mult 2") == FALSE
    assert one("and 2 int not int") == FALSE
    assert one("or 2 lex not lex") == TRUE
    assert one("mult 0") == FALSE
    assert one("mult -3") == one("mult 3.0")
    assert one("and 2 min 5 0 max 5 0") == one("in 1 5.0")
    assert one("and 2 min 1 0 min 2 0") == one("min 2 0")
    assert one("or 2 in 1 1 in 1 2") == one("in 2 2 1.0")
    assert one("not not one 2 int min 0 0") == one("one 2 min 0 0 int")
    assert one("and 2 int in 3 1 1.5 2") == one("in 2 1 2")
    assert one("one 2 int int") == FALSE
    assert one("not min 3 0") == one("max 3 1")


def test_divisibility_is_exact(driver: Driver) -> None:
    def holds(formula: str, value: str) -> bool:
        return driver(f"holds {driver.define(formula)} {value}") == "1"

    assert holds("mult 0.01", "19.99")
    assert not holds("mult 0.01", "19.999")
    assert holds("mult 1e-8", "12391239123")
    assert holds("mult 0.5", "1e308")
    assert not holds("mult 0.123456789", "1e308")
    assert holds("mult 1e-308", "1e308")
    rng = random.Random(5)
    for _ in range(300):
        divisor = Fraction(rng.randrange(1, 10 ** rng.randrange(1, 30)))
        factor = rng.randrange(1, 10 ** rng.randrange(1, 40))
        scale = rng.randrange(-20, 20)
        value = int(divisor) * factor + rng.choice([0, 0, 1])
        assert holds(f"mult {divisor}e{scale}", f"{value}e{scale}") == (value % divisor == 0)


def test_too_many_divisors_are_judged_at_the_end(driver: Driver) -> None:
    primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31]
    parts = " ".join(f"not mult {p}" for p in primes)
    goal = driver.define(f"and {len(primes) + 1} int", parts)
    assert driver.accepts(goal, "37")
    assert driver.alive(goal, "34")
    assert not driver.accepts(goal, "34")


def test_limits_are_typed(driver: Driver) -> None:
    assert driver("def min 1e9999999999 0") == "limit number_exponent"
    assert driver("def max 1e10000001 0") == "limit number_exponent"
    assert driver("def in 1 1e-10000001") == "limit number_exponent"
    assert driver("def mult 1e3000") == "unsupported"
    assert driver.define("min 1e9999999 0") > TRUE


# ---------------------------------------------------------------- decimals


@given(st.decimals(allow_nan=False, allow_infinity=False, places=None))
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_decimal_texts(driver: Driver, value: Decimal) -> None:
    text, is_integer, _ = driver(f"decimal {value}").split()
    assert Decimal(text) == value
    assert reference.NUMBER.fullmatch(text)
    if abs(value.adjusted()) < 1000:
        assert (is_integer == "1") == (value == value.to_integral_value())


@given(st.decimals(allow_nan=False, allow_infinity=False), st.decimals(-5, 5))
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_decimal_order(driver: Driver, a: Decimal, b: Decimal) -> None:
    assert int(driver(f"compare {a} {b}")) == (a > b) - (a < b)


def test_decimal_corners(driver: Driver) -> None:
    assert driver("decimal -0.0e5") == "0 1 0"
    assert driver("decimal 1E+2") == "100 1 2"
    assert driver("decimal 0.10e-5") == "0.000001 0 -6"
    assert driver("decimal 1e400") == "1e400 1 400"
    assert driver("decimal 1e1000000001") == "limit number_exponent"
    for text in ["01", ".5", "5.", "+1", "1e", "nan", "-", "1e+", "0x1", "1_0"]:
        assert driver(f"decimal {text}").startswith("error")
