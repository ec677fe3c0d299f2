"""Read a cleaned answer as what it may be: a value, several values, a region, relations, a ratio, a choice, words."""

from __future__ import annotations

import re
from functools import lru_cache

from selector.answers import regions, ring
from selector.answers.exact import exact_value
from selector.answers.spelling import MAX_LENGTH, ROW_BREAK
from selector.answers.split import at_top, cut, cut_list, enclosed, is_balanced, nesting, without_thousands
from selector.answers.syntax import MAX_DEPTH, Node, Unreadable, number, parse, tokenize
from selector.answers.units import split_currency, split_multiplier, split_unit
from selector.answers.views import (
    Assigned,
    Choice,
    Clock,
    Ratio,
    Reading,
    Region,
    Relation,
    Scalar,
    Several,
    System,
    Unparsed,
    View,
    Words,
)

MAX_ITEMS = 80

_EMPTY_SET = {
    *("no solution", "no solutions", "no real solution", "no real solutions", "there is no solution"),
    *("there are no solutions", "has no solution", "no roots", "no real roots", "empty set", "the empty set", "empty"),
    *("\\emptyset", "\\{\\}", "\\{ \\}", "{}", "{ }"),
}
_ALL_REALS = {"\\RR", "all real numbers", "all reals", "the real numbers", "real numbers", "RR", "any real number"}
_SAME_WORDS = {"does not exist": "dne", "doesn't exist": "dne", "not exist": "dne", "undefined": "undefined"}
_NUMBER_WORDS = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty".split()
    )
}
_RELATIONS = {
    "=": "=",
    "==": "=",
    "<": "<",
    ">": ">",
    "<=": "<=",
    ">=": ">=",
    "!=": "!=",
    "\\le": "<=",
    "\\ge": ">=",
    "\\ne": "!=",
    "\\equiv": "=",
}
_CLOCK = re.compile(r"(\d{1,2}):([0-5]\d)(?::([0-5]\d))?\s*([ap])?(?:(?<=[ap])\.?\s?m\.?)?", re.IGNORECASE)
_LETTER = r"(?:\(\s*([A-Ja-j])\s*\)|([A-J]))"
_ONE_CHOICE = re.compile(rf"(?:(?:option|choice|answer)\s+)?{_LETTER}(?P<rest>\s.*|[:.)].*)?", re.IGNORECASE)
_MANY_CHOICES = re.compile(r"\(?[A-J]\)?(?:\s*(?:,|;|and|or|&|\s)\s*(?:and\s+|or\s+)?\(?[A-J]\)?)+")
_DECIMAL = re.compile(r"[-+]?(\d*)\.(\d+)")
_LETTERS = re.compile(r"[^\W\d_]+")
_TIMES_LETTER = re.compile(r"(?<=\d)\s*[xX]\s*(?=10\s*\^)")
_KNOWN_WORDS = set(
    "sin cos tan cot sec csc arcsin arccos arctan asin acos atan sinh cosh tanh ln log lg exp sqrt cbrt abs pi infinity "
    "infty inf and or alpha beta gamma delta epsilon theta lambda mu nu xi rho sigma tau phi chi psi omega".split()
)
_SHORT_WORDS = set("no on of or to so it is in if at by as an am be do go he me my up us we".split())
_ADJACENT_TUPLES = re.compile(r"(\([^()]*,[^()]*\)\s*){2,}")
_FUNCTION = re.compile(r"sin|cos|tan|cot|sec|csc")
_SPACED_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?: \d{3})+(?:\.\d+)?")
_CALL = re.compile(r"(?:\\[A-Za-z]+|[A-Za-z])(?:_(?:\{[^{}]*\}|\w))?'*\s*\([^()=]*\)")


@lru_cache(maxsize=16384)
def read(text: str, kind: str | None = None) -> Reading:
    """Return every view of a cleaned answer; () for an empty one."""
    if not text:
        return ()
    if len(text) > MAX_LENGTH:
        return (Words(" ".join(text.split())),)
    views = list(_special(text) or _mathematics(text, kind))
    choice = _choice(text)
    if choice:
        views = [view for view in views if not isinstance(view, Unparsed)] + [choice]
    if (kind == "text" or choice) and not any(isinstance(view, Words) for view in views):
        views.append(Words(plain_words(text)))
    return tuple(_of_kind(views, kind))


