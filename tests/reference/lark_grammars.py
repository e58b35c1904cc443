"""Grammars in Lark's syntax, each with an alphabet and texts, that show one difficulty each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["GRAMMARS", "Sample"]


@dataclass(frozen=True, slots=True)
class Sample:
    """A grammar; `alphabet` are the pieces of exhaustive or random texts of up to `length` pieces,
    `texts` are some of its kind."""

    name: str
    grammar: str
    alphabet: Sequence[str]
    length: int
    texts: Sequence[str]


GRAMMARS: list[Sample] = []


def g(
    name: str, grammar: str, alphabet: Sequence[str], length: int, texts: Sequence[str] = ()
) -> None:
    """Adds a sample."""
    GRAMMARS.append(Sample(name, grammar, alphabet, length, texts))


g("concat", 'start: start start | "x"', "xy", 7)
g("triple", 'start: start start start | start start | "x" |', "xy", 6)
g(
    "ops",
    'start: t\nt: t "-" t | t "/" t | "!" t | "[" t "]" | "k"',
    "k-/![]",
    5,
    ["[k-k]/!k", "k-k/k-k", "[[[k]]]"],
)
g("left", 'start: start "p" | "q"', "pq", 7)
g(
    "mutual_left",
    'start: m "p" | "q"\nm: n "r" | start\nn: start "s" | m "t"',
    "pqrst",
    5,
    ["qsrp", "qptrp"],
)
g("hidden_left", 'start: opt start "p" | "q"\nopt: "r" |', "pqr", 7, ["rrrqppp"])
g("hidden_left2", 'start: o q start "p" q | "w"\no: "r" |\nq: o o', "pwr", 6)
g("cyclic", 'start: u\nu: v | "p" u\nv: u | "q"', "pq", 7)
g("null_cycle", 'start: u\nu: v | "p"\nv: u | z\nz: u u |', "pq", 6)
g("all_null", 'start: f g h\nf: "p"*\ng: "q"?\nh: f g', "pq", 7)
g("palindrome", 'start: "p" start "p" | "q" start "q" | "p" | "q" |', "pq", 8, ["pqpqpqpqp"])
g("counted", 'start: "p" start "q" |', "pq", 9, ["p" * 25 + "q" * 25, "p" * 25 + "q" * 24])
g(
    "two_counts",
    'start: l r | p m\nl: "p" l "q" |\nr: "r"*\np: "p"*\nm: "q" m "r" |',
    "pqr",
    7,
    ["ppqqrr", "pqqrr"],
)
g(
    "else",
    'start: s\ns: "w" c "t" s | "w" c "t" s "o" s | "z"\nc: "c"\n%ignore " "',
    ["w", "c", "t", "o", "z", " "],
    6,
    ["w c t w c t z o z", "w c t w c t z o z o z"],
)
g("blank", 'start: W+\nW: "p"\n%ignore /[ \\t]+/', "p \tq", 6)
g("blank_nullable", 'start: W+ |\nW: "p "\n%ignore /[ ]+/\n%ignore /q/', "p q", 7)
g(
    "blank_string",
    'start: (S | W)+\nS: /"[^"]*"/\nW: /[a-z]+/\n%ignore / +/',
    'p" q',
    6,
    ['p "q r" s  "t"'],
)
g(
    "line_comment",
    'start: (N "*")* N\nN: /[0-9]+/\n%ignore /;[^\\n]*/\n%ignore /\\s+/',
    "1*; \n",
    6,
    ["1 * ; 2 \n 3 ; x", "; a\n1", "1 ;\n*1;1"],
)
g(
    "block_comment",
    'start: W+\nW: /[a-z]/\n%ignore /\\{-.*?-\\}/s\n%ignore " "',
    "p{-} ",
    7,
    ["p {- q -} r {--}", "{- p -} q -}"],
)
g("ignore_overlap", 'start: P Q*\nP: "p"\nQ: "q"\n%ignore "r"\n%ignore /rs+/', "pqrs", 7)
g("ignore_used", 'start: P (SP P)*\nP: "p"\nSP: " "\n%ignore " "', "p q", 8)
g("ignore_longest", 'start: (P | C)+\nP: "p"\nC: "#p"\n%ignore /#p*/', "p#q", 7)
g("ignore_exact", 'start: (P | SP P)+\nP: "p"\nSP: "  "\n%ignore /  ?/', "p ", 8)
g(
    "keyword",
    'start: (KW ID ";")*\nKW: "var"\nID: /[a-z]+/\n%ignore " "',
    ["v", "var", ";", " ", "r", "q"],
    6,
    ["var q; var var;", "varq;", "varvar;"],
)
g(
    "nocase",
    'start: "from"i ID ("to"i ID)?\nID: /[a-z_]\\w*/i\n%ignore /\\s+/',
    ["fr", "om", "FROM", "to", " ", "k", "É", "K", "ſ"],
    4,
    ["FrOm toto TO x", "from É to ß"],
)
g(
    "template",
    'start: sep{A, ","} | "(" sep{two{A, B}, ";"} ")"\nsep{x, s}: x (s x)*\ntwo{x, y}: x y\nA: "p"\nB: "q"',
    "pq,;()",
    5,
    ["(pq;pq;pq)", "p,p,p,p"],
)
g("repeat", 'start: "p"~2..4 ("q" "r"?)~3', "pqr", 7, ["ppqrqrqr", "ppppqqrq"])
g(
    "repeat_large",
    'start: ("p" | "q" "q")~10..60',
    ["p", "qq", "q", "p" * 10],
    4,
    ["p" * 60, "p" * 61, "qq" * 60, "qq" * 61, "p" * 9],
)
g(
    "repeat_terminal",
    'start: T T?\nT: "pq"~2..3 | /r{2,4}/',
    ["pq", "p", "q", "r"],
    6,
    ["pqpqpq", "r" * 8, "r" * 9],
)
g(
    "json",
    r"""
