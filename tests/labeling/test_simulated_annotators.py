"""Scripted annotators with known error rates: what the pages say of them must match what was put in. Prints figures."""

import random
from collections import Counter
from math import comb
from uuid import uuid4

import numpy as np
import pytest

from labeling.actions.annotation import claim_slot, submit_annotation
from labeling.actions.rounds import open_round
from labeling.models import Annotation, CalibrationItem, GoldAnswer, Question, Role
from labeling.queries.intervals import Share
from labeling.queries.label_risk import (
    Basis,
    agreement_of,
    error_draws,
    error_from_agreement,
    estimate,
    estimate_from_agreement,
    label_risk,
    wrong_if_agreeing,
)
from labeling.queries.quality import in_words, round_checks
from labeling.queries.rounds import round_progress
from tests import factories

ERRORS = {0: 0.05, 1: 0.1, 2: 0.2, 3: 0.4}
N_SESSIONS = 200


def coverage(n, right):
    """How often the interval of n checks contains the true share, exactly: every outcome, weighted."""
    shares = [Share(k, n) for k in range(n + 1)]
    chance = [comb(n, k) * right**k * (1 - right) ** (n - k) for k in range(n + 1)]
    return sum(p for share, p in zip(shares, chance, strict=True) if share.low <= right <= share.high)


def test_the_interval_covers_the_true_accuracy_about_as_often_as_it_says():
    exact = {(n, error): coverage(n, 1 - error) for n in (10, 20, 50, 100) for error in ERRORS.values()}
    rng = np.random.default_rng(1)
    seen = {}
    for error in ERRORS.values():
        rights = rng.binomial(50, 1 - error, 4000)
        seen[error] = np.mean([Share(int(k), 50).low <= 1 - error <= Share(int(k), 50).high for k in rights])

    print("\ncoverage of the 95 % interval (exact):")
    for n in (10, 20, 50, 100):
        print(f"  {n:3} checks:", ", ".join(f"error {e:.2f} {exact[n, e]:.3f}" for e in ERRORS.values()))
    print("  over 4,000 seeds, 50 checks:", ", ".join(f"error {e:.2f} {share:.3f}" for e, share in seen.items()))
    assert min(exact.values()) > 0.90
    assert 0.94 < np.mean(list(exact.values())) < 0.97
    assert all(abs(seen[error] - exact[50, error]) < 0.015 for error in seen)


def test_the_words_of_a_small_sample_say_that_it_is_small():
    assert in_words(Share(2, 3)) == "2 of 3: says little; between 21% and 94%"
    assert in_words(Share(0, 0)) == "no check answered yet"
    assert in_words(Share(45, 50)) == "45 of 50, between 79% and 96%"


def test_the_formulas_against_hand_worked_examples():
    tenth, fifth = np.array([0.1]), np.array([0.2])

    assert wrong_if_agreeing([tenth])[0] == pytest.approx(0.1)
    assert wrong_if_agreeing([tenth, fifth])[0] == pytest.approx(0.02 / (0.02 + 0.72))
    assert wrong_if_agreeing([tenth, tenth], [tenth])[0] == pytest.approx(0.1)
    assert error_from_agreement(np.array([0.82]), 2)[0] == pytest.approx(0.1, abs=1e-6)
    assert error_from_agreement(np.array([0.3]), 2)[0] == pytest.approx(0.5, abs=1e-6)


def simulated_session(rng, *, n_questions, n_checks, overlap):
    """One session in arrays: graded checks, what each agreed label rests on, how many are wrong, how many agree.

    Whoever errs gives the same wrong answer, as where there are two choices.
    """
    checks = {i: Share(int(rng.binomial(n_checks, 1 - error)), n_checks) for i, error in ERRORS.items()}
    bases: Counter[Basis] = Counter()
    n_wrong = 0
    for _ in range(n_questions):
        people = sorted(rng.choice(len(ERRORS), size=overlap, replace=False).tolist())
        errs = [rng.random() < ERRORS[person] for person in people]
        if len(set(errs)) == 1:
            bases[Basis(tuple(people))] += 1
            n_wrong += errs[0]
    return checks, bases, n_wrong