def plain_words(text: str) -> str:
    """Return text without punctuation around words, quotes, articles in front or doubled spaces."""
    text = re.sub(r"\\[A-Za-z]+|[\\{}$]", " ", text)
    text = re.sub(r"[\"“”‘’'`.,!?;:]+(?=\s|$)|(?<!\S)[\"“”‘’'`(]+|\)(?=\s|$)", " ", text)
    return re.sub(r"^(?:the|a|an)\s+", "", " ".join(text.split()), flags=re.IGNORECASE)


def is_prose(text: str) -> bool:
    """Tell whether text has words in it that no formula has."""
    bare = re.sub(r"_\s*\{[^{}]*\}|_\s*\w+|\\[A-Za-z]+", " ", text)
    has_operators = re.search(r"[-+*/^=<>_\\]", text) is not None
    for word in _LETTERS.findall(bare):
        if not word.isascii():
            return True
        if len(word) == 1 or word in _KNOWN_WORDS or word.lower() in ("and", "or"):
            continue
        if word.isupper() and len(word) <= 4 and word not in ("NO", "YES", "TRUE", "DNE"):
            continue
        if len(word) == 2 and word.lower() not in _SHORT_WORDS:
            continue
        if len(word) == 3 and has_operators and " " not in text.strip():
            continue
        if not has_operators or len(word) > 3 or " " in text.strip():
            if any(name in word for name in ("sin", "cos", "tan", "log", "sqrt")) and len(word) <= 6:
                continue
            return True
    return False


def _special(text: str) -> list[View] | None:
    lowered = plain_words(text.replace("\\", "\x00")).lower().replace("\x00", "\\")
    if lowered in _EMPTY_SET or text in _EMPTY_SET:
        return [Several("set", ()), Region(())]
    if text in _ALL_REALS or lowered in _ALL_REALS:
        return [regions.ALL]
    if lowered in _NUMBER_WORDS:
        return [Scalar(number(_NUMBER_WORDS[lowered])), Words(lowered)]
    if lowered in _SAME_WORDS:
        return [Words(_SAME_WORDS[lowered])]
    return None


def _choice(text: str) -> Choice | None:
    if len(text) > 400:
        return None
    if re.fullmatch(r"[A-H]{2,6}", text) and len(set(text)) == len(text):
        return Choice(frozenset(text))
    if _MANY_CHOICES.fullmatch(text):
        letters = [letter for letter in re.findall(r"[A-J]", text)]
        return Choice(frozenset(letters)) if len(set(letters)) == len(letters) else None
    match = _ONE_CHOICE.fullmatch(text)
    if match is None:
        return Choice(frozenset(text)) if re.fullmatch(r"[a-h]", text) else None
    rest = (match["rest"] or "").strip()
    bracketed, bare = match[1], match[2]
    if bare and bare.islower() and len(text) > 1 and not text.lower().startswith(("option", "choice")):
        return None
    if bare and rest and rest[0] not in ":.)":
        return None
    rest = rest.lstrip(":.)- ").strip()
    if bracketed and rest and rest[0] in "+*/^=<>,":
        return None
    return Choice(frozenset(bracketed or bare), plain_words(rest))


def _of_kind(views: list[View], kind: str | None) -> list[View]:
    if kind == "tuple":
        return [_restyled(view, "bag", "tuple") for view in views]
    if kind == "set":
        return [_restyled(_restyled(view, "bag", "set"), "brackets", "set") for view in views]
    if kind == "interval" and any(isinstance(view, Region) for view in views):
        return [view for view in views if isinstance(view, Region)]
    return views


def _restyled(view: View, old: str, new: str) -> View:
    if isinstance(view, Several) and view.style == old:
        return Several(new, view.items, view.name)
    return view


