"""vLLM in this process. Its pins differ from ours, so its tests run in the environment that it is installed in."""

import subprocess
from xml.etree import ElementTree

import pytest

from selector.errors import EngineUnavailable
from selector.generation import open_engine
from tests.conftest import ROOT, skip_or_fail
from tests.engines import VLLM_PYTHON, vllm_environment

HERE = "tests/selector/generation"


@pytest.mark.vllm
@pytest.mark.xdist_group("vllm")
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_vllm_in_this_process_does_what_every_engine_does_and_more(tmp_path):
    if not (VLLM_PYTHON.parents[1] / ".installed").exists():
        skip_or_fail("vLLM is not installed in .venv-vllm: run .ci/vllm.sh")
    report = tmp_path / "report.xml"
    command = [str(VLLM_PYTHON), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
    command += ["-c", "/dev/null", "--rootdir", str(ROOT), "--junit-xml", str(report), "-k", "[vllm] or vllm_cases"]
    command += [f"{HERE}/test_engine_contract.py", f"{HERE}/vllm_cases.py"]

    done = subprocess.run(
        command, cwd=ROOT, env=vllm_environment(), capture_output=True, text=True, start_new_session=True
    )

    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    (suite,) = ElementTree.parse(report).getroot()
    assert int(suite.attrib["tests"]) >= 20
    assert suite.attrib["skipped"] == "0"


def test_where_vllm_is_missing_the_message_says_how_to_get_it():
    try:
        import vllm  # noqa: F401
    except ImportError:
        pass
    else:
        pytest.skip("vLLM is installed here")

    with pytest.raises(EngineUnavailable) as caught:
        open_engine("vllm", model="assay-tiny")

    assert "assay-rlvr[vllm]" in str(caught.value)
