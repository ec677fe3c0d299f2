import json

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from labeling.actions.curricula import create_curriculum
from labeling.actions.exports import create_snapshot
from labeling.actions.tokens import create_token, revoke_token
from labeling.errors import Conflict, EngineFailure, LabelingError
from labeling.models import ApiToken, Curriculum, GoldAnswer, Membership, RecordedVotes, RewardEvent
from labeling.queries.curricula import story_of
from tests import factories


def post(client, curriculum, what, data):
    address = reverse(f"api-curriculum-{what}", args=[curriculum.pk])
    return client.post(address, json.dumps(data), content_type="application/json")


def an_event(identity="e1", uid="u0", rewards=(1.0, 0.0), step=0, **more):
    return {"id": identity, "uid": uid, "rewards": list(rewards), "step": step, **more}


def beliefs_of(curriculum):
    curriculum.refresh_from_db()
    return curriculum.state["beliefs"]["questions"]


def test_a_trainer_is_given_different_questions_of_the_snapshot(trainer, curriculum):
    response = post(trainer, curriculum, "propose", {"k": 4})

    uids = response.json()["uids"]
    assert response.status_code == 200
    assert len(set(uids)) == 4
    assert set(uids) <= {row["uid"] for row in curriculum.snapshot.rows}


def test_the_same_key_gets_the_same_questions_again(trainer, curriculum):
    answers = [post(trainer, curriculum, "propose", {"k": 3, "idempotency_key": "step 7"}).json() for _ in range(3)]

    assert answers[0] == answers[1] == answers[2]
    assert curriculum.proposals.count() == 1


def test_a_key_that_was_used_for_another_number_is_a_conflict(trainer, curriculum):
    post(trainer, curriculum, "propose", {"k": 3, "idempotency_key": "step 7"})

    response = post(trainer, curriculum, "propose", {"k": 4, "idempotency_key": "step 7"})

    assert response.status_code == 409
    assert response.json()["error"]["code"] == "key_reused"
    assert curriculum.proposals.count() == 1


def test_more_questions_than_there_are_is_an_error_with_the_number(trainer, curriculum):
    response = post(trainer, curriculum, "propose", {"k": 7})

    assert response.status_code == 400
    assert response.json()["error"]["code"] == "invalid_config"
    assert "from 1 to 6" in response.json()["error"]["message"]


def test_rewards_move_the_beliefs(trainer, curriculum):
    response = post(trainer, curriculum, "rewards", {"events": [an_event(rewards=[1, 1, 0, None])]})

    assert response.json() == {"accepted": 1, "repeated": 0, "rejected": []}
    assert beliefs_of(curriculum) == {"u0": [3.0, 2.0, 3, 0]}


@pytest.mark.parametrize("reward", ["nan", "Infinity", "-inf"])
def test_a_reward_that_no_database_can_keep_is_rejected(trainer, curriculum, reward):
    response = post(trainer, curriculum, "rewards", {"events": [an_event(rewards=[1, reward])]})

    assert response.status_code == 422
    assert RewardEvent.objects.count() == 0


def test_a_body_that_is_too_large_is_refused_with_its_size(trainer, curriculum, monkeypatch):
    monkeypatch.setattr("labeling.api.parsing.MOST_BYTES", 100)

    response = post(trainer, curriculum, "rewards", {"events": [an_event(str(n)) for n in range(10)]})

    assert response.status_code == 413
    assert response.json()["error"]["code"] == "too_large"
    assert "fewer events" in response.json()["error"]["message"]
    assert RewardEvent.objects.count() == 0


def test_a_report_that_is_sent_twice_counts_once(trainer, curriculum):
    for _ in range(2):
        response = post(trainer, curriculum, "rewards", {"events": [an_event("a"), an_event("a"), an_event("b")]})

    assert response.json() == {"accepted": 0, "repeated": 3, "rejected": []}
    assert RewardEvent.objects.count() == 2
    assert beliefs_of(curriculum)["u0"][2] == 4