def _mathematics(text: str, kind: str | None) -> list[View]:
    """Read text as mathematics, as words where it has any, as unparsed mathematics otherwise."""
    if _SPACED_THOUSANDS.fullmatch(text):
        text = text.replace(" ", "")
    try:
        if nesting(text) > MAX_DEPTH:
            raise Unreadable("nested too deep")
        return _structure(without_thousands(_TIMES_LETTER.sub(r"\\times ", text)), kind, 0)
    except Unreadable:
        return [Words(plain_words(text))] if is_prose(text) or not _looks_mathematical(text) else [Unparsed(text)]


def _looks_mathematical(text: str) -> bool:
    return re.search(r"[\d\\+*/^=<>]", text) is not None


def _item(text: str, kind: str | None, depth: int) -> Reading:
    """Read one of several answers; words are fine there."""
    special = _special(text)
    if special:
        return tuple(special)
    try:
        return tuple(_structure(text, kind, depth + 1))
    except Unreadable:
        if is_prose(text) or not _looks_mathematical(text):
            return (Words(plain_words(text)),)
        raise


def _structure(text: str, kind: str | None, depth: int) -> list[View]:
    """Read text by its outermost structure. Raises Unreadable."""
    text = text.strip()
    if depth > 8 or not text:
        raise Unreadable(text[:20])
    if "\\begin" in text:
        return _array(text, kind, depth)
    if not is_balanced(text):
        return _reversed_brackets(text, kind)
    clock = _clock(text)
    if clock:
        return clock
    if at_top(text, {"\\cup", "\\setminus"}) or re.search(r"(?<![A-Za-z\\])U(?=\s*[(\[])", text):
        return [_union(text, kind, depth)]
    parts = cut_list(text)
    if len(parts) > 1:
        return _list(text, parts, kind, depth)
    if _ADJACENT_TUPLES.fullmatch(text):
        return _list(text, re.findall(r"\([^()]*\)", text), kind, depth)
    text = parts[0] if parts else ""
    if at_top(text, {"\\in"}):
        return _member(text, kind, depth)
    if at_top(text, set(_RELATIONS)):
        return _relations(text, kind, depth)
    brackets = enclosed(text)
    if brackets:
        inside = _brackets(*brackets, kind=kind, depth=depth)
        if inside:
            return inside
    if at_top(text, {":"}):
        return _ratio(cut(text, {":"}))
    if "\\pm" in text or "\\mp" in text:
        return _plus_minus(text, kind)
    return [_scalar(text, kind)]


def _scalar(text: str, kind: str | None) -> Scalar:
    """Read one value with what it carries. Raises Unreadable."""
    text, currency = split_currency(text)
    if not currency:
        percent_text = re.sub(r"\s*(?:\\%|%|\b(?:percent|per cent|pct)\b)$", "", text)
    else:
        percent_text = text
    percent, text = percent_text != text, percent_text.strip()
    unit, degree = "", False
    bare = re.sub(r"\s*(?:\^\s*\\circ|\^\s*\{\s*\\circ\s*\}|\b(?:degrees|degree|deg)\b)$", "", text)
    if bare != text and "\\circ" not in bare and bare and not _FUNCTION.search(bare):
        degree, text = True, bare
    else:
        text, factor = split_multiplier(text)
        if factor == 1:
            text, unit = split_unit(text, single_letters=kind != "expression")
            text, currency_after = split_currency(text) if unit and not currency else (text, currency)
            currency = currency or currency_after
            text, factor = split_multiplier(text)
        if factor != 1:
            return Scalar(
                Node("mul", (_expression(text), number(factor))), percent=percent, currency=currency, unit=unit
            )
    decimal = _DECIMAL.fullmatch(text)
    places = len(decimal[2]) if decimal else -1
    significant = len((decimal[1] + decimal[2]).lstrip("0")) if decimal else 0
    return Scalar(
        _expression(text),
        percent=percent,
        currency=currency,
        unit=unit,
        degree=degree,
        decimal_places=places,
        significant_digits=significant,
    )


