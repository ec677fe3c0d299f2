"""What a model server can do wrong, and what becomes of the work."""

import itertools
import socket
import threading

import pytest

from selector.errors import EngineUnavailable, InvalidConfig, ModelNotFound, TokenizerNotFound
from selector.generation import CompletionKind, Prompt, Request, SamplingSettings, SetAside, open_engine
from selector.volatility import CompletionShards, probe_questions, votes_of
from tests.selector.generation.fake_server import MODEL, chat_body, completion_body, fake_server

SETTINGS = SamplingSettings(max_tokens=40, probe_max_tokens=16, temperature=1.0)
PROMPTS = [Prompt(uid=f"q{i}", text=f"Compute {i}+{i}.") for i in range(5)]


def open_at(url, **options):
    return open_engine("openai", model=MODEL, base_url=url, **options)


def outcomes(prompts=PROMPTS, n=4):
    return [Request(prompt, CompletionKind.OUTCOME, index) for prompt in prompts for index in range(n)]


def probe(engine, store, n_outcomes=4):
    return probe_questions(
        engine, PROMPTS, settings=SETTINGS, n_outcomes=n_outcomes, n_probes=2, seed=1, store=store, chunk_size=4
    )


def longest(body):
    return max((len(prompt) for prompt in body["prompt"] if isinstance(prompt, list)), default=0)


def fine(path, body):
    return 200, completion_body(body)


def test_a_server_that_fails_half_of_the_time_is_asked_until_it_answers(tmp_path):
    turns, lock = itertools.count(), threading.Lock()

    def half(path, body):
        with lock:
            fails = next(turns) % 2 == 0
        return (500, {"error": {"message": "out of luck"}}) if fails else fine(path, body)

    store = CompletionShards(tmp_path / "completions")
    with fake_server(half) as url:
        engine = open_at(url, concurrency=4)
        summary = probe(engine, store)
        engine.close()

    assert summary.set_aside == []
    assert summary.n_completions_made == 5 * (1 + 2 + 4)


def test_a_server_that_fails_for_good_stops_the_work_and_what_came_is_kept(tmp_path):
    n_asked = itertools.count()

    def fails_later(path, body):
        return fine(path, body) if next(n_asked) < 8 else (503, {"error": {"message": "model crashed"}})

    store = CompletionShards(tmp_path / "completions")
    with fake_server(fails_later) as url:
        engine = open_at(url, concurrency=2, max_retries=2)
        with pytest.raises(EngineUnavailable, match="model crashed") as caught:
            probe(engine, store)
        engine.close()

    assert caught.value.where == url
    assert len(store.keys([p.uid for p in PROMPTS])) == 5 + 2 * 2  # trajectories, and two questions' probes


def test_a_refused_question_is_set_aside_by_name_and_the_rest_is_answered(tmp_path):
    def refuses_long(path, body):
        if longest(body) > 30:
            return 400, {"error": {"message": "I do not like it."}}
        return fine(path, body)

    odd = Prompt(uid="odd", text="Compute 1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1.")
    with fake_server(refuses_long) as url:
        engine = open_at(url)
        results = list(engine.complete(outcomes([*PROMPTS, odd]), SETTINGS, 1))
        engine.close()

    refused = {(r.uid, r.code) for r in results if isinstance(r, SetAside)}
    assert refused == {("odd", "refused")}
    assert next(r for r in results if isinstance(r, SetAside)).message.count("I do not like it.") == 1
    assert {(r.uid, r.index) for r in results if not isinstance(r, SetAside)} == {
        (p.uid, i) for p in PROMPTS for i in range(4)
    }


def test_a_question_on_which_the_server_keeps_failing_does_not_hold_the_others_up():
    def fails_on_long(path, body):
        return (500, {"error": {"message": "assertion failed"}}) if longest(body) > 30 else fine(path, body)

    odd = Prompt(uid="a", text="Compute 1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1.")
    with fake_server(fails_on_long) as url:
        engine = open_at(url, max_retries=1, concurrency=2)
        results = list(engine.complete([*outcomes([odd], n=1), *outcomes(PROMPTS, n=200)], SETTINGS, 1))
        engine.close()

    assert [(r.uid, r.code) for r in results if isinstance(r, SetAside)] == [("a", "server_error")]
    assert len(results) == 1 + 5 * 200


def test_a_server_that_gives_fewer_completions_than_asked_for_is_asked_for_the_rest():
    with fake_server(lambda path, body: fine(path, {**body, "n": 1})) as url:
        engine = open_at(url)
        made = list(engine.complete(outcomes(), SETTINGS, 1))
        engine.close()

    assert sorted((c.uid, c.index) for c in made) == [(p.uid, i) for p in PROMPTS for i in range(4)]