def test_what_cannot_be_read_is_named_and_the_rest_counts(trainer, curriculum):
    events = [
        an_event("good"),
        an_event("stranger", uid="nobody"),
        {"id": "short"},
        an_event("text", rewards=["much"]),
        "no event",
        an_event("late", uid="u1", step=3),
    ]

    response = post(trainer, curriculum, "rewards", {"events": events})

    found = response.json()
    assert response.status_code == 200
    assert found["accepted"] == 2
    assert [(each["position"], each["code"]) for each in found["rejected"]] == [
        (1, "unknown_question"),
        (2, "invalid"),
        (3, "invalid"),
        (4, "invalid"),
    ]
    assert "nobody" in found["rejected"][0]["message"]


def test_nothing_good_is_refused_as_a_whole(trainer, curriculum):
    response = post(trainer, curriculum, "rewards", {"events": [an_event(uid="nobody")]})

    assert response.status_code == 422
    error = response.json()["error"]
    assert error["code"] == "no_event_taken"
    assert "nobody" in error["message"]
    assert [each["code"] for each in error["details"]["rejected"]] == ["unknown_question"]


def test_a_report_without_a_step_belongs_to_the_latest_proposal(trainer, curriculum):
    for _ in range(3):
        post(trainer, curriculum, "propose", {"k": 2})

    post(trainer, curriculum, "rewards", {"events": [{"id": "a", "uid": "u0", "rewards": [1]}]})

    assert RewardEvent.objects.get().step == 2


def test_the_state_goes_on_where_it_was(trainer, curriculum, manager):
    twin = create_curriculum(pool=curriculum.pool, snapshot=curriculum.snapshot, kind="mopps", name="twin", by=manager)

    for step in range(4):
        events = [an_event(f"{step}-{i}", uid=f"u{i}", rewards=[i % 2, 1], step=step) for i in range(6)]
        for each in (curriculum, twin):
            post(trainer, each, "rewards", {"events": events})
        chosen = [post(trainer, each, "propose", {"k": 3}).json() for each in (curriculum, twin)]
        assert chosen[0] == chosen[1]


def test_dynamic_sampling_asks_for_more_in_place_of_what_taught_nothing(trainer, curriculum, manager):
    sampling = create_curriculum(
        pool=curriculum.pool, snapshot=curriculum.snapshot, kind="dynamic_sampling", name="dapo", by=manager
    )
    first, second = post(trainer, sampling, "propose", {"k": 2}).json()["uids"]
    events = [an_event("a", uid=first, rewards=[1, 1]), an_event("b", uid=second, rewards=[1, 0])]
    post(trainer, sampling, "rewards", {"events": events})

    answer = post(trainer, sampling, "refill", {}).json()

    assert answer["kept"] == [second]
    assert len(answer["uids"]) == 1
    assert first not in answer["uids"]


def test_the_story_of_the_rewards(trainer, curriculum):
    for step in range(3):
        events = [
            an_event(f"{step}-0", uid="u0", rewards=[1] * 8, step=step),
            an_event(f"{step}-1", uid="u1", rewards=[0] * 8, step=step),
        ]
        post(trainer, curriculum, "rewards", {"events": events})

    story = story_of(curriculum).story

    assert [moment.step for moment in story.moments] == [0, 1, 2]
    assert story.moments[0].spread > story.moments[-1].spread
    standings = {question.uid: question.standing for question in story.questions}
    assert standings["u0"] == "done"
    assert standings["u1"] == "stuck"
    assert standings["u2"] == "untried"