def _expression(text: str) -> Node:
    if is_prose(text):
        raise Unreadable(text[:20])
    return parse(tokenize(text))


def _clock(text: str) -> list[View] | None:
    match = _CLOCK.fullmatch(text)
    if match is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in match.group(1, 2, 3))
    half = (match[4] or "").lower()
    if half and 1 <= hours <= 12:
        hours = hours % 12 + (12 if half == "p" else 0)
    views: list[View] = [Clock(3600 * hours + 60 * minutes + seconds, half)]
    if not half and minutes and hours:
        views += [view for view in _ratio(text.split(":")) if isinstance(view, Ratio)]
    return views


def _ratio(parts: list[str]) -> list[View]:
    if len(parts) > 6 or not all(parts):
        raise Unreadable(":")
    nodes = tuple(_expression(part) for part in parts)
    is_clock = len(parts) == 2 and re.fullmatch(r"\d{1,2}:[0-5]\d", ":".join(parts)) is not None
    views: list[View] = [Ratio(nodes, is_clock)]
    if len(nodes) == 2 and not is_clock:
        views.append(Scalar(Node("div", nodes)))
    return views


def _plus_minus(text: str, kind: str | None) -> list[View]:
    """Read ``a \\pm b`` as both of its values. Raises Unreadable for two independent signs."""
    if text.count("\\pm") + text.count("\\mp") > 2:
        raise Unreadable("\\pm")
    signs = (("+", "-"), ("-", "+"))
    values = [_scalar(text.replace("\\pm", plus).replace("\\mp", minus), kind) for plus, minus in signs]
    return [Several("bag", tuple((value,) for value in values))]


def _array(text: str, kind: str | None, depth: int) -> list[View]:
    match = re.fullmatch(
        r"(?P<brace>\\\{|\(|\[)?\s*\\begin\s*\{(?P<name>\w+)\*?\}(?:\s*\{[lcr| ]+\})?(?P<body>.*)\\end\s*\{(?P=name)\*?\}"
        r"\s*(?:\\\}|\)|\])?",
        text,
    )
    if match is None or "\\begin" in match["body"]:
        raise Unreadable("array")
    rows = [row.strip() for row in match["body"].split(ROW_BREAK) if row.strip()]
    if match["name"] in ("cases", "aligned", "align", "gathered") or match["brace"] == "\\{":
        lines = [_ungrouped(row.replace("&", " ").strip()).strip(" ,;") for row in rows]
        return _list(text, lines, kind, depth) if len(lines) > 1 else _structure(lines[0], kind, depth + 1)
    cells = [[_item(cell.strip(), kind, depth) for cell in row.split("&")] for row in rows]
    name = "matrix" if match["name"] != "vmatrix" else "determinant"
    return [Several(name, tuple((Several(name, tuple(row)),) for row in cells))]


def _ungrouped(text: str) -> str:
    brackets = enclosed(text)
    return brackets[1] if brackets and brackets[0] == "{" else text


def _reversed_brackets(text: str, kind: str | None) -> list[View]:
    """Read the French open interval ``]a, b[``. Raises Unreadable for anything else."""
    match = re.fullmatch(r"([\]\[(])([^\[\]]+)([\[\])])", text)
    parts = match[2].split(",") if match else []
    if match is None or len(parts) != 2:
        raise Unreadable("brackets")
    low, high = (_expression(part.strip()) for part in parts)
    return [regions.interval(low, high, match[1] == "[", match[3] == "]")]


