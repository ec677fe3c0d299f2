"""Read a cleaned answer as what it may be: a value, several values, a region, relations, a ratio, a choice, words."""

from __future__ import annotations

import re
from functools import lru_cache

from selector.answers import regions
from selector.answers.names import name_of, renamed, view_name
from selector.answers.relations import RELATIONS, read_relations
from selector.answers.spelling import MAX_LENGTH, ROW_BREAK
from selector.answers.split import at_top, cut, cut_list, enclosed, is_balanced, nesting, without_thousands
from selector.answers.syntax import MAX_DEPTH, Node
from selector.answers.tokens import Unreadable
from selector.answers.values import read_expression, read_scalar
from selector.answers.views import (
    Assigned,
    Choice,
    Clock,
    Ratio,
    Reading,
    Region,
    Scalar,
    Several,
    System,
    Unparsed,
    View,
    Words,
)
from selector.answers.wording import choice_of, is_prose, plain_words, set_phrase

MAX_ITEMS = 80

_CLOCK = re.compile(r"(\d{1,2}):([0-5]\d)(?::([0-5]\d))?\s*([ap])?(?:(?<=[ap])\.?\s?m\.?)?", re.IGNORECASE)
_TIMES_LETTER = re.compile(r"(?<=\d)\s*[xX]\s*(?=10\s*\^)")
_ADJACENT_TUPLES = re.compile(r"(\([^()]*,[^()]*\)\s*){2,}")
_REALS_WITHOUT = re.compile(r"\\RR\s*-\s*(?=\\\{)")
_RATIO_WORDS = re.compile(r"(\d+(?:\.\d+)?) to (\d+(?:\.\d+)?)")
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[/.-]\d{1,2}[/.-]\d{4}")
_SPACED_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?: \d{3})+(?:\.\d+)?")


@lru_cache(maxsize=16384)
def read(text: str, kind: str | None = None) -> Reading:
    """Return every view of a cleaned answer; () for an empty one."""
    if not text:
        return ()
    if len(text) > MAX_LENGTH:
        return (Words(" ".join(text.split())),)
    views: list[View] = list(set_phrase(text) or _mathematics(text, kind))
    choice = choice_of(text)
    if choice:
        views = [*(view for view in views if not isinstance(view, Unparsed)), choice]
    if (kind == "text" or choice) and not any(isinstance(view, Words) for view in views):
        views.append(Words(plain_words(text)))
    return tuple(_of_kind(views, kind))


def _of_kind(views: list[View], kind: str | None) -> list[View]:
    """Return the views a kind leaves: a tuple's order counts, a letter is a choice only where choices are asked."""
    if kind == "choice" and any(isinstance(view, Choice) for view in views):
        return [view for view in views if isinstance(view, Choice)]
    if kind not in (None, "choice", "text"):
        views = [view for view in views if not isinstance(view, Choice)]
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
    if _DATE.fullmatch(text):
        return [Words(text)]
    text = _RATIO_WORDS.sub(r"\1:\2", text) if _RATIO_WORDS.fullmatch(text) else text
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
    special = set_phrase(text)
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
    text = _REALS_WITHOUT.sub(r"\\RR \\setminus ", text)
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
    if at_top(text, set(RELATIONS)):
        return read_relations(text, kind, lambda part: _structure(part, kind, depth + 1))
    brackets = enclosed(text)
    if brackets:
        inside = _brackets(*brackets, kind=kind, depth=depth)
        if inside:
            return inside
    if at_top(text, {":"}):
        return _ratio(cut(text, {":"}))
    if "\\pm" in text or "\\mp" in text:
        return _plus_minus(text, kind)
    return [read_scalar(text, kind)]


def _clock(text: str) -> list[View] | None:
    match = _CLOCK.fullmatch(text)
    if match is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in match.group(1, 2, 3))
    half = (match[4] or "").lower()
    if half and 1 <= hours <= 12:
        hours = hours % 12 + (12 if half == "p" else 0)
    views: list[View] = [Clock(3600 * hours + 60 * minutes + seconds, half)]
    if not half and minutes >= 10 and hours:
        views += [view for view in _ratio(text.split(":")) if isinstance(view, Ratio)]
    return views


def _ratio(parts: list[str]) -> list[View]:
    if len(parts) > 6 or not all(parts):
        raise Unreadable(":")
    nodes = tuple(read_expression(part) for part in parts)
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
    values = [read_scalar(text.replace("\\pm", plus).replace("\\mp", minus), kind) for plus, minus in signs]
    return [Several("bag", tuple((value,) for value in values))]


def _array(text: str, kind: str | None, depth: int) -> list[View]:
    match = re.fullmatch(
        r"(?P<brace>\\\{|\(|\[)?\s*\\begin\s*\{(?P<name>\w+)\*?\}(?:\s*\{[lcr| ]+\})?"
        r"(?P<body>.*)\\end\s*\{(?P=name)\*?\}"
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
    low, high = (read_expression(part.strip()) for part in parts)
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
    if condition and (at_top(condition["condition"], {*RELATIONS, "\\in"}) or " or " in condition["condition"]):
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
        named = Region(region.pieces, name_of(name.strip()))
    else:
        named = _union_parts(minus[0], kind, depth)
    if len(minus) == 2:
        removed = _as_region(_structure(minus[1], kind, depth + 1))
        named = Region(regions.without(named, removed).pieces, named.name)
    return named


def _union_parts(text: str, kind: str | None, depth: int) -> Region:
    parts = []
    for part in cut(text, {"\\cup"}):
        views = set_phrase(part) or _structure(part, kind, depth + 1)
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
    views = set_phrase(rest.strip()) or _structure(rest, kind, depth + 1)
    return [renamed(view, name_of(name.strip())) for view in views]


def _list(text: str, parts: list[str], kind: str | None, depth: int) -> list[View]:
    """Read several answers side by side: values, named values, bounds that hold together or in turn."""
    if len(parts) > MAX_ITEMS:
        raise Unreadable("items")
    has_or = re.search(r"\bor\b", text, re.IGNORECASE) is not None
    if has_or:
        alternatives = cut_list(text, re.compile(r"(?:[,;]\s*)?\bor\b\s*", re.IGNORECASE))
        nested = all(at_top(part, set(RELATIONS)) for part in alternatives)
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
        flat.extend([(renamed(inner[0], bag.name),) for inner in bag.items] if bag else [item])
    return _named_list(flat)


def _is_bound(text: str) -> bool:
    return bool(at_top(text, {"<", ">", "\\le", "\\ge", "\\ne", "<=", ">=", "!="}))


def _named_list(items: list[Reading]) -> list[View]:
    names = [next((view_name(view) for view in item if view_name(view)), "") for item in items]
    if not any(names):
        return [Several("bag", tuple(items))]
    stems = {re.sub(r"_.*$", "", name) for name in names if name}
    plain = tuple(tuple(renamed(view, "") for view in item if not isinstance(view, System)) for item in items)
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
