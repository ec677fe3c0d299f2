"""Exact arithmetic against numeric values, and what the workers prove."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from selector.answers import ring
from selector.answers.exact import exact_value
from selector.answers.numeric import agree_somewhere, are_apart
from selector.answers.proofs import judge_texts, prove_equal
from selector.answers.spelling import clean
from selector.answers.syntax import Node, number, parse, symbol
from selector.answers.tokens import tokenize
from selector.answers.worker import node_from_json, node_to_json

leaves = st.one_of(
    st.integers(-6, 12).map(number),
    st.sampled_from("xy").map(symbol),
    st.sampled_from([Node("pi"), Node("e"), Node("i")]),
)


def grown(parts):
    pair = st.tuples(parts, parts)
    power = st.tuples(parts, st.sampled_from([number(2), number(-1), number(3), Node("div", (number(1), number(2)))]))
    return st.one_of(
        st.sampled_from(["add", "mul", "div"]).flatmap(lambda op: pair.map(lambda args: Node(op, args))),
        power.map(lambda args: Node("pow", args)),
        st.sampled_from(["neg", "sin", "cos", "tan", "ln", "abs"]).flatmap(
            lambda op: parts.map(lambda part: Node(op, (part,)))
        ),
        parts.map(lambda part: Node("root", (part, number(2)))),
    )


trees = st.recursive(leaves, grown, max_leaves=6)


def tree(text):
    return parse(tokenize(clean(text)))


@given(trees, trees, trees)
@settings(max_examples=400, deadline=None)
def test_what_is_equal_exactly_is_nowhere_apart(left, right, other):
    shapes = [
        (Node("add", (left, right)), Node("add", (right, left))),
        (
            Node("mul", (Node("add", (left, right)), other)),
            Node("add", (Node("mul", (left, other)), Node("mul", (right, other)))),
        ),
        (Node("div", (left, right)), Node("mul", (left, Node("pow", (right, number(-1)))))),
        (left, right),
    ]
    for one, another in shapes:
        values = exact_value(one), exact_value(another)
        if values[0] is not None and values[1] is not None and ring.equal(*values):
            assert not are_apart(one, another)


@given(trees, trees)
@settings(max_examples=400, deadline=None)
def test_what_is_decided_to_differ_is_nowhere_the_same(left, right):
    values = exact_value(left), exact_value(right)
    assume(
        values[0] is not None and values[1] is not None and ring.is_decisive(values[0]) and ring.is_decisive(values[1])
    )

    assert ring.equal(*values) or not agree_somewhere(left, right)


@given(trees)
@settings(max_examples=100, deadline=None)
def test_trees_reach_a_worker_unchanged(node):
    assert node_from_json(node_to_json(node)) == node


def test_sympy_proves_identities_and_not_their_neighbours():
    for left, right in [
        ("\\sin 2x", "2\\sin x\\cos x"),
        ("\\sqrt{3+2\\sqrt2}", "1+\\sqrt2"),
        ("\\sqrt[3]{2+\\sqrt5}+\\sqrt[3]{2-\\sqrt5}", "1"),
        ("\\cos 20^\\circ\\cos 40^\\circ\\cos 80^\\circ", "\\frac18"),
        ("\\arctan 1", "\\frac{\\pi}{4}"),
        ("\\binom{n}{2}", "\\frac{n(n-1)}{2}"),
        ("e^{i\\pi}", "-1"),
    ]:
        assert prove_equal(tree(left), tree(right)), (left, right)
    for left, right in [
        ("\\sin 2x", "2\\sin x"),
        ("\\sqrt{3+2\\sqrt2}", "2.41421356237309504880168872420969807856967187537694"),
        ("\\sqrt{x^2}", "x"),
        ("\\ln(x^2)", "2\\ln x"),
        ("\\pi", "\\frac{355}{113}"),
    ]:
        assert not prove_equal(tree(left), tree(right)), (left, right)


def test_math_verify_has_to_agree_in_both_directions():
    assert judge_texts("\\sum_{k=1}^{n} k", "\\sum_{j=1}^{n} j")
    assert not judge_texts("\\sum_{k=1}^{n} k", "\\sum_{k=1}^{n} k^2")
    assert not judge_texts("\\int_0^1 x dx", "\\int_0^1 x^2 dx")