@pytest.mark.parametrize(("overlap", "n_checks"), [(1, 10), (1, 40), (2, 10), (2, 40), (3, 20)])
def test_the_expected_number_of_wrong_labels_matches_over_many_sessions(overlap, n_checks):
    expected, wrong, inside, width = [], [], [], []
    for seed in range(N_SESSIONS):
        rng = np.random.default_rng(seed)
        checks, bases, n_wrong = simulated_session(rng, n_questions=200, n_checks=n_checks, overlap=overlap)
        found = estimate(bases, error_draws(checks, list(ERRORS), rng), rng)
        expected.append(found.expected)
        wrong.append(n_wrong)
        inside.append(found.low <= n_wrong <= found.high)
        width.append(found.high - found.low)

    print(
        f"\noverlap {overlap}, {n_checks} checks each: {np.mean(wrong):.2f} labels wrong, {np.mean(expected):.2f} "
        f"expected; in the range in {100 * np.mean(inside):.1f}% of {N_SESSIONS} sessions, width {np.mean(width):.1f}"
    )
    assert np.mean(expected) == pytest.approx(np.mean(wrong), rel=0.2, abs=0.4)
    assert 0.90 < np.mean(inside) <= 0.99


def test_agreement_alone_tells_the_number_of_wrong_labels_where_all_err_equally_often():
    wrong, expected, inside = [], [], []
    for seed in range(N_SESSIONS):
        rng = np.random.default_rng(seed)
        errs = rng.random((200, 2)) < 0.15
        agreed = errs[:, 0] == errs[:, 1]
        n_wrong = int((agreed & errs[:, 0]).sum())
        n_agreed = int(agreed.sum())
        found = estimate_from_agreement(
            n_agreed=n_agreed, n_disagreed=200 - n_agreed, overlap=2, n_labels=n_agreed, rng=rng
        )
        wrong.append(n_wrong)
        expected.append(found.expected)
        inside.append(found.low <= n_wrong <= found.high)

    print(
        f"\nby agreement alone: {np.mean(wrong):.2f} wrong, {np.mean(expected):.2f} expected, in {np.mean(inside):.3f}"
    )
    assert np.mean(expected) == pytest.approx(np.mean(wrong), rel=0.15)
    assert np.mean(inside) > 0.90


def make_session(pool, *, n_questions, overlap, rate, n_items):
    """A round of questions with two choices, and who answers: (user, error rate)."""
    rng = random.Random(7)
    choice = {"answer_kind": "choice", "choices": ["yes", "no"]}
    truths = {}
    questions = [factories.make_question(pool=pool, uid=f"s{i}", **choice) for i in range(n_questions)]
    for question in questions:
        truths[question.fingerprint] = rng.choice("AB")
    items = factories.make_calibration_set(pool=pool)
    for i in range(n_items):
        item = factories.make_calibration_item(
            calibration_set=items, uid=f"k{i}", answer=rng.choice("AB"), text=f"Is {i} known?", **choice
        )
        truths[item.fingerprint] = item.answer
    people = [
        (factories.make_user(username=f"err{error}", pool=pool, roles=(Role.ANNOTATOR,)), error)
        for error in ERRORS.values()
    ]
    run = factories.make_run(pool=pool, questions=questions, calibration_set=items)
    budget = factories.make_budget(pool=pool, units=n_questions * overlap)
    return open_round(run=run, budget=budget, overlap=overlap, check_rate=rate, by=None), people, truths


def work(round, people, truths, *, seed):
    """Everybody in turn answers what comes, wrongly as often as they do, until nothing is left."""
    rng = random.Random(seed)
    at_work = list(people)
    while at_work:
        user, error = rng.choice(at_work)
        slot = claim_slot(user=user, round=round)
        if slot is None:
            at_work.remove((user, error))
            continue
        truth = truths[slot.asked.fingerprint]
        said = "BA"["AB".index(truth)] if rng.random() < error else truth
        submit_annotation(slot=slot, answer=said, idempotency_key=uuid4(), by=user)