def test_a_long_story_is_read_piece_by_piece_and_new_rewards_alone_afterwards(trainer, curriculum):
    for step in range(6):
        events = [an_event(f"{step}-{i}", uid=f"u{i}", rewards=[i % 2, 1], step=step) for i in range(6)]
        post(trainer, curriculum, "rewards", {"events": events[:3]})
        story_of(curriculum, seconds=0.0)
        post(trainer, curriculum, "rewards", {"events": events[3:]})
    n_left = [story_of(curriculum, seconds=0.0).n_left for _ in range(2)]
    in_pieces = story_of(curriculum).story
    cache.clear()

    assert n_left == [29, 28]  # a look without time reads one report
    assert in_pieces == story_of(curriculum, seconds=None).story
    assert [moment.step for moment in in_pieces.moments] == list(range(6))


def test_the_page_shows_how_far_the_reading_is(trainer, curriculum, manager, monkeypatch):
    post(trainer, curriculum, "rewards", {"events": [an_event(str(n)) for n in range(5)]})
    monkeypatch.setattr("labeling.views.curricula.queries.story_of", lambda row: story_of(row, seconds=0.0))
    client, address = Client(), reverse("curriculum", args=[curriculum.pk])
    client.force_login(manager, backend="django.contrib.auth.backends.ModelBackend")

    page, part = client.get(address), client.get(address, headers={"HX-Request": "true"})
    monkeypatch.undo()
    after = client.get(address, headers={"HX-Request": "true"})

    assert "1 of 5" in page.content.decode()
    assert "2 of 5" in part.content.decode()
    assert "<h1>" in page.content.decode()
    assert "<h1>" not in part.content.decode()
    assert after["HX-Redirect"] == address
    assert "Beliefs over time" in client.get(address).content.decode()


def test_the_form_says_which_order_is_missing(curriculum, manager):
    question = factories.make_question(pool=curriculum.pool)
    round = factories.make_round(run=factories.make_run(pool=curriculum.pool, questions=[question]))
    GoldAnswer.objects.create(question=question, round=round, answer="7", source=GoldAnswer.Source.SINGLE)
    client = Client()
    client.force_login(manager, backend="django.contrib.auth.backends.ModelBackend")

    response = client.post(reverse("curriculum-new", args=[curriculum.pool.slug]), {"name": "run 2", "kind": "best"})

    assert response.status_code == 422
    assert "best is not one of the available choices" in response.content.decode()


def no_token():
    return {}


def not_a_token():
    return {"Authorization": "Bearer assay_guessed"}


def two_words():
    return {"Authorization": "Bearer one two"}


@pytest.mark.parametrize("headers", [no_token, not_a_token, two_words])
def test_without_a_token_nothing_is_said(headers, curriculum):
    response = post(Client(headers=headers()), curriculum, "propose", {"k": 1})

    assert response.status_code == 401
    assert response["WWW-Authenticate"] == "Bearer"
    assert set(response.json()["error"]) == {"code", "message", "details"}
    assert curriculum.proposals.count() == 0


def test_a_login_alone_changes_nothing_from_another_site(curriculum, manager):
    client = Client(enforce_csrf_checks=True)
    client.force_login(manager, backend="django.contrib.auth.backends.ModelBackend")

    response = post(client, curriculum, "propose", {"k": 1})

    assert response.status_code == 403
    assert "CSRF" in response.json()["error"]["message"]


def test_a_revoked_token_is_refused(pool, curriculum, manager):
    row, token = create_token(pool=pool, name="old", by=manager)
    revoke_token(token=row, by=manager)

    response = post(Client(headers={"Authorization": f"Bearer {token}"}), curriculum, "propose", {"k": 1})

    assert response.status_code == 401


def test_an_expired_token_is_refused(pool, curriculum, manager):
    row, token = create_token(pool=pool, name="old", by=manager)
    ApiToken.objects.filter(pk=row.pk).update(expires_at=timezone.now())

    response = post(Client(headers={"Authorization": f"Bearer {token}"}), curriculum, "propose", {"k": 1})

    assert response.status_code == 401


def test_a_token_does_not_outlive_its_owners_role(trainer, curriculum, manager):
    Membership.objects.filter(user=manager).delete()

    assert post(trainer, curriculum, "propose", {"k": 1}).status_code == 404
    assert trainer.get(reverse("api-curriculum", args=[curriculum.pk])).status_code == 404


