"""SQL for a given table, and arithmetic, with shipped grammars: whatever the model picks, it parses.

    python examples/grammar_answers.py --temperature 1

The grammar knows the table's columns, so a query never fails for its form or for a name. That it
answers the question is up to the model.
"""

from __future__ import annotations

import argparse
import ast
import operator
import sqlite3
from collections.abc import Callable
from typing import Any

import constrain
from constrain import grammars

TABLE = "city"
COLUMNS = ["name", "country", "population", "area"]
ROWS = [
    ("Oslo", "Norway", 709_000, 454.0),
    ("Bergen", "Norway", 291_000, 465.0),
    ("Lisbon", "Portugal", 546_000, 100.1),
    ("Porto", "Portugal", 232_000, 41.4),
    ("Vienna", "Austria", 1_983_000, 414.8),
]
QUESTIONS = [
    "Which cities have more than 500000 people?",
    "How many cities does each country have?",
    "What is the largest city by area?",
]
PROBLEMS = [
    "A ticket costs 12.50 and there are 7 of them, and a fee of 3 on top.",
    "Share 144 apples among 12 children, two apples each are rotten.",
]


def queries(
    model: Any, tokenizer: Any, vocabulary: constrain.Vocabulary, **options: Any
) -> list[str]:
    """A SELECT on the table for each question."""
    from constrain.decoding import generate_batch

    spec = grammars.load("sql", tables={TABLE: COLUMNS})
    compiled = constrain.compile(spec, vocabulary)
    system = (
        f"The table {TABLE} has the columns {', '.join(COLUMNS)}. "
        "Answer with one SQL query and nothing else."
    )
    prompts = [
        [{"role": "system", "content": system}, {"role": "user", "content": question}]
        for question in QUESTIONS
    ]
    results = generate_batch(model, tokenizer, prompts, compiled, **options)
    return [result.text for result in results]


def expressions(
    model: Any, tokenizer: Any, vocabulary: constrain.Vocabulary, **options: Any
) -> list[str]:
    """An arithmetic expression for each problem."""
    from constrain.decoding import generate_batch

    compiled = constrain.compile(grammars.load("arithmetic"), vocabulary)
    system = "Answer with the arithmetic that solves the problem, for example 3 * (4 + 5)."
    prompts = [
        [{"role": "system", "content": system}, {"role": "user", "content": problem}]
        for problem in PROBLEMS
    ]
    results = generate_batch(model, tokenizer, prompts, compiled, **options)
    return [result.text for result in results]


def run(query: str) -> list[tuple[Any, ...]]:
    """The rows that SQLite finds.  Raises sqlite3.Error for what it cannot read."""
    base = sqlite3.connect(":memory:")
    try:
        base.execute(f"CREATE TABLE {TABLE} ({', '.join(COLUMNS)})")
        base.executemany(f"INSERT INTO {TABLE} VALUES (?, ?, ?, ?)", ROWS)
        return base.execute(query).fetchmany(5)
    finally:
        base.close()


_OPERATORS: dict[type, Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


def value(expression: str) -> float:
    """What an expression comes to.

    Raises SyntaxError for what is none, ArithmeticError for what has no value (or one too large).
    """

    def of(node: ast.AST) -> float:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            power = float(of(node.left)) ** float(of(node.right))
            if isinstance(power, complex):
                raise ArithmeticError("a root of a negative number")
            return power
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](of(node.left), of(node.right))
        if isinstance(node, ast.UnaryOp):
            return _OPERATORS[type(node.op)](of(node.operand))
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return node.value
        raise SyntaxError(f"no arithmetic: {ast.dump(node)}")

    return of(ast.parse(expression, mode="eval").body)


def main() -> None:
    parser = argparse.ArgumentParser(description="SQL and arithmetic with shipped grammars.")
    parser.add_argument("--max-tokens", type=int, default=60)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    options = vars(parser.parse_args())
    from constrain.models import load_model

    model, tokenizer = load_model()
    vocabulary = constrain.Vocabulary.from_tokenizer(tokenizer, model=model)
    for question, query in zip(QUESTIONS, queries(model, tokenizer, vocabulary, **options)):
        try:
            found: Any = run(query)
        except sqlite3.Error as error:  # a function of text given a number, say
            found = error
        print(f"{question}\n  {query}\n  {found}")
    for problem, expression in zip(PROBLEMS, expressions(model, tokenizer, vocabulary, **options)):
        try:
            result: Any = value(expression)
        except ArithmeticError as error:
            result = error
        print(f"{problem}\n  {expression} = {result}")


if __name__ == "__main__":
    main()