@pytest.mark.timeout(1200)  # some 480 answers; seconds on an idle machine
def test_a_session_through_the_actions_shows_the_error_rates_that_were_put_in(pool):
    n_questions, overlap = 200, 2
    round, people, truths = make_session(pool, n_questions=n_questions, overlap=overlap, rate=0.2, n_items=120)

    work(round, people, truths, seed=3)

    progress, checks = round_progress(round=round), round_checks(round=round)
    risk = label_risk(progress=progress, checks=checks)
    by_question: dict[int, list[float]] = {}
    rates = {user.pk: error for user, error in people}
    for question, annotator in Annotation.objects.counting().values_list("slot__question", "annotator"):
        by_question.setdefault(question, []).append(rates[annotator])
    chances = [(1 - a) * (1 - b) + a * b for a, b in by_question.values()]
    spread = sum(chance * (1 - chance) for chance in chances) ** 0.5
    agreement = agreement_of(progress)
    golds = GoldAnswer.objects.select_related("question")
    n_wrong = sum(gold.answer != truths[gold.question.fingerprint] for gold in golds)
    put_in = sum(a * b / chance for (a, b), chance in zip(by_question.values(), chances, strict=True)) * (
        len(golds) / n_questions
    )

    print(f"\n{n_questions} questions, overlap {overlap}, {checks.n_done} checks answered of {checks.n_slots}")
    print(f"agreement {agreement.n} of {agreement.of}; expected {sum(chances):.1f} ± {spread:.1f}")
    for each in checks.annotators:
        print(f"  {each.user}: {each.in_words} (put in: {100 * (1 - rates[each.user.pk]):.0f}% right)")
    print(
        f"labels {risk.n_labels}, wrong {n_wrong} (from the rates put in: {put_in:.1f}); by checks "
        f"{risk.by_checks.expected:.1f}, {risk.by_checks.low} to {risk.by_checks.high}; by agreement "
        f"{risk.by_agreement.expected:.1f}, {risk.by_agreement.low} to {risk.by_agreement.high}"
    )
    print("worth one more answer:", [(each.why, round_to(each.risk)) for each in risk.candidates[:3]])
    assert Question.objects.in_pool(pool).count() == n_questions
    assert len(by_question) == n_questions
    assert abs(agreement.n - sum(chances)) < 3 * spread
    assert {each.user.pk for each in checks.annotators} == set(rates)
    held = [each.accuracy.low <= 1 - rates[each.user.pk] <= each.accuracy.high for each in checks.annotators]
    assert sum(held) >= 3  # of four intervals at 95 % one misses in every fifth session
    assert risk.by_checks.low <= n_wrong <= risk.by_checks.high
    assert risk.by_checks.expected == pytest.approx(put_in, rel=0.5)
    assert risk.candidates[0].why == "annotators disagree"
    shown = CalibrationItem.objects.filter(drafts__isnull=False).values_list("pk", "drafts__author")
    assert len(shown) == len(set(shown))


def round_to(share):
    return float(f"{share:.3f}")


def test_where_one_more_answer_is_worth_most_is_where_the_least_accurate_answered_alone(pool):
    round, people, truths = make_session(pool, n_questions=40, overlap=1, rate=0.5, n_items=60)
    work(round, people, truths, seed=5)
    checks = round_checks(round=round)

    risk = label_risk(progress=round_progress(round=round), checks=checks)

    accuracy = {each.user.pk: each.accuracy for each in checks.annotators}
    alone = Annotation.objects.counting().filter(slot__question__in=[each.question.pk for each in risk.candidates])
    suggested = Counter(annotation.annotator.username for annotation in alone.select_related("annotator"))
    print(f"\nsuggested first: {dict(suggested)}; checks: {[(e.user.username, e.in_words) for e in checks.annotators]}")
    risks = [each.risk for each in risk.candidates]
    assert risks == sorted(risks, reverse=True)
    assert suggested.most_common(1)[0][0] == "err0.4"
    assert accuracy[people[3][0].pk].n < accuracy[people[3][0].pk].of
