#!/bin/sh
# Tests the PyTorch trainer in tools/peers: its plain Python parts everywhere, the rest where torch is installed.
set -u
tests=${VKNERF_SOURCE_DIR:?}/tests
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
command -v python3 >/dev/null || { echo "skipped: test_peer: no python3"; exit 77; }
python3 "$tests/peer_plain.py" || exit 1

for python in python3 /usr/bin/python3; do
    if "$python" -c 'import torch, numpy' 2>/dev/null; then
        exec "$python" "$tests/peer_torch.py"
    fi
done
echo "skipped: peer_torch.py: no python3-torch; the plain part passed"
