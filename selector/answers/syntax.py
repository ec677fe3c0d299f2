"""Parse tokens into trees: a small recursive descent with implicit multiplication.

The grammar is what people and models write in final answers, in LaTeX or in plain text. Whatever it does not know
raises ``Unreadable``; nothing is skipped, so that no answer is read by half.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from selector.answers.tokens import FUNCTIONS, GREEK, Token, Unreadable, read_decimal

MAX_DEPTH = 40
MAX_FACTORS = 120  # of one product, whose tree is as deep

_SAME_FUNCTION = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}
_INVERSE = {"sin": "arcsin", "cos": "arccos", "tan": "arctan", "cot": "arccot"}
_DECORATED = {"overline", "vec", "overrightarrow", "hat", "bar", "widehat", "tilde", "dot"}
_NAMED = {"angle", "triangle", "RR", "ZZ", "NN", "QQ", "CC", "emptyset"}
_CLOSING = {"(": ")", "[": "]", "{": "}", "\\{": "\\}"}
_PRODUCT_SIGNS = {"*", "\\cdot", "\\times"}
_QUOTIENT_SIGNS = {"/", "\\div"}
_CALLED = {"f", "g", "h"}  # f(x) is a function of x; any other letter before a bracket is a factor


class Node(NamedTuple):
    """A tree: ``num`` holds a Fraction, ``sym`` a name, everything else its operands in ``args``."""

    op: str
    args: tuple[Node, ...] = ()
    value: Fraction | None = None
    name: str = ""


def number(value: int | Fraction) -> Node:
    """Return the leaf of a rational number."""
    return Node("num", value=Fraction(value))


def symbol(name: str) -> Node:
    """Return the leaf of a variable."""
    return Node("sym", name=name)


def parse(tokens: list[Token]) -> Node:
    """Parse one expression, to its last token. Raises Unreadable."""
    parser = _Parser(list(tokens))
    node = parser.chosen()
    if parser.position != len(tokens):
        raise Unreadable(parser.peek())
    return node


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.position = 0
        self.depth = 0
        self.bars = 0  # open absolute values: a bar then closes one

    def peek(self, ahead: int = 0) -> str:
        index = self.position + ahead
        return self.tokens[index].text if index < len(self.tokens) else ""

    def kind(self, ahead: int = 0) -> str:
        index = self.position + ahead
        return self.tokens[index].kind if index < len(self.tokens) else ""

    def take(self, wanted: str | None = None) -> str:
        text = self.peek()
        if not text or (wanted is not None and text != wanted):
            raise Unreadable(text)
        self.position += 1
        return text

    def chosen(self) -> Node:
        """Read an expression, or ``n \\choose k``."""
        node = self.expression()
        if self.peek() != "\\choose":
            return node
        self.take()
        return Node("binom", (node, self.expression()))

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("nested too deep")
        terms = [self.term()]
        while self.peek() in ("+", "-"):
            negative = self.take() == "-"
            term = self.term()
            terms.append(Node("neg", (term,)) if negative else term)
        self.depth -= 1
        return terms[0] if len(terms) == 1 else Node("add", tuple(terms))

    def term(self) -> Node:
        negative = self.signs()
        result = self.product()
        return Node("neg", (result,)) if negative else result

    def signs(self) -> bool:
        """Take any number of signs; tell whether they make a minus."""
        negative = False
        while self.peek() in ("-", "+"):
            negative ^= self.take() == "-"
        return negative

    def product(self) -> Node:
        result = self.power()
        for _ in range(MAX_FACTORS):
            sign = self.peek()
            if sign in _PRODUCT_SIGNS:
                self.take()
                result = Node("mul", (result, self.signed_power()))
            elif sign in _QUOTIENT_SIGNS:
                self.take()
                result = Node("div", (result, self.signed_power()))
            elif sign == "\\mod":
                raise Unreadable(sign)
            elif self.starts_factor():
                result = self.juxtaposed(result)
            else:
                return result
        raise Unreadable("too many factors")

    def juxtaposed(self, left: Node) -> Node:
        """Multiply by what follows, or add it where the two are a mixed number: ``2\\frac{1}{3}``, ``2 1/3``."""
        whole = left.op == "num" and left.value is not None and left.value.denominator == 1
        previous = self.tokens[self.position - 1]
        if whole and previous.kind == "num" and previous.text.isdigit():
            start = self.position
            if self.peek() == "\\frac":
                fraction = self.power()
                if fraction.op == "div" and all(part.op == "num" for part in fraction.args):
                    return Node("add", (left, fraction))
                return Node("mul", (left, fraction))
            if self.kind() == "num" and self.peek(1) == "/" and self.kind(2) == "num":
                top, _, bottom = self.take(), self.take(), self.take()
                if top.isdigit() and bottom.isdigit() and self.peek() not in ("^", "!"):
                    return Node("add", (left, Node("div", (number(int(top)), number(int(bottom))))))
                self.position = start
        if self.kind() in ("num", "sci"):
            raise Unreadable("two numbers side by side")
        return Node("mul", (left, self.power()))

    def signed_power(self) -> Node:
        negative = self.signs()
        result = self.power()
        return Node("neg", (result,)) if negative else result

    def starts_factor(self) -> bool:
        text, kind = self.peek(), self.kind()
        if kind in ("num", "sci", "word"):
            return text != "choose"
        if kind == "cmd":
            name = text[1:]
            return (
                name in FUNCTIONS
                or name in GREEK
                or name in _DECORATED
                or name in ("frac", "sqrt", "binom", "pi", "infty", "lfloor", "lceil", "angle", "triangle", "exp")
            )
        return text in ("(", "[", "{") or (text == "|" and self.bars == 0)

    def power(self) -> Node:
        base = self.postfixed()
        n_marks = 0
        while self.peek() in ("^", "**"):
            n_marks += 1
            if n_marks > 4:
                raise Unreadable("^")
            if self.peek(1) == "\\circ" or (self.peek(1) == "{" and self.peek(2) == "\\circ" and self.peek(3) == "}"):
                self.position += 2 if self.peek(1) == "\\circ" else 4
                base = Node("deg", (base,))
                continue
            self.take()
            base = Node("pow", (base, self.exponent()))
            while self.peek() == "!":
                self.take()
                base = Node("factorial", (base,))
        return base

    def exponent(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("nested too deep")
        negative = self.signs()
        result = self.postfixed()
        if self.peek() in ("^", "**"):
            self.take()
            result = Node("pow", (result, self.exponent()))
        self.depth -= 1
        return Node("neg", (result,)) if negative else result

    def postfixed(self) -> Node:
        node = self.atom()
        start = self.position
        while self.peek() in ("!", "%", "\\%"):
            if self.position - start > 2:
                raise Unreadable(self.peek())
            if self.peek() == "!" == self.peek(1):
                raise Unreadable("double factorial")
            sign = self.take()
            if sign == "!":
                node = Node("factorial", (node,))
            else:
                node = Node("div", (node, number(100)))
        return node

    def group(self, opening: str) -> Node:
        self.take(opening)
        node = self.chosen()
        self.take(_CLOSING[opening])
        return node

    def argument(self) -> Node:
        """Read what a LaTeX command takes: a group, or one token (one digit of a number)."""
        if self.peek() == "{":
            return self.group("{")
        if self.kind() == "num":
            token = self.tokens[self.position]
            if token.text.isdigit() and len(token.text) > 1:
                self.tokens[self.position] = Token("num", token.text[1:], False)
                return number(int(token.text[0]))
        return self.atom()

    def atom(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("nested too deep")
        text, kind = self.peek(), self.kind()
        if kind == "num":
            node = self.number()
        elif kind == "sci":
            node = number(read_decimal(self.take()))
        elif text in ("(", "[", "{"):
            node = self.group(text)
        elif text == "|":
            self.take()
            self.bars += 1
            inner = self.expression()
            self.bars -= 1
            self.take("|")
            node = Node("abs", (inner,))
        elif kind == "cmd" and text[1:] not in FUNCTIONS:
            node = self.command()
        elif kind in ("word", "cmd"):
            node = self.word()
        else:
            raise Unreadable(text)
        self.depth -= 1
        return node

    def number(self) -> Node:
        text = self.take()
        if self.peek() == "_":
            return self.in_base(text)
        if self.peek() in ("\\overline", "\\dot", "\\bar") and "." in text:
            self.take()
            return self.repeating(text, self.digits())
        if text.endswith(".") and self.peek() == "(" and self.kind(1) == "num" and self.peek(2) == ")":
            return self.repeating(text, self.digits())
        if "." in text and self.peek() == "(" and self.peek(1).isdigit() and self.peek(2) == ")":
            return self.repeating(text, self.digits())
        return number(read_decimal(text))

    def digits(self) -> str:
        opening = self.take() if self.peek() in ("{", "(") else ""
        digits = self.take()
        if opening:
            self.take(_CLOSING[opening])
        if not digits.isdigit():
            raise Unreadable(digits)
        return digits

    def repeating(self, start: str, period: str) -> Node:
        n_fixed = len(start.partition(".")[2])
        return number(read_decimal(start) + Fraction(int(period), (10 ** len(period) - 1) * 10**n_fixed))

    def in_base(self, text: str) -> Node:
        """Read digits with a base below: ``101_2`` is five."""
        self.take("_")
        opening = self.take() if self.peek() == "{" else ""
        inner = self.take() if self.peek() == "(" else ""
        base_text = self.take()
        if inner:
            self.take(")")
        if opening:
            self.take("}")
        if not (text.isdigit() and base_text.isdigit() and 2 <= int(base_text) <= 36):
            raise Unreadable(text)
        try:
            return number(int(text, int(base_text)))
        except ValueError:
            raise Unreadable(text) from None

    def command(self) -> Node:
        name = self.take()[1:]
        if name == "frac":
            top = self.argument()
            return Node("div", (top, self.argument()))
        if name == "sqrt":
            if self.peek() == "[":
                degree = self.group("[")
                return Node("root", (self.argument(), degree))
            return Node("root", (self.argument(), number(2)))
        if name == "binom":
            top = self.argument()
            return Node("binom", (top, self.argument()))
        if name in ("lfloor", "lceil"):
            inner = self.expression()
            self.take("\\rfloor" if name == "lfloor" else "\\rceil")
            return Node("floor" if name == "lfloor" else "ceil", (inner,))
        if name == "pi":
            return Node("pi")
        if name == "infty":
            return Node("inf")
        if name in GREEK:
            return self.named("\\" + name)
        if name in _DECORATED:
            return symbol(f"\\{name}({self.letters_of_group()})")
        if name in ("angle", "triangle"):
            letters = ""
            while self.kind() == "word" and self.peek().isupper():
                letters += self.take()
            if letters:
                return symbol(f"\\{name} {letters}")
        raise Unreadable("\\" + name)

    def letters_of_group(self) -> str:
        if self.peek() != "{":
            return self.take()
        self.take("{")
        letters = ""
        while self.peek() not in ("}", ""):
            letters += self.take()
        self.take("}")
        return letters

    def word(self) -> Node:
        name = self.take().lstrip("\\")
        name = _SAME_FUNCTION.get(name, name)
        if name in FUNCTIONS:
            return self.function(name)
        if name == "pi":
            return Node("pi")
        if name in ("infinity", "infty", "inf"):
            return Node("inf")
        if name in ("sqrt", "cbrt"):
            inner = self.group("(") if self.peek() == "(" else self.argument()
            return Node("root", (inner, number(2 if name == "sqrt" else 3)))
        if name == "abs":
            return Node("abs", (self.group("("),))
        if name in ("e", "i") and self.peek() != "_":
            return Node(name)
        if name in GREEK:
            name = "\\" + name
        return self.named(name)

    def named(self, name: str) -> Node:
        """Read a variable with its subscript and primes; f, g and h before a bracket are functions."""
        if self.peek() == "_":
            self.take()
            name += "_" + self.subscript()
        while self.peek() == "'":
            name += self.take()
        if name.rstrip("'") in _CALLED and self.peek() == "(":
            return Node("call", (self.group("("),), name=name)
        return symbol(name)

    def subscript(self) -> str:
        if self.peek() != "{":
            return self.take()
        self.take("{")
        text, depth = "", 1
        while depth:
            piece = self.take()
            depth += (piece == "{") - (piece == "}")
            text += piece if depth else ""
        return text

    def function(self, name: str) -> Node:
        base = exponent = None
        if name == "log" and self.peek() == "_":
            self.take()
            base = self.argument()
        if self.peek() in ("^", "**"):
            self.take()
            exponent = self.argument() if self.peek() != "-" else self.exponent()
        argument = self.function_argument()
        if exponent is not None and exponent in (Node("neg", (number(1),)), number(-1)) and name in _INVERSE:
            return Node(_INVERSE[name], (argument,))
        if name == "exp":
            node = Node("pow", (Node("e"), argument))
        elif base is not None:
            node = Node("logb", (argument, base))
        else:
            node = Node(name, (argument,))
        return node if exponent is None else Node("pow", (node, exponent))

    def function_argument(self) -> Node:
        """Read ``(x)``, or the factors up to the next sign or function: ``\\sin 2x \\cos x`` is a product of two."""
        if self.peek() in ("(", "{", "["):
            return self.group(self.peek())
        if self.peek() in FUNCTIONS or self.peek().lstrip("\\") in FUNCTIONS:
            return self.power()
        negative = self.signs()
        result = self.power()
        while self.starts_factor() and self.peek().lstrip("\\") not in FUNCTIONS and self.peek() not in ("(", "["):
            result = self.juxtaposed(result)
        in_pi = result.op == "pi" or (result.op == "mul" and result.args[-1].op == "pi")
        if in_pi and self.peek() == "/" and self.kind(1) == "num":
            self.take()
            result = Node("div", (result, self.power()))
        return Node("neg", (result,)) if negative else result