?start: value
?value: object | array | string | SIGNED_NUMBER -> number | "true" | "false" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: string ":" value
string: ESCAPED_STRING
%import common.ESCAPED_STRING
%import common.SIGNED_NUMBER
%import common.WS
%ignore WS""",
    '{}[]:,"1 k\\',
    4,
    [
        '{"k": [1, -2.5e+3, {"b\\"c": null}], "d" : true}',
        "[1,2,]",
        '"a\\\\"',
        '"a\\"',
        '{"é": "日本"}',
        "[[[[]]]]",
        '"a" "b"',
        '"\n"',
        "[1, \u20032]",
        "\u3000[]",
    ],
)
g(
    "arithmetic",
    r"""
?start: sum
?sum: product | sum "+" product | sum "-" product
?product: atom | product "*" atom | product "/" atom
?atom: NUMBER | "-" atom | NAME | "(" sum ")"
%import common.CNAME -> NAME
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE""",
    "1k+(). -",
    5,
    ["1+2*(3-x_1)/-4", "1.5e3 + 2 e", "((((1))))", "1.e5", "1e+5", "12 34"],
)
g(
    "query",
    r"""
start: stmt (";" stmt)* ";"?
stmt: "FIND"i cols "IN"i table where? order?
cols: "*" | col ("," col)*
col: expr ("AS"i NAME)?
table: NAME NAME?
where: "IF"i cond
order: "BY"i expr ("UP"i | "DOWN"i)?
cond: cond "AND"i cond | cond "OR"i cond | "NOT"i cond | expr OP expr | "(" cond ")"
expr: NAME | NAME "." NAME | NUMBER | STR | expr "+" expr | NAME "(" [expr ("," expr)*] ")" | "(" expr ")"
OP: "=" | "<" | ">" | "<=" | "<>"
NAME: /[a-z_][a-z0-9_]*/i
NUMBER: /\d+(\.\d+)?/
STR: /'([^']|'')*'/
%ignore /\s+/
%ignore /--[^\n]*/""",
    ["find ", "*", " in ", "t", " if ", "p=1", ";", "1"],
    4,
    [
        "FIND a.b, f(*) IN t",
        "find a as b, f(1,'x''y') in t u if not (a < 1 and b <> 'c') by a down;",
        "find * in t -- c if\n if a=1",
        "findainb",
        "find a in b if a=1or b=2",
    ],
)
g(
    "csv",
    'start: row (NL row)* NL?\nrow: cell ("," cell)*\ncell: RAW | Q |\nRAW: /[^,"\\n]+/\nQ: /"([^"]|"")*"/\nNL: /\\r?\\n/',
    'p,"\n\r',
    6,
    ['a,b\n"c""d",e\n', ",,,\n,,", '"a\nb",c'],
)
g(
    "list",
    'start: list\nlist: "(" [item ("," item)* ","?] ")"\nitem: A | list\nA: /[a-z]+/\n%ignore " "',
    "(),p ",
    6,
    ["((a,b),(c,(d)),)", "((()))", "(,)"],
)
g(
    "tags",
    'start: el\nel: "<" N attr* ">" (el | T)* "</" N ">" | "<" N attr* "/>"\nattr: N "=" S\nN: /[a-z]+/\nS: /"[^"]*"/\nT: /[^<>]+/\n%ignore /\\s+/',
    ["<", ">", "p", "/", "</p>", "<p>", " "],
    6,
    ['<a b="c d">x <d/> y</e>', "<a></a>", "<a>x</a>x", '<a b = "x" c="y" />'],
)
g(
    "rules",
    'start: rule+\nrule: N "=" alt ";"\nalt: seq ("|" seq)*\nseq: (fac)*\nfac: N | S | "(" alt ")" | "[" alt "]" | "{" alt "}"\nN: /[a-z]+/\nS: /\'[^\']*\'/\n%ignore /\\s+/',
    "p='|;()[]",
    5,
    ["a = b | 'c' (d | ) ;", "a=;b={c[d]};"],
)
g(
    "lisp",
    'start: sexp*\nsexp: ATOM | "(" sexp* ")" | "\'" sexp\nATOM: /[^\\s()\']+/\n%ignore /\\s+/\n%ignore /;[^\\n]*/',
    "p()' ;\n",
    5,
    ["(a (b 'c) ; x )\n )", "'(()())"],
)
g("lazy", 'start: A B?\nA: /".*?"/\nB: /x+?/', 'x"p', 7, ['"a"x', '"a"xx', '"a"b"'])
g("ordered", "start: A+\nA: /p|pq|q(p|pq)/", "pq", 8)
g("longer", 'start: A B\nA: "p" | "pq" | "pqr"\nB: "r" | "qr" | "pqr"', "pqr", 6)
g("escaped", "start: ESCAPED_STRING ESCAPED_STRING?\n%import common.ESCAPED_STRING", '"\\p', 7)
g("negative", "start: (N | B)+\nN: /0(?![1-9])|[1-9][0-9]*/\nB: /x/", "01x", 7)
g("positive", "start: (N | B)+\nN: /p+(?=q)/\nB: /[qr]/", "pqr", 7)
g(
    "word_not",
    'start: (ID | "if") (" " (ID | "if"))*\nID: /(?!if\\b)[a-z]+/',
    "if ",
    8,
    ["if iff fi", "ifif"],
)
g("line_end", "start: (L | N)+\nL: /p+$/m\nN: /\\n|q/", "pq\n", 7)
g("boundary", 'start: (K | W | S)+\nK: /p\\b/\nW: /[pq]{2}/\nS: "-"', "pq-", 7)
g(
    "unicode",
    'start: W ("," W)*\nW: /\\w+/\n%ignore /\\s+/',
    ["p", "é", "日", ",", " ", "\u2003", "😀", "·"],
    4,
    ["naïve, 日本語, Ωmega"],
)
g("priority", 'start: (A | B)+\nA.2: "pq"\nB.1: "p" | "q" "r"', "pqr", 7)
g("left_center", 'start: start "p" start "q" | start "r" | "s"', "pqrs", 6, ["spsqpsq"])
g("unproductive", 'start: "p" start | "q" | dead "r"\ndead: "s" dead', "pqrs", 6)
g("right_left", 'start: l\nl: l "," r | r\nr: "p" r | "p" | "(" l ")"', "p,()", 7, ["pp,(p,pp),p"])
g("optional", 'start: [A] [B] [C] "s"?\nA: "p"\nB: "q"\nC: "r"\n%ignore " "', "pqrs ", 6)
g("alias", '?start: a | b\na: "x" -> foo\n | "y" a -> bar\n!b: "z"+ | a b', "xyz", 7)
g("brackets", 'start: p*\np: "(" p* ")" | "[" p* "]"', "()[]", 7, ["([]([]))[]", "([)]"])
g("inherent", 'start: x | y\nx: x "r" | m\nm: "p" m "q" |\ny: "p" y | n\nn: "q" n "r" |', "pqr", 8)
g(
    "override",
    '%import common.DIGIT\n%override DIGIT: "7"\nstart: DIGIT+ WORDX\n%import common.WORD -> WORDX',
    "7a1",
    5,
)
g("extend", '%import common.DIGIT\n%extend DIGIT: "x"\nstart: DIGIT+', "7x1", 5)
g("deep_null", 'start: a b a\na: b b | "x" a "y"\nb: | "z"', "xyz", 7, ["xxzzyyzxy"])
g("ignore_letter", 'start: "(" (W | start)* ")"\nW: /[a-c]+/\n%ignore /[xb]+/', "(abx)", 6)
g(
    "ignore_word",
    'start: NAME ("." NAME)*\n%import common.CNAME -> NAME\n%ignore /[ \\t\\f]+/\n%ignore /\\\\[\\t \\f]*\\r?\\n/\n%ignore /#[^\\n]*/',
    "p.# \n\\",
    5,
    ["a . b # c"],
)