def _brackets(opening: str, inside: str, closing: str, *, kind: str | None, depth: int) -> list[View] | None:
    if opening in ("\\{", "{") and closing in ("\\}", "}"):
        if opening == "{" and len(cut_list(inside)) < 2 and not at_top(inside, {"|"}):
            return _structure(inside, kind, depth + 1)
        return _set(inside, kind, depth)
    parts = cut(inside, {",", ";"})
    if len(parts) < 2:
        if opening == "(" and closing == ")":
            return None  # grouping, left to the expression
        return [Several("brackets", (_item(inside, kind, depth),))] if opening == "[" and closing == "]" else None
    if len(parts) > MAX_ITEMS or not all(parts):
        raise Unreadable("items")
    items = tuple(_item(part, kind, depth) for part in parts)
    views: list[View] = []
    if len(parts) == 2:
        ends = [next((view for view in item if isinstance(view, Scalar)), None) for item in items]
        if ends[0] and ends[1]:
            region = regions.interval(ends[0].node, ends[1].node, opening == "[", closing == "]")
            views += [region] if region.pieces else []
    if (opening, closing) == ("(", ")"):
        views.append(Several("tuple", items))
    elif (opening, closing) == ("[", "]"):
        views.append(Several("brackets", items))
    if not views:
        raise Unreadable("brackets")
    return views


def _set(inside: str, kind: str | None, depth: int) -> list[View]:
    if not inside:
        return [Several("set", ()), Region(())]
    condition = re.match(r"^(?P<head>[^|:{}]*?)\s*(?:\||:)\s*(?P<condition>.*)$", inside)
    if condition and (at_top(condition["condition"], {*_RELATIONS, "\\in"}) or " or " in condition["condition"]):
        domain = condition["head"].partition("\\in")[2].strip()
        if domain not in ("", "\\RR", "R"):
            raise Unreadable(domain)
        return [view for view in _structure(condition["condition"], kind, depth + 1) if not isinstance(view, Scalar)]
    items: list[Reading] = []
    for part in cut_list(inside):
        views = _item(part, kind, depth)
        bag = next((view for view in views if isinstance(view, Several) and view.style == "bag"), None)
        items.extend(bag.items if bag else [views])
    if len(items) > MAX_ITEMS:
        raise Unreadable("items")
    result: list[View] = [Several("set", tuple(items))]
    if len(items) == 1:
        result += [view for view in items[0] if isinstance(view, Scalar)]
    return result


def _union(text: str, kind: str | None, depth: int) -> Region:
    text = re.sub(r"(?<![A-Za-z\\])U(?=\s*[(\[])", r"\\cup ", text)
    minus = cut(text, {"\\setminus"})
    if len(minus) > 2:
        raise Unreadable("\\setminus")
    if at_top(minus[0], {"\\in", "="}):
        name, _, rest = re.split(r"(\\in|=)", minus[0], maxsplit=1)
        region = _union_parts(rest.strip(), kind, depth)
        named = Region(region.pieces, _name_of(name.strip()))
    else:
        named = _union_parts(minus[0], kind, depth)
    if len(minus) == 2:
        removed = _as_region(_structure(minus[1], kind, depth + 1))
        named = Region(regions.without(named, removed).pieces, named.name)
    return named


def _union_parts(text: str, kind: str | None, depth: int) -> Region:
    parts = []
    for part in cut(text, {"\\cup"}):
        views = _special(part) or _structure(part, kind, depth + 1)
        parts.append(_as_region(views))
    return regions.union(parts)


def _as_region(views: list[View]) -> Region:
    for view in views:
        if isinstance(view, Region):
            return view
        if isinstance(view, Several) and view.style == "set":
            points = [next((v.node for v in item if isinstance(v, Scalar)), None) for item in view.items]
            return regions.union([regions.point(node) for node in points if node is not None])
    raise Unreadable("not a region")


def _member(text: str, kind: str | None, depth: int) -> list[View]:
    """Read ``x \\in S`` as S under the name x."""
    name, _, rest = text.partition("\\in")
    views = _special(rest.strip()) or _structure(rest, kind, depth + 1)
    return [_renamed(view, _name_of(name.strip())) for view in views]


def _renamed(view: View, name: str) -> View:
    if isinstance(view, Scalar):
        return Scalar(**{**view.__dict__, "name": name})
    if isinstance(view, Several):
        return Several(view.style, view.items, name)
    if isinstance(view, Region):
        return Region(view.pieces, name)
    return view


