"""The lottery: its questions, its tables against a slow computation, and one training from end to end."""

from __future__ import annotations

import random
from dataclasses import replace
from math import sqrt
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="TRL is not installed: pip install 'assay-rlvr[demo]'")

from benchmarks.lottery import skills, table
from benchmarks.lottery.__main__ import add_result, name_of, read_results
from benchmarks.lottery.arms import ARMS, STAGES, Job, draw_control, jobs
from benchmarks.lottery.compose import compose
from benchmarks.lottery.pools import demo_pool, mixed_pool
from selector.rewards import accuracy_reward

T_975_WITH_2_DEGREES = 4.302652729911275  # from a printed table


def row(arm: str, seed: int, value: float, budget: int = 8) -> dict[str, object]:
    return {"pool": "demo", "arm": arm, "budget": budget, "seed": seed, "mean_of_8": value, "greedy": value}


def test_differences_are_paired_by_seed_and_have_a_t_interval() -> None:
    random_values, ours = {0: 0.50, 1: 0.60, 2: 0.55, 3: 0.9}, {2: 0.60, 0: 0.54, 1: 0.61}

    mean, half, n = table.paired_difference(ours, random_values)

    differences = [0.04, 0.01, 0.05]
    slow_mean = sum(differences) / 3
    slow_variance = sum((each - slow_mean) ** 2 for each in differences) / 2
    assert n == 3
    assert mean == pytest.approx(slow_mean)
    assert half == pytest.approx(T_975_WITH_2_DEGREES * sqrt(slow_variance / 3))


def test_the_table_shows_means_differences_and_seeds() -> None:
    results = [row("random", seed, value) for seed, value in enumerate((0.5, 0.6, 0.55))]
    results += [row("const", seed, value) for seed, value in enumerate((0.6, 0.71, 0.64))]
    results += [row("entropy", 0, 0.4), row("untrained", 0, 0.45, budget=0)]

    lines = table.main_table(results, "demo", "mean_of_8").splitlines()

    assert lines[2:] == [
        "| Random | 0.550 |  | 3 |",
        "| CONST, alpha .1 | 0.650 | **+0.100 ± 0.025** | 3 |",
        "| Entropy of the answers | 0.400 | -0.100 | 1 |",
        "| before training | 0.450 |  |  |",
    ]


def test_a_pool_without_trainings_says_so() -> None:
    assert table.main_table([row("random", 0, 0.5)], "mixed", "greedy") == table.NOTHING_YET


def test_tables_are_rewritten_between_their_markers(tmp_path: Path) -> None:
    document = tmp_path / "lottery.md"
    document.write_text("before\n<!-- table: demo greedy -->\nold\n<!-- end -->\nafter\n", encoding="utf-8")

    table.rewrite(document, {"demo greedy": "new"})

    assert document.read_text("utf-8") == "before\n<!-- table: demo greedy -->\nnew\n<!-- end -->\nafter\n"


def test_results_survive_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    add_result(Job("demo", "const", 8, 0), {"mean_of_8": 0.5}, path)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"pool": "demo", "ar')

    assert read_results(path) == [{"pool": "demo", "arm": "const", "budget": 8, "seed": 0, "mean_of_8": 0.5}]

    add_result(Job("demo", "const", 8, 1), {"mean_of_8": 0.6}, path)

    assert [result["seed"] for result in read_results(path)] == [0, 1]


def test_jobs_come_in_complete_blocks_of_seeds() -> None:
    listed = list(jobs(2, ("mixed", "demo")))

    first = listed[: len(STAGES[0])]
    assert {(job.pool, job.seed) for job in first} == {("mixed", 0)}
    assert [job.pool for job in listed[: 4 * len(STAGES[0]) - 2]].count("demo") == 2 * (len(STAGES[0]) - 1)
    assert all(job.is_in_shard(0, 2) != job.is_in_shard(1, 2) for job in listed)
    assert len({job.key for job in listed}) == len(listed)
    assert {job.arm for job in listed} == set(ARMS)


