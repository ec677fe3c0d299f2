"""How questions and probes are laid out."""

import pytest
from transformers import AutoTokenizer

from selector.errors import InvalidConfig
from selector.generation import Completion, CompletionKind, Prompt, Request, SamplingSettings
from selector.generation.prompts import (
    TokenLayout,
    extraction_messages,
    question_text,
    replies_are_whole,
    trajectory_length,
    word_pieces,
)
from selector.tiny import MODEL_DIR

PROMPT = Prompt(uid="q", text="Compute 2+3.")


@pytest.fixture
def tokenizer():
    return AutoTokenizer.from_pretrained(MODEL_DIR)


def test_choices_are_lettered_and_the_instruction_comes_last():
    prompt = Prompt(uid="q", text="Which?", choices=("4", "5"))

    assert question_text(prompt, "Box it.") == "Which?\nA. 4\nB. 5\n\nBox it."
    assert question_text(PROMPT, "") == "Compute 2+3."


def test_a_model_without_a_template_gets_the_bare_question(tokenizer):
    tokenizer.chat_template = None

    ids = TokenLayout(tokenizer, "Box it.").prompt_ids(PROMPT)

    assert tokenizer.decode(ids) == "Compute 2+3.\n\nBox it.\n"


@pytest.mark.parametrize(
    ("opening", "trajectory", "ending"),
    [
        ("", "First 2+3=5.", "First 2+3=5.\nAnswer: \\boxed{"),
        ("", "<think>First 2", "<think>First 2\n</think>\n\nAnswer: \\boxed{"),
        ("<think>\n", "First 2", "<think>\nFirst 2\n</think>\n\nAnswer: \\boxed{"),
        ("<think>\n", "First.</think>\nSo 5", "<think>\nFirst.</think>\nSo 5\nAnswer: \\boxed{"),
    ],
)
def test_reasoning_still_open_at_the_cut_is_closed_before_the_answer(tokenizer, opening, trajectory, ending):
    layout = TokenLayout(tokenizer, "")
    prompt_ids = [*layout.prompt_ids(PROMPT), *tokenizer.encode(opening)]
    trajectory_ids = tokenizer.encode(trajectory)

    ids = layout.probe_ids(prompt_ids, trajectory_ids, len(trajectory_ids))

    assert tokenizer.decode(ids).endswith(ending)
    assert ids[: len(prompt_ids) + len(trajectory_ids)] == [*prompt_ids, *trajectory_ids]


def test_a_probe_keeps_the_tokens_before_the_cut_as_they_are(tokenizer):
    layout = TokenLayout(tokenizer, "")
    odd = [40, 41, 42, 43, 44, 45]  # tokens that would be joined if they were decoded and encoded again

    ids = layout.probe_ids([5, 6], odd, 4)

    assert ids[:6] == [5, 6, 40, 41, 42, 43]
    assert ids[6:] == tokenizer.encode("\nAnswer: \\boxed{", add_special_tokens=False)


def test_end_tokens_at_the_end_are_dropped(tokenizer):
    layout = TokenLayout(tokenizer, "", extra_eos_ids=[9])
    end = tokenizer.eos_token_id

    assert layout.without_end([5, end, 6, 9, end]) == (5, end, 6)
    assert layout.without_end([end]) == ()


def test_word_pieces_put_together_are_the_text():
    text = " First, 2 + 3\n\n= 5.  So"

    assert "".join(word_pieces(text)) == text
    assert word_pieces("") == []


def test_a_trajectory_is_as_long_as_its_tokens_or_else_its_words():
    fields = {"uid": "q", "kind": CompletionKind.TRAJECTORY, "index": 0, "n_tokens": 9, "n_prompt_tokens": 1}

    with_ids = Completion(text="a b", finish_reason="stop", token_ids=(1, 2, 3), **fields)
    without = Completion(text="a b", finish_reason="stop", **fields)

    assert (trajectory_length(with_ids), trajectory_length(without)) == (3, 2)


def test_the_textual_probe_shows_the_question_and_only_the_reasoning_before_the_cut():
    (message,) = extraction_messages(PROMPT, "Box it.", "First {2} then 3", cut=2)

    assert "Compute 2+3.\n\nBox it.\nFirst {2}\n" in message["content"]
    assert "then" not in message["content"].split("Your question:")[0].split("Box it.")[1]
    assert message["content"].endswith("Your response:\n")


def test_the_authors_layout_asks_anew_with_the_cut_chain_in_the_middle(tokenizer):
    tokenizer.chat_template = None
    layout = TokenLayout(tokenizer, "Box it.", probe_layout="authors")
    chain = tuple(tokenizer.encode("2+3=5, so 5."))
    request = Request(PROMPT, CompletionKind.PROBE, 4, chain)

    ids = layout.row(request, layout.prompt_ids(PROMPT))

    text = tokenizer.decode(ids)
    before, _, after = text.partition("Compute 2+3.\n\nBox it.\n" + tokenizer.decode(chain[:4]))
    assert before.startswith("You extract answers.")
    assert after.rstrip().endswith("Your response:")
    assert layout.probe_stop is None
    assert layout.row(Request(PROMPT, CompletionKind.OUTCOME, 0), [1, 2]) == [1, 2]


def test_layouts_have_names_of_their_own_and_the_default_keeps_its(tokenizer):
    by_default, ours, authors = (
        TokenLayout(tokenizer, "", **options).describe()
        for options in ({}, {"probe_layout": "shared-prefix"}, {"probe_layout": "authors"})
    )

    assert by_default == ours
    assert by_default["layout"] == "token-ids-1"
    assert authors == {**ours, "layout": "authors-token-ids-1"}
    assert [replies_are_whole(each) for each in (ours, authors, {"layout": "text-1"}, {})] == [
        False,
        True,
        False,
        False,
    ]


def test_a_layout_nobody_knows_is_refused(tokenizer):
    with pytest.raises(InvalidConfig) as caught:
        TokenLayout(tokenizer, "", probe_layout="mine")

    assert "shared-prefix, authors" in str(caught.value)


def test_the_authors_layout_leaves_less_room_for_a_prompt(tokenizer):
    settings = SamplingSettings(max_tokens=60, probe_max_tokens=16)
    prompt = Prompt(uid="q", text="Compute 1" + "+1" * 40 + ".")
    n_tokens = len(TokenLayout(tokenizer, "").prompt_ids(prompt))
    context = n_tokens + 60 + 16 + 30

    assert TokenLayout(tokenizer, "").too_long([prompt], settings, context) == []
    with pytest.raises(InvalidConfig):
        TokenLayout(tokenizer, "", probe_layout="authors").too_long([prompt], settings, 76)
