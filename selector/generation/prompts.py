"""How a question becomes a prompt and how a probe is laid out. Anything changed here changes a layout's name."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from selector.errors import InvalidConfig
from selector.generation.contract import Completion, CompletionKind, Prompt, Request, SamplingSettings, SetAside

INSTRUCTION = "Please reason step by step, and put your final answer within \\boxed{}."
ID_LAYOUT = "token-ids-1"
AUTHORS_LAYOUT = "authors-token-ids-1"
TEXT_LAYOUT = "text-1"
PROBE_LAYOUTS = {"shared-prefix": ID_LAYOUT, "authors": AUTHORS_LAYOUT}  # for engines that take token ids

PROBE_SUFFIX = "\nAnswer: \\boxed{"
CLOSE_THINKING = "\n</think>\n\n"
PROBE_STOP = "\n"

EXTRACTION_PROMPT = """\
You extract answers. Read the reasoning below and reply with nothing but its final answer, as \\boxed{{answer}}.

Reasoning:
{question}
{reasoning}

Your question:
Based on this reasoning alone, what is the final answer? Do not reason any further; give one \\boxed{{}}.

Your response:
"""


def question_text(prompt: Prompt, instruction: str) -> str:
    """Return the question as it is asked: text, lettered choices if any, instruction if any."""
    choices = "\n".join(f"{chr(ord('A') + i)}. {choice}" for i, choice in enumerate(prompt.choices))
    question = f"{prompt.text}\n{choices}" if choices else prompt.text
    return f"{question}\n\n{instruction}" if instruction else question


def chat_messages(prompt: Prompt, instruction: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": question_text(prompt, instruction)}]


def word_pieces(text: str) -> list[str]:
    """Split a text into words with the white space before each; joined, they are the text without its trailing space.

    The unit of cuts where a server gives no token ids.
    """
    return re.findall(r"\s*\S+", text)


def trajectory_length(trajectory: Completion) -> int:
    """Return the length in the unit in which it is cut: tokens, or word pieces where there are no token ids."""
    return len(trajectory.token_ids) or len(word_pieces(trajectory.text))


def extraction_messages(prompt: Prompt, instruction: str, trajectory_text: str, cut: int) -> list[dict[str, str]]:
    """Lay out a probe as plain text: the authors' extraction prompt, for servers without token ids."""
    reasoning = "".join(word_pieces(trajectory_text)[:cut])
    return [{"role": "user", "content": extraction_text(prompt, instruction, reasoning)}]


def extraction_text(prompt: Prompt, instruction: str, reasoning: str) -> str:
    return EXTRACTION_PROMPT.format(question=question_text(prompt, instruction), reasoning=reasoning)


def replies_are_whole(description: Mapping[str, object]) -> bool:
    """Say whether probes were answered with a whole response, its box included, though chains were cut by tokens."""
    return description.get("layout") == AUTHORS_LAYOUT


def fingerprint_of(description: Mapping[str, object]) -> str:
    """Return 16 hexadecimal digits that stand for a description (JSON, sorted keys, SHA-256)."""
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()[:16]