def test_arms_that_pick_alike_share_a_training() -> None:
    assert name_of("demo", 0, ["a", "b"]) == name_of("demo", 0, ["b", "a"])
    assert name_of("demo", 0, ["a", "b"]) != name_of("demo", 1, ["a", "b"])


@pytest.mark.parametrize("level", skills.LEVELS)
@pytest.mark.parametrize("skill", skills.SKILLS)
def test_training_answers_are_right_except_in_traps(skill: str, level: str) -> None:
    rng = random.Random(5)
    for _ in range(50):
        question = skills.draw_question(rng, skill, level)
        written = [skills.write_solution(question, terse=terse) for terse in (True, False)]
        assert accuracy_reward(written, answer=[question.answer] * 2) == [float(level != "trap")] * 2
        if level == "medium":
            assert len(written[1]) > len(written[0])


def test_a_control_draws_from_the_extremes() -> None:
    right = {f"q{number:02}": (0.0 if number < 20 else 1.0 if number < 23 else 0.5) for number in range(60)}

    never = draw_control(right, "lowest", Job("demo", "never_right", 8, 0))
    always = draw_control(right, "highest", Job("demo", "always_right", 8, 0))
    between = draw_control(right, "between", Job("demo", "sometimes_right", 8, 0))

    assert {right[uid] for uid in never} == {0.0}
    assert {right[uid] for uid in between} == {0.5}
    assert len(set(always)) == 8
    assert never != draw_control(right, "lowest", Job("demo", "never_right", 8, 1))


def test_too_few_questions_of_a_kind_are_named() -> None:
    candidates = skills.draw_distinct(1, {"easy": 2})

    with pytest.raises(ValueError, match="112 mastered questions are wanted, 12 found"):
        compose(candidates, [1.0] * len(candidates))


def test_the_mixed_sets_are_apart_and_as_described() -> None:
    pool = mixed_pool()

    texts = [question.text for questions in (pool.pool, pool.calibration, pool.held_out) for question in questions]
    assert len(set(texts)) == len(texts) == 112 + 112 + 84
    levels = [question.family.partition(" ")[2] for question in pool.pool]
    assert {level: levels.count(level) for level in skills.LEVELS} == {
        "easy": 50,
        "medium": 12,
        "large": 25,
        "trap": 25,
    }


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
def test_leaving_out_completions_without_advantage_changes_no_weight(tmp_path: Path) -> None:
    import trl
    from safetensors.torch import load_file

    from benchmarks.lottery.training import QuickTrainer, training_rows
    from selector.tiny import grpo

    class WholeBatch(QuickTrainer):
        _compute_loss = trl.GRPOTrainer._compute_loss

    pool = mixed_pool()
    weights = {}
    for trainer_class in (QuickTrainer, WholeBatch):
        directory = tmp_path / trainer_class.__name__
        grpo.train(
            training_rows(pool.pool[:8]),
            accuracy_reward,
            n_steps=2,
            seed=0,
            directory=directory,
            model_dir=pool.model_dir,
            trainer_class=trainer_class,
            beta=0.0,
            max_completion_length=pool.max_new_tokens,
        )
        weights[trainer_class] = load_file(directory / "model.safetensors")

    for name, weight in weights[QuickTrainer].items():
        assert weight.allclose(weights[WholeBatch][name], atol=1e-5), name


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
def test_two_steps_of_training_change_what_the_held_out_questions_earn() -> None:
    from benchmarks.lottery.training import Recipe, measure, train_and_measure

    pool = demo_pool()
    small = replace(pool, held_out=pool.held_out[::12])

    before = measure(small, small.model_dir)
    after = train_and_measure(small, pool.pool[:4], seed=0, recipe=Recipe(n_steps=2))

    assert len(after["rewards"]) == 2
    assert all(0 < reward < 1 for reward in after["rewards"])
    assert 0 < after["mean_of_8"] < 1
    assert set(after["by_family"]) == set(before["by_family"]) == {question.family for question in small.held_out}
    assert after["by_family"] != before["by_family"]
