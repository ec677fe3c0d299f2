"""A trainer on another machine, steered by the application over its API."""

from __future__ import annotations

import importlib.util
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from labeling.actions.curricula import create_curriculum
from labeling.actions.tokens import create_token
from labeling.models import Curriculum, RewardEvent
from selector import rewards
from selector.curriculum import RewardEvent as Event
from selector.curriculum.adapters import remote
from selector.curriculum.adapters.remote import RemoteCurriculum
from selector.errors import CurriculumUnreachable
from selector.tiny import MODEL_DIR
from tests import factories

N_QUESTIONS, N_ROLLOUTS, N_STEPS = 2, 4, 2


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "FIRST_PAUSE_SECONDS", 0.01)


@pytest.fixture
def insight(transactional_db: None) -> Curriculum:
    """A curriculum over six questions."""
    manager = factories.make_user(username="mira")
    pool = factories.make_pool(name="Sums", slug="sums", manager=manager)
    snapshot = factories.make_snapshot(pool=pool, n_rows=6)
    return create_curriculum(pool=pool, snapshot=snapshot, kind="insight", name="run 1", by=manager)


@pytest.fixture
def token(insight: Curriculum) -> str:
    _, text = create_token(pool=insight.pool, name="the cluster", by=insight.created_by)
    return text


@pytest.fixture
def url(live_server: Any, insight: Curriculum) -> str:
    return f"{live_server.url}/api/v1/curricula/{insight.pk}/"


def test_it_proposes_and_learns(url: str, token: str, insight: Curriculum) -> None:
    steering = RemoteCurriculum(url, token)

    first = steering.propose(3)
    events = [Event(uid, (1.0, 0.0, None), step=0) for uid in first]
    answers = [steering.observe(events) for _ in range(2)]
    second = steering.propose(3)

    assert answers[0] == {"accepted": 3, "repeated": 0, "rejected": []}
    assert answers[1] == {"accepted": 0, "repeated": 3, "rejected": []}
    assert set(first) | set(second) == {f"u{number}" for number in range(6)}  # those without evidence come next
    assert steering.describe()["n_events"] == 3
    assert steering.describe()["kind"] == insight.kind


def test_a_resumed_training_is_given_the_questions_it_had(url: str, token: str, tmp_path: Path) -> None:
    steering = RemoteCurriculum(url, token)
    steering.propose(2)
    steering.save(tmp_path / "curriculum.json")
    lost = steering.propose(2)

    resumed = RemoteCurriculum(url, token)
    resumed.load(tmp_path / "curriculum.json")

    assert resumed.propose(2) == lost
    assert steering.describe()["n_proposals"] == 2


def test_dropped_questions_are_replaced(url: str, token: str, insight: Curriculum) -> None:
    dynamic = create_curriculum(
        pool=insight.pool, snapshot=insight.snapshot, kind="dynamic_sampling", name="run 2", by=insight.created_by
    )
    steering = RemoteCurriculum(url.replace(f"/{insight.pk}/", f"/{dynamic.pk}/"), token)

    useful, dull = steering.propose(2)
    steering.observe([Event(useful, (1.0, 0.0), step=0), Event(dull, (1.0, 1.0), step=0)])
    more = steering.refill()

    assert len(more) == 1
    assert more[0] not in {useful, dull}
    assert steering.kept() == [useful]


def test_a_wrong_token_is_said_at_once(url: str) -> None:
    with pytest.raises(CurriculumUnreachable, match=r"401 .*This token is not known"):
        RemoteCurriculum(url, "assay_wrong").propose(1)


def test_more_questions_than_there_are_is_said_in_the_servers_words(url: str, token: str) -> None:
    with pytest.raises(CurriculumUnreachable, match="from 1 to 6"):
        RemoteCurriculum(url, token).propose(7)


