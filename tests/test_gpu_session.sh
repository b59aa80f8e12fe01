#!/bin/sh
# Tests tools/gpu_session.py: packs this build, and runs every part of the packed session briefly. A fake vknerf shows
# what happens without time, and after an interruption. About 10 s: nine parts start processes.
set -u
source=${VKNERF_SOURCE_DIR:?}
build=${VKNERF_BUILD_DIR:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR="$work"
[ "${VKNERF_TEST_NATIVE:-0}" = 1 ] || lavapipe=$source/tools/lavapipe.sh
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

contains() { # FILE PATTERN
    grep -qE -- "$2" "$1" || fail "$1: '$2' is not in it: $(head -c 3000 "$1")"
}

is_json() { # FILE: one object, without NaN or Infinity
    python3 -c '
import json, sys
def refuse(constant):
    raise ValueError(constant)
with open(sys.argv[1]) as file:
    assert isinstance(json.load(file, parse_constant=refuse), dict)' "$1" 2>"$work/err" ||
        fail "$1: not one JSON object: $(cat "$work/err")"
}

session() { # ARGUMENT ...: sets $code
    "$work/tree/tools/gpu_session.py" run --out "$work/out" --python no-such-python "$@" >"$work/said" 2>&1
    code=$?
    is_json "$work/out/results.json"
}

small='--set batch.samples=1024 --set batch.max_rays=256 --set march.resolution=16 --set grid.log2_entries=14
    --set mlp.density_width=16 --set mlp.color_width=16'

"$source/tools/gpu_session.py" pack "$work/packed" --build "$build" >"$work/said" 2>&1 ||
    fail "pack: $(cat "$work/said")"
[ "$(find "$work/packed" -type f | wc -l)" = 2 ] || fail "pack: not two files: $(ls "$work/packed")"

# ---- every part ----------------------------------------------------------------------------------

mkdir "$work/tree"
tar xJf "$work/packed/tree.tar.xz" -C "$work/tree"

# vknerf certify has all parts that the part certify asks for; it ends because there is no device "none".
passes=$(python3 -c 'import json, sys; print(",".join(json.load(sys.stdin)["passes"]))' <"$work/tree/build/about.json")
contains "$work/tree/build/about.json" '"basics"'
"${VKNERF_BIN:?}" certify --out "$work/none" --only "$passes" --device none >"$work/said" 2>&1
[ $? = 3 ] || fail "certify --only $passes: $(cat "$work/said")"

# A launcher of two words, which stops the tuner after 4 s, because its results so far are enough, and lets a test of
# vknerf certify fail.
cat >"$work/launch" <<'LAUNCHER'
#!/bin/sh
export VKNERF_SELF_TEST_BREAK=fail_test_panorama
case $* in *' --tune '*) exec timeout -s INT 4 "$@" ;; esac
exec "$@"
LAUNCHER
chmod +x "$work/launch"

# The budget is generous: a part that runs out of time on a busy machine would fail.
session --budget 900 --seconds 0.1 --precisions fp32 --suites grid --certify-options '--only lens,mesh' \
    --launcher "$work/launch${lavapipe:+ $lavapipe}" --downscale 16 --repeats 2 --variants '8 levels' \
    --tune-options '--quick --precision fp32 --width 16 --batch 1024' \
    --bench-options '--quick --precision fp32 --batch 512' --train-options "$small"
[ $code = 0 ] || fail "run: exit status $code: $(cat "$work/said")"
results=$work/out/results.json
for part in certify bench train peer smoke speed variants tune programs; do
    contains "$results" "\"$part\": ?[{[]"
done
contains "$work/said" '^certify: failed .*; 7 tests, 1 failed, exit status 1'
contains "$work/said" '^bench: done '
contains "$work/said" '^train: done '
contains "$work/said" '^smoke: done '
contains "$work/said" '^speed: done '
contains "$work/said" '^tune: (done|partial) '
contains "$work/said" '^variants: done .* 1 of 1 runs, 0 not supported'
contains "$work/said" '^programs: done '
contains "$work/said" '^peer: skipped .*; no PyTorch: no-such-python cannot import torch'
contains "$results" '"status": "(finished|done)"'
contains "$results" '"psnr":'
contains "$results" '"idle_share":'
contains "$results" '"case": ?.*entries, 512 samples'
contains "$work/out/results.md" 'peer.*skipped'
contains "$work/out/session.log" '^== FAILED: lens: test_panorama: injected; last pass: '
contains "$work/out/results.md" '^7 tests, 1 failed; switched off: -'
contains "$work/out/results.md" '^- FAILED: lens: test_panorama: injected; last pass: '
contains "$work/out/certificate.html" 'test_panorama'
contains "$work/out/bench.html" '<svg'
[ "$(find "$work/out" -type f | wc -l)" -le 8 ] || fail "more than eight files: $(ls "$work/out")"

# The packed script makes the same tables from the results.
mv "$work/out/results.md" "$work/first_tables"
"$work/packed/gpu_session.py" table "$work/out" >"$work/said" 2>&1 || fail "table: $(cat "$work/said")"
cmp "$work/first_tables" "$work/out/results.md" || fail "the tables differ"
left=$(find "$work" -mindepth 1 -maxdepth 1 -name 'tmp*')
[ -z "$left" ] || fail "left behind: $left"