def _name_of(text: str) -> str:
    """Return the name a side of an equation is, "" for anything else: x, a_n, f(x), AB, |AB|, (x, y), \\cos\\alpha."""
    brackets = enclosed(text)
    if brackets and brackets[0] == "(" and len(parts := cut_list(brackets[1])) > 1:
        names = [_name_of(part) for part in parts]
        return f"({','.join(names)})" if all(names) else ""
    if _CALL.fullmatch(text) and not text.startswith(("\\sin", "\\cos", "\\tan", "\\ln", "\\log")):
        return re.sub(r"\s", "", text)
    sides = cut(text, {":"})
    if len(sides) == 2 and all(sides):
        names = [_name_of(side) for side in sides]
        return ":".join(names) if all(names) else ""
    if is_prose(text):
        return plain_words(text).casefold() if len(text) <= 80 and not re.search(r"[\d\\]", text) else ""
    try:
        node = parse(tokenize(text))
    except Unreadable:
        return ""
    return _node_name(node)


def _node_name(node: Node) -> str:
    if node.op in ("sym", "call"):
        return node.name + (f"({_node_name(node.args[0])})" if node.op == "call" else "")
    if node.op in ("e", "i"):
        return node.op
    if node.op == "mul" and all(part.op in ("sym", "mul") and _node_name(part).isupper() for part in node.args):
        return "".join(_node_name(part) for part in node.args)
    if node.op == "abs" and (inner := _node_name(node.args[0])):
        return f"|{inner}|"
    if node.op in ("sin", "cos", "tan", "cot") and (value := exact_value(node)) and ring.has_variables(value):
        return f"{node.op}:{ring.key_of(value)}"
    return ""


def _relations(text: str, kind: str | None, depth: int) -> list[View]:
    """Read a chain of relations: an equation, a bound, a value with its name."""
    marks = at_top(text, set(_RELATIONS))
    marks = [mark for index, mark in enumerate(marks) if not _is_inside_pair(text, marks, index)]
    sides, start = [], 0
    for position, mark in marks:
        sides.append(text[start:position].strip())
        start = position + len(mark)
    sides.append(text[start:].strip())
    ops = [_RELATIONS[mark] for _, mark in marks]
    if len(ops) > 12 or not all(sides):
        raise Unreadable("relation")
    if set(ops) == {"="}:
        return _equation(sides, kind, depth)
    return _inequality([_expression(side) for side in sides], ops)


def _is_inside_pair(text: str, marks: list[tuple[int, str]], index: int) -> bool:
    """Tell whether a mark is the second character of ``<=``, which is cut character by character."""
    position, mark = marks[index]
    return mark == "=" and position > 0 and text[position - 1] in "<>!=" and index > 0


def _equation(sides: list[str], kind: str | None, depth: int) -> list[View]:
    views: list[View] = []
    name = _name_of(sides[0])
    value_text = sides[-1]
    if not name and len(sides) == 2 and _name_of(sides[1]) and _is_constant(sides[0]):
        name, value_text = _name_of(sides[1]), sides[0]
    if name:
        for view in _structure(value_text, kind, depth + 1):
            mentions = isinstance(view, Scalar) and name in _variables(view.node)
            if not mentions and (name.find(":") < 0 or _is_constant(value_text)):
                views.append(_renamed(view, name))
                if isinstance(view, Several) and view.style == "tuple" and name.startswith("("):
                    names = name[1:-1].split(",")
                    if len(names) == len(view.items) == len(set(names)):
                        views.append(Assigned(tuple(sorted(zip(names, view.items, strict=True)))))
    try:
        nodes = [_expression(side) for side in sides]
    except Unreadable:
        if not views:
            raise
        return views
    if not name:
        first, *others = [exact_value(node) for node in nodes]
        if first is not None and all(other is not None and ring.equal(first, other) for other in others):
            views += [_scalar(sides[-1], kind)]
    pairs = zip(nodes, nodes[1:], strict=False)
    views.append(System(tuple(Relation(Node("add", (left, Node("neg", (right,)))), "=") for left, right in pairs)))
    return views


def _is_constant(text: str) -> bool:
    try:
        return not _variables(_expression(text))
    except Unreadable:
        return False