def test_probes_of_one_question_go_in_one_request_and_come_back_in_their_places(tmp_path):
    asked = []

    def backwards(path, body):
        asked.append(body)
        answered = completion_body(body)
        return 200, {**answered, "choices": answered["choices"][::-1]}

    trajectory = tuple(range(40, 60))
    with fake_server(backwards) as url:
        engine = open_at(url)
        requests = [Request(PROMPTS[0], CompletionKind.PROBE, cut, trajectory) for cut in (1, 5, 20)]
        made = sorted(engine.complete(requests, SETTINGS, 1), key=lambda completion: completion.index)
        engine.close()

    (body,) = (body for body in asked if body["max_tokens"] == SETTINGS.probe_max_tokens)
    assert [len(prompt) for prompt in body["prompt"]] == [completion.n_prompt_tokens for completion in made]
    assert [completion.text for completion in made] == [f"\\boxed{{{c.n_prompt_tokens}}}" for c in made]
    assert [c.n_prompt_tokens - made[0].n_prompt_tokens for c in made] == [0, 4, 19]


def test_a_server_that_is_down_is_said_to_be_down():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"

    with pytest.raises(EngineUnavailable, match="did not answer") as caught:
        open_at(url)

    assert url in str(caught.value)


def test_a_missing_model_is_named_with_what_there_is():
    with fake_server(fine) as url, pytest.raises(ModelNotFound) as caught:
        open_engine("openai", model="qwen", base_url=url)

    assert (caught.value.model, caught.value.where, caught.value.available) == ("qwen", url, MODEL)


def test_an_address_without_v1_says_so():
    with fake_server(fine) as url, pytest.raises(EngineUnavailable, match="ends in /v1"):
        open_at(url.removesuffix("/v1"))


def test_a_refused_key_says_so():
    def refuses(path, body):
        return 401, {"error": {"message": "no"}}

    with fake_server(refuses) as url, pytest.raises(EngineUnavailable, match="refuses the API key"):
        open_at(url)


def test_a_server_that_keeps_token_ids_to_itself_is_not_cut_by_guesses():
    def keeps_ids(path, body):
        return 200, completion_body(body, with_ids=False)

    with fake_server(keeps_ids) as url, pytest.raises(EngineUnavailable, match="gives none back"):
        open_at(url)


def test_a_tokenizer_that_is_not_here_is_asked_for(tmp_path):
    with fake_server(fine) as url, pytest.raises(TokenizerNotFound, match="--tokenizer"):
        open_at(url, tokenizer=str(tmp_path))


@pytest.mark.parametrize(
    ("options", "setting"),
    [
        ({"base_url": None}, "base_url"),
        ({"base_url": "http://127.0.0.1:1/v1", "api_key_env": "NO_SUCH_VARIABLE"}, "api_key_env"),
        ({"base_url": "http://127.0.0.1:1/v1", "layout": "telepathy"}, "layout"),
        ({"base_url": "http://127.0.0.1:1/v1", "concurrency": 0}, "concurrency"),
        ({"base_url": "http://127.0.0.1:1/v1", "batch_size": 3}, "engine options"),
    ],
)
def test_options_that_mean_nothing_are_named(options, setting):
    with pytest.raises(InvalidConfig) as caught:
        open_engine("openai", model=MODEL, **options)

    assert caught.value.setting == setting


def test_a_chat_only_server_is_asked_by_chat_under_another_fingerprint(tmp_path):
    asked = []

    def chat_only(path, body):
        if path != "/v1/chat/completions":
            return 404, {"error": {"message": "not here"}}
        content = body["messages"][-1]["content"]
        asked.append((content, body["temperature"], body["max_tokens"]))
        return 200, chat_body("\\boxed{4}" if "Your response:" in content else "First 2.\n Then 4. So \\boxed{4}")

    store = CompletionShards(tmp_path / "completions")
    with fake_server(chat_only) as url:
        engine = open_at(url)
        by_chat = engine.describe(SETTINGS)
        fingerprint = engine.fingerprint(SETTINGS)
        probe(engine, store)
        engine.close()
    with fake_server(fine) as url:
        engine = open_at(url)
        by_ids = engine.describe(SETTINGS)
        assert engine.fingerprint(SETTINGS) != fingerprint
        engine.close()

    assert (by_chat["layout"], by_ids["layout"]) == ("text-1", "token-ids-1")
    votes = votes_of("q2", store.load(["q2"]), 4, 2)
    assert (votes.probe_answers, votes.outcome_answers) == (("4", "4"), ("4",) * 4)
    assert sum(temperature == 1.0 for _, temperature, _ in asked) == 5 * 4
    (half, _, limit), *_ = [
        ask for ask in asked if "Compute 2+2." in ask[0] and "Then 4" not in ask[0] and ask[2] == 16
    ]
    assert "First 2.\n Then\n" in half
    assert limit == SETTINGS.probe_max_tokens


def test_leaving_early_ends_what_is_in_flight():
    in_flight, release = threading.Event(), threading.Event()
    n_asked = itertools.count()

    def slow_after_two(path, body):
        if next(n_asked) > 2:
            in_flight.set()
            release.wait(30)
        return fine(path, body)

    with fake_server(slow_after_two) as url:
        engine = open_at(url, concurrency=1)
        results = engine.complete([Request(prompt, CompletionKind.TRAJECTORY, 0) for prompt in PROMPTS], SETTINGS, 1)
        first = next(results)
        in_flight.wait(30)
        results.close()
        afterwards = engine.complete([], SETTINGS, 1)

        assert first.uid == "q0"
        assert list(afterwards) == []
        release.set()
        engine.close()

    assert next(n_asked) == 4