# Checks the numbers in results.json.
python3 - "$results" "$work/out/certificate.json" <<'PYTHON' || fail "results.json"
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    session = json.load(file)
with open(sys.argv[2], encoding="utf-8") as file:
    certificate = json.load(file)
assert [part["part"] for part in certificate["parts"]] == ["lens", "mesh"], certificate["parts"]
certify = session["certify"]
assert {key: certificate[key] for key in ("tests", "failed", "switched_off")} == {
    "tests": certify["tests"], "failed": certify["failed"], "switched_off": certify["switched_off"]}, certify
assert len(certify["failures"]) == certify["failed"] == 1, certify
assert [run["exit"] for run in session["train"]] == [0] and session["peer"] == []
assert session["train"][0]["metrics"][-1]["step"] == session["train"][0]["summary"]["step"]
assert session["bench"]["grid"]["complete"] and not session["interrupted"]
assert sorted(session["parts"]) == sorted("smoke speed train tune variants peer bench certify programs".split())
assert [entry["name"] for entry in session["speed"]] == ["speed 1", "speed 2"]
assert all(entry["run"]["exit"] == 0 and entry["run"]["config"]["seed"] == 1 for entry in session["speed"])
variant = next(entry["run"] for entry in session["variants"] if entry["name"] == "8 levels of 4")
assert variant["exit"] == 0 and variant["config"]["grid"]["levels"] == 8, variant["config"]
assert {program["pass"] for program in session["programs"]["programs"]} > {"field_backward", "march_rays"}
assert all(part["seconds"] <= part["limit_seconds"] + 11 for part in session["parts"].values())
assert any("2^18 samples" in ratio["what"] and ratio["value"] > 0 for ratio in session["ratios"])
PYTHON
contains "$work/out/results.md" '^## Speed'
contains "$work/out/results.md" '^\| 8 levels of 4 \| fp32'
contains "$work/out/results.md" 'field_backward_fp32'
contains "$work/out/results.md" '^\| vknerf \| fp32 \| fp32 \| 0.1 \| [0-9]+\.[0-9]+ \|'

# ---- no time -------------------------------------------------------------------------------------

# A fake vknerf whose trainings, after the first, wait for an interruption and then write a summary.
cat >"$work/tree/build/vknerf" <<'PROGRAM'
#!/bin/sh
case $* in
    info*) echo '{"devices": [{"name": "none", "driver": "none", "type": "cpu", "chosen": true}]}' ;;
    train*smoke*) ;;
    train*)
        for out; do [ "${before:-}" != --out ] || break; before=$out; done
        trap 'echo "{\"step\": 7}" >"$out/summary.json"; exit 130' INT
        mkdir -p "$out"
        sleep 60 ;;
esac
PROGRAM
session --budget 1 --only bench,peer
[ $code = 0 ] || fail "no time: exit status $code: $(cat "$work/said")"
contains "$work/said" '^bench: out of time '
contains "$work/said" '^peer: out of time '

# ---- peer ----------------------------------------------------------------------------------------

# A fake Python whose torch cannot compile: the peer is run again without compilation.
cat >"$work/python" <<'PYTHON'
#!/bin/sh
[ "$1" != -c ] || { echo cpu; exit; }
while [ $# -gt 1 ] && [ "$1" != --no-compile ]; do
    [ "$1" != --out ] || out=$2
    shift
done
[ "$1" = --no-compile ] || exit 1
mkdir -p "$out"
echo '{"precision": "amp", "step": 9, "compiled": false}' >"$out/summary.json"
PYTHON
chmod +x "$work/python"
session --budget 60 --only peer --python "$work/python" --peer-options '--rays 8'
[ $code = 0 ] || fail "peer: exit status $code: $(cat "$work/said")"
contains "$work/said" '^peer 0 --no-compile: exit status 0'
contains "$work/said" '^peer: done '
contains "$work/out/results.md" '^\| peer \| amp \| not compiled \|.* 9 \|'
contains "$work/out/session.log" 'train.py --scene .*/demo .*--no-compile --rays 8'

# ---- interrupted ---------------------------------------------------------------------------------

rm -r "$work/out"
: >"$work/said"
"$work/tree/tools/gpu_session.py" run --out "$work/out" --budget 900 --only smoke,train >"$work/said" 2>&1 &
child=$!
until find "$work" -path '*train 0' -type d | grep -q . || ! kill -0 $child 2>/dev/null; do sleep 0.1; done
kill -TERM $child
wait $child
code=$?
[ $code = 130 ] || fail "interrupted: exit status $code: $(cat "$work/said")"
is_json "$work/out/results.json"
contains "$work/out/results.json" '"interrupted": true'
contains "$work/out/results.json" '"step": 7'
contains "$work/said" '^smoke: done '
contains "$work/said" '^train: interrupted '
[ -s "$work/out/results.md" ] || fail "interrupted: no results.md"

[ $failures = 0 ] && echo "all passed"
[ $failures = 0 ]
