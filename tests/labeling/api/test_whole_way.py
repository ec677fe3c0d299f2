"""From an empty pool to a downloaded dataset, over the API alone."""

import json

import pytest

from labeling.models import Pool, Role
from labeling.runs.worker import work
from tests import factories
from tests.labeling.api.conftest import Api

pytestmark = pytest.mark.django_db(transaction=True)


def test_from_an_empty_pool_to_a_dataset(manager, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    factories.make_pool(manager=manager)  # whoever manages one may make another
    api = Api(manager)

    pool = api.post("pools/", {"name": "Sums"}, status=201)["slug"]
    rows = "".join(json.dumps({"id": f"q{i}", "question": f"{i} + 1?", "cluster": i % 2}) + "\n" for i in range(4))
    preview = api.upload(f"pools/{pool}/imports/?filename=pool.jsonl", rows.encode())
    assert preview["counts"]["new"] == 4
    assert api.get(f"pools/{pool}/questions/")["count"] == 0
    api.post(f"imports/{preview['id']}/commit/")
    assert api.get(f"pools/{pool}/questions/")["count"] == 4

    run = api.post(f"pools/{pool}/runs/", {"budget": 2, "strategy": "random", "embedder": ""}, status=201)["id"]
    assert api.get(f"runs/{run}/")["progress"]["is_live"]
    work(once=True)
    assert api.get(f"runs/{run}/")["status"] == "finished"
    assert [pick["rank"] for pick in api.get(f"runs/{run}/picks/")["results"]] == [1, 2]

    budget = api.post(f"pools/{pool}/budgets/", {"name": "autumn", "units": 4}, status=201)["id"]
    round = api.post(f"runs/{run}/rounds/", {"budget": budget, "blindness": "blind"}, status=201)["id"]
    annotator = factories.make_user(pool=Pool.objects.get(slug=pool), roles=(Role.ANNOTATOR,))
    worker = Api(annotator, "label")
    for _ in range(2):
        slot = worker.post(f"rounds/{round}/claim/")["slot"]
        answer = str(int(slot["question"]["text"].split(" ")[0]) + 1)
        assert worker.post(f"slots/{slot['id']}/read-as/", {"answer": answer})["readable"]
        worker.post(f"slots/{slot['id']}/submit/", {"answer": answer}, status=201)
    empty = worker.post(f"rounds/{round}/claim/")
    assert empty["slot"] is None
    assert empty["code"] == "all_done"

    assert api.get(f"rounds/{round}/progress/")["is_finished"]
    assert api.get(f"budgets/{budget}/")["spent"] == 2
    export = api.post(f"pools/{pool}/exports/", {"format": "jsonl"}, status=201)
    assert export["n_rows"] == 2
    name = next(file["name"] for file in export["files"] if file["name"].endswith(".jsonl"))
    content = b"".join(api.client.get(f"/api/v1/exports/{export['id']}/files/{name}").streaming_content)
    assert {json.loads(line)["answer"] for line in content.splitlines()} <= {"1", "2", "3", "4"}