@pytest.fixture
def stumbling_server() -> Iterator[HTTPServer]:
    """Is overloaded twice, then answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.server.asked.append(body)  # type: ignore[attr-defined]
            self.send_response(503 if len(self.server.asked) < 3 else 200)  # type: ignore[attr-defined]
            self.end_headers()
            self.wfile.write(b'{"uids": ["u1"]}')

        def log_message(self, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.asked = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_overloaded_server_is_asked_again_under_the_same_key(stumbling_server: Any) -> None:
    steering = RemoteCurriculum(f"http://127.0.0.1:{stumbling_server.server_port}/", "token", name="run")

    assert steering.propose(1) == ["u1"]
    assert len(stumbling_server.asked) == 3
    assert len(set(stumbling_server.asked)) == 1
    assert b'"idempotency_key": "run 0"' in stumbling_server.asked[0]


def test_a_server_that_stays_away_is_an_error_after_some_attempts(stumbling_server: Any) -> None:
    steering = RemoteCurriculum(f"http://127.0.0.1:{stumbling_server.server_port}/", "token", n_attempts=2)

    with pytest.raises(CurriculumUnreachable, match="503"):
        steering.propose(1)
    with pytest.raises(CurriculumUnreachable, match="refused"):
        RemoteCurriculum("http://127.0.0.1:9/", "token", n_attempts=1).propose(1)


def exported_rewards(tmp_path: Path) -> ModuleType:
    """Load the reward file as an export ships it, on its own."""
    path = tmp_path / "rewards.py"
    path.write_text(Path(rewards.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("rewards_of_a_trainer", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
def test_trls_trainer_is_steered_from_here(
    url: str, token: str, insight: Curriculum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")
    trl = pytest.importorskip("trl", reason="TRL is not installed: pip install 'assay-rlvr[demo]'")
    datasets, torch, transformers = map(pytest.importorskip, ("datasets", "torch", "transformers"))
    from selector.curriculum.adapters.trl import steer

    monkeypatch.setenv("ASSAY_REWARD_URL", url)
    monkeypatch.setenv("ASSAY_REWARD_TOKEN", token)
    rows = [
        {"prompt": [{"role": "user", "content": row["question"]}], "answer": row["answer"], "uid": row["uid"]}
        for row in insight.snapshot.rows
    ]
    trainer = trl.GRPOTrainer(
        model=transformers.AutoModelForCausalLM.from_pretrained(MODEL_DIR, dtype=torch.float32),
        processing_class=transformers.AutoTokenizer.from_pretrained(MODEL_DIR),
        reward_funcs=exported_rewards(tmp_path).accuracy_reward,
        train_dataset=datasets.Dataset.from_list(rows),
        args=trl.GRPOConfig(
            output_dir=str(tmp_path / "out"),
            use_cpu=True,
            bf16=False,
            per_device_train_batch_size=N_QUESTIONS * N_ROLLOUTS,
            num_generations=N_ROLLOUTS,
            max_completion_length=32,
            gradient_checkpointing=False,
            max_steps=N_STEPS,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        ),
    )
    steer(trainer, RemoteCurriculum(url, token))

    trainer.train()
    wait_for_events(N_STEPS * N_QUESTIONS)

    reported = Counter[str]()
    for event in RewardEvent.objects.filter(curriculum=insight):
        reported[event.question_uid] += len(event.rewards)
    insight.refresh_from_db()
    believed = {uid: row[2] for uid, row in insight.state["beliefs"]["questions"].items()}
    asked = [uid for proposal in insight.proposals.order_by("pk")[:N_STEPS] for uid in proposal.uids]
    assert reported == Counter(asked * N_ROLLOUTS)
    assert {uid: n for uid, n in believed.items() if n} == reported


def wait_for_events(n: int) -> None:
    """Rewards travel in the background."""
    deadline = time.monotonic() + 60
    while RewardEvent.objects.count() < n:
        assert time.monotonic() < deadline, f"only {RewardEvent.objects.count()} of {n} events arrived"
        time.sleep(0.1)