def test_a_token_of_another_pool_finds_nothing(curriculum):
    stranger = factories.make_user()
    other = factories.make_pool(manager=stranger)
    _, token = create_token(pool=other, name="theirs", by=stranger)
    client = Client(headers={"Authorization": f"Bearer {token}"})

    for what in ("propose", "refill", "rewards"):
        assert post(client, curriculum, what, {"k": 1, "events": [an_event()]}).status_code == 404


def test_only_the_hash_of_a_token_is_kept(pool, manager):
    row, token = create_token(pool=pool, name="cluster", by=manager)

    assert token not in str(list(ApiToken.objects.values()))
    assert row.hint == token[-4:]


@pytest.mark.parametrize("body", ["", "{", "[]", '{"k": "many"}', '{"k": 0}', '{"k": true, "extra": NaN}', "null"])
def test_a_body_that_makes_no_sense_is_a_client_error(body, trainer, curriculum):
    address = reverse("api-curriculum-propose", args=[curriculum.pk])

    response = trainer.post(address, body, content_type="application/json")

    assert response.status_code == 400
    assert set(response.json()["error"]) == {"code", "message", "details"}


def test_beliefs_start_from_the_stored_rollouts(manager, pool):
    asked, unasked = factories.make_questions(pool=pool, n=2)
    run = factories.make_run(pool=pool, questions=[asked, unasked], generation_fingerprint="recorded")
    round = factories.make_round(run=run)
    for question in (asked, unasked):
        GoldAnswer.objects.create(question=question, round=round, answer="7", source=GoldAnswer.Source.SINGLE)
    RecordedVotes.objects.create(
        question_fingerprint=asked.fingerprint,
        question_uid=asked.uid,
        generation_fingerprint="recorded",
        votes={"id": asked.uid, "probe_answers": [], "outcome_answers": ["7", "7.0", "8", ""]},
    )
    snapshot = create_snapshot(pool=pool, by=manager)

    started = create_curriculum(pool=pool, snapshot=snapshot, kind="insight", name="run", by=manager)
    fresh = create_curriculum(
        pool=pool, snapshot=snapshot, kind="insight", name="another model", by=manager, uses_stored_rollouts=False
    )

    assert started.prior == {asked.uid: [2, 2]}
    assert fresh.prior == {}
    standings = {each.uid: each for each in story_of(started).story.questions}
    assert (standings[asked.uid].a, standings[asked.uid].b) > (standings[unasked.uid].a, standings[unasked.uid].b)


def test_of_two_who_take_a_name_at_once_one_is_told(pool, manager, monkeypatch):
    snapshot = factories.make_snapshot(pool=pool, n_rows=2)
    wanted = {"pool": pool, "snapshot": snapshot, "kind": "mopps", "name": "run", "by": manager}

    def in_between(snapshot):  # the other is faster, between the look and the save
        monkeypatch.undo()
        create_curriculum(**wanted)
        return {}

    monkeypatch.setattr("labeling.actions.curricula._stored_rollouts", in_between)

    with pytest.raises(Conflict, match="another name"):
        create_curriculum(**wanted)
    assert Curriculum.objects.filter(name="run").count() == 1


def test_a_name_is_taken_once(curriculum, manager):
    with pytest.raises(Conflict):
        create_curriculum(pool=curriculum.pool, snapshot=curriculum.snapshot, kind="mopps", name="run 1", by=manager)


def test_a_kind_that_does_not_exist_and_options_that_mean_nothing_are_refused(pool, manager):
    snapshot = factories.make_snapshot(pool=pool, n_rows=2)

    with pytest.raises(LabelingError, match="insight"):
        create_curriculum(pool=pool, snapshot=snapshot, kind="best", name="a", by=manager)
    with pytest.raises(EngineFailure, match="lam"):
        create_curriculum(pool=pool, snapshot=snapshot, kind="mopps", name="a", by=manager, options={"lam": 7})
