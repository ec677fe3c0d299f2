"""The worker process: one JSON question a line on standard input, one JSON answer a line on standard output.

Started as ``python -m selector.answers.worker SECONDS`` and never by forking or by re-running the caller's main module,
so that it is safe under threads and in scripts without a main guard. It limits its own memory, and a watchdog thread
ends it when one question takes too long, even where the parent was killed meanwhile.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import sys
from fractions import Fraction
from typing import Any

from selector.answers.syntax import Node

MEMORY_BYTES = 1_500_000_000  # address space; sympy and math-verify alone take 0.4


def node_to_json(node: Node) -> list[Any]:
    """Return a tree as nested lists."""
    value = None if node.value is None else [hex(node.value.numerator), hex(node.value.denominator)]
    return [node.op, node.name, value, [node_to_json(part) for part in node.args]]


def node_from_json(data: list[Any]) -> Node:
    """Read what ``node_to_json`` wrote."""
    op, name, value, parts = data
    number = None if value is None else Fraction(int(value[0], 16), int(value[1], 16))
    return Node(op, tuple(node_from_json(part) for part in parts), number, name)


def serve(timeout_seconds: float) -> None:
    """Answer questions until standard input closes."""
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # whatever a library prints must not mix with the answers
    from selector.answers.proofs import judge_texts, prove_equal

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        question = json.loads(line)
        faulthandler.dump_traceback_later(timeout_seconds + 1, exit=True)
        try:
            if question["task"] == "prove":
                proved = prove_equal(node_from_json(question["left"]), node_from_json(question["right"]))
            else:
                proved = judge_texts(question["left"], question["right"])
            reply: dict[str, Any] = {"proved": proved}
        except Exception as error:  # sympy and antlr raise nearly anything; to the caller it is "not proved", by name
            reply = {"proved": False, "error": type(error).__name__}
        faulthandler.cancel_dump_traceback_later()
        answers.write(json.dumps(reply) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve(float(sys.argv[1]))