class TokenLayout:
    """Prompts and probes as token ids, by the model's own tokenizer and chat template.

    A model without a template gets the bare question and a line break, as a base model is asked.

    ``probe_layout``: "shared-prefix" goes on from the prompt and the chain as the model has them in its cache, and
    forces an answer there. "authors" asks anew, with the question and the chain, decoded, inside an extraction prompt
    (CONST's reference code); what a cache holds of the chain is of no use to it. Raises InvalidConfig.
    """

    def __init__(
        self,
        tokenizer: Any,
        instruction: str,
        *,
        extra_eos_ids: Sequence[int] = (),
        probe_layout: str = "shared-prefix",
    ) -> None:
        if probe_layout not in PROBE_LAYOUTS:
            raise InvalidConfig("probe_layout", probe_layout, f"one of {', '.join(PROBE_LAYOUTS)}")
        self.tokenizer, self.instruction = tokenizer, instruction
        self.shares_prefix = probe_layout == "shared-prefix"
        self._layout_name = PROBE_LAYOUTS[probe_layout]
        known = [tokenizer.eos_token_id, *extra_eos_ids]
        self.eos_ids = frozenset(int(i) for i in known if i is not None)
        self._suffix_ids = self._encode(PROBE_SUFFIX)
        self._closing_suffix_ids = self._encode(CLOSE_THINKING + PROBE_SUFFIX.lstrip("\n"))

    def _encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    @property
    def probe_stop(self) -> str | None:
        """Where the answer to a probe ends, beside an end token."""
        return PROBE_STOP if self.shares_prefix else None

    def prompt_ids(self, prompt: Prompt) -> list[int]:
        return self._asked(question_text(prompt, self.instruction))

    def _asked(self, text: str) -> list[int]:
        if not self.tokenizer.chat_template:
            return list(self.tokenizer.encode(text + "\n"))
        messages = [{"role": "user", "content": text}]
        return list(self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False))

    def row(self, request: Request, prompt_ids: Sequence[int]) -> list[int]:
        """Return the token ids that a request is asked with; ``prompt_ids`` are those of its prompt."""
        if request.kind is not CompletionKind.PROBE:
            return list(prompt_ids)
        if self.shares_prefix:
            return self.probe_ids(prompt_ids, request.trajectory_ids, request.index)
        reasoning = self.text(request.trajectory_ids[: request.index])
        return self._asked(extraction_text(request.prompt, self.instruction, reasoning))

    def probe_ids(self, prompt_ids: Sequence[int], trajectory_ids: Sequence[int], cut: int) -> list[int]:
        """Return prompt + the first ``cut`` trajectory tokens + the suffix that forces an answer.

        Nothing is decoded and encoded again, so token boundaries stay where the model put them. Reasoning still
        open at the cut is closed first.
        """
        kept = list(trajectory_ids[:cut])
        opening = self.tokenizer.decode(prompt_ids[-8:]) + self.tokenizer.decode(kept)
        is_thinking = opening.rfind("<think>") > opening.rfind("</think>")
        return [*prompt_ids, *kept, *(self._closing_suffix_ids if is_thinking else self._suffix_ids)]

    def without_end(self, token_ids: Sequence[int]) -> tuple[int, ...]:
        """Drop the end tokens at the end: a probe never contains one."""
        end = len(token_ids)
        while end and token_ids[end - 1] in self.eos_ids:
            end -= 1
        return tuple(token_ids[:end])

    def text(self, token_ids: Sequence[int]) -> str:
        """Return what the model wrote, without special tokens."""
        return str(self.tokenizer.decode(token_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def too_long(self, prompts: Sequence[Prompt], settings: SamplingSettings, context: int) -> list[SetAside]:
        """Name the prompts for which context cannot hold prompt, trajectory, probe suffix and probe answer.

        Raises InvalidConfig when no prompt at all would fit.
        """
        around = len(self._closing_suffix_ids) if self.shares_prefix else len(self._encode(EXTRACTION_PROMPT))
        room = context - settings.max_tokens - settings.probe_max_tokens - around
        if room < 1:
            raise InvalidConfig(
                "max_tokens", settings.max_tokens, f"well below the model's context of {context} tokens"
            )
        lengths = ((prompt.uid, len(self.prompt_ids(prompt))) for prompt in prompts)
        return [
            SetAside(
                uid,
                "prompt_too_long",
                f"The prompt has {length} tokens; beside {settings.max_tokens} for the answer, the model's context "
                f"of {context} has room for {room}.",
            )
            for uid, length in lengths
            if length > room
        ]

    def describe(self) -> dict[str, object]:
        """Name what the rendering depends on, for the fingerprint."""
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        vocabulary = backend.to_str() if backend is not None else json.dumps(self.tokenizer.get_vocab(), sort_keys=True)
        template = json.dumps(self.tokenizer.chat_template, sort_keys=True)
        return {
            "layout": self._layout_name,
            "instruction": self.instruction,
            "tokenizer": hashlib.sha256(vocabulary.encode()).hexdigest()[:16],
            "chat_template": hashlib.sha256(template.encode()).hexdigest()[:16],
        }