def _variables(node: Node) -> set[str]:
    own = {node.name} if node.op in ("sym", "call") else {node.op} & {"e", "i"} and set()
    return set(own).union(*(_variables(part) for part in node.args))


def _inequality(nodes: list[Node], ops: list[str]) -> list[View]:
    region = None
    names = [_node_name(node) for node in nodes]
    pairs = list(zip(nodes, ops, nodes[1:], strict=False))
    bounds = [regions.bound(left, op, right) for left, op, right in pairs]
    if all(bounds) and len({found[0] for found in bounds if found}) == 1:
        region = regions.intersection([found[1] for found in bounds if found])
        region = Region(region.pieces, next(found[0] for found in bounds if found))
    relations = []
    for left, op, right in pairs:
        if op in (">", ">="):
            left, right, op = right, left, {">": "<", ">=": "<="}[op]
        relations.append(Relation(Node("add", (left, Node("neg", (right,)))), op))
    del names
    return [*([region] if region is not None else []), System(tuple(relations))]


def _list(text: str, parts: list[str], kind: str | None, depth: int) -> list[View]:
    """Read several answers side by side: values, named values, bounds that hold together or in turn."""
    if len(parts) > MAX_ITEMS:
        raise Unreadable("items")
    has_or = re.search(r"\bor\b", text, re.IGNORECASE) is not None
    if has_or:
        alternatives = cut_list(text, re.compile(r"(?:[,;]\s*)?\bor\b\s*", re.IGNORECASE))
        nested = all(at_top(part, set(_RELATIONS)) for part in alternatives)
        if nested and 1 < len(alternatives) < len(parts):
            return [Several("bag", tuple(_item(part, kind, depth) for part in alternatives))]
    items = [_item(part, kind, depth) for part in parts]
    found = [next((view for view in item if isinstance(view, Region)), None) for item in items]
    if all(found) and all(_is_bound(part) for part in parts):
        all_regions = [region for region in found if region is not None]
        if len({region.name for region in all_regions}) == 1:
            both = regions.intersection(all_regions)
            merged = regions.union(all_regions) if has_or or not both.pieces else both
            return [Region(merged.pieces, all_regions[0].name)]
    flat: list[Reading] = []
    for item in items:
        bag = next((view for view in item if isinstance(view, Several) and view.style == "bag"), None)
        flat.extend([(_renamed(inner[0], bag.name),) for inner in bag.items] if bag else [item])
    return _named_list(flat)


def _is_bound(text: str) -> bool:
    return bool(at_top(text, {"<", ">", "\\le", "\\ge", "\\ne", "<=", ">=", "!="}))


def _named_list(items: list[Reading]) -> list[View]:
    names = [next((_view_name(view) for view in item if _view_name(view)), "") for item in items]
    if not any(names):
        return [Several("bag", tuple(items))]
    stems = {re.sub(r"_.*$", "", name) for name in names if name}
    plain = tuple(tuple(_renamed(view, "") for view in item if not isinstance(view, System)) for item in items)
    if names[0] and not any(names[1:]):
        return [Several("bag", plain, names[0])]
    if all(names) and len(stems) == 1:
        same = len(set(names)) == 1
        views: list[View] = [Several("bag", plain, names[0] if same else "")]
        return views if same else [*views, Assigned(tuple(sorted(zip(names, plain, strict=True))))]
    if all(names) and len(set(names)) == len(names):
        views = [Assigned(tuple(sorted(zip(names, plain, strict=True))))]
        if names == sorted(names):
            views.append(Several("tuple", plain))
        relations = [view for item in items for view in item if isinstance(view, System)]
        if len(relations) == len(items):
            views.append(System(tuple(relation for system in relations for relation in system.relations)))
        return views
    systems = [next((view for view in item if isinstance(view, System)), None) for item in items]
    result: list[View] = [Several("bag", tuple(items))]
    if all(systems):
        result.append(System(tuple(relation for system in systems if system for relation in system.relations)))
    return result


def _view_name(view: View) -> str:
    return view.name if isinstance(view, Scalar | Several | Region) else ""
