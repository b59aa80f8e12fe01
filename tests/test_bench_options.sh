#!/bin/sh
# Tests what each option of vknerf bench measures, on tiny problems, and a tuner stopped after its first candidate.
# shellcheck source=tests/cli.sh
. "${VKNERF_SOURCE_DIR:?}/tests/cli.sh"

bench() { # ARGUMENT ...: writes ./out
    "$bin" bench --quiet --json "$@" >out 2>err || fail "vknerf bench $*: $(cat err)"
}

# NAME occurs COUNT times, always with the value NUMBER.
all() { # NAME NUMBER COUNT
    found=$(grep -c "\"$1\":[[:space:]]*$2,\{0,1\}\$" out)
    named=$(grep -c "\"$1\":" out)
    [ "$named $found" = "$3 $3" ] ||
        fail "$1: $found of $named are $2, not $3: $(grep "\"$1\":" out)"
}

count() { # NAME TEXT: number of results whose NAME begins with TEXT
    grep -c "\"$1\":[[:space:]]*\"$2" out
}

# ---- sizes ---------------------------------------------------------------------------------------

bench --suite grid --precision fp32 --batch 1024 --entries 15 --repetitions 2
grids=$(count suite grid)
[ "$grids" -ge 4 ] || fail "only $grids cases of a grid"
[ "$(count commit '')" = 1 ] || fail "no commit"
all entries 32768 "$grids"
all samples 1024 $((2 * grids)) # in the sizes, and as the amount of the rate
all repetitions 2 $((grids + 1)) # including that of the copy
[ "$(count suite '')" = $((grids + 1)) ] || fail "--suite: $(grep '"suite"' out)"
[ "$(count path fp16)" = 0 ] || fail "--precision fp32: $(grep '"path"' out)"

bench --suite mlp --precision fp32 --batch 512 --width 16 --depth 2 --quick --repetitions 1
[ "$(count suite mlp)" = 2 ] || fail "--depth: $(grep '"case"' out)"
all width 16 2
all depth 2 2
all batch 512 2
all repetitions 1 4
# 512 x 2 (32 x 16 + 16^2 + 16 x 16 + 32 x 16 + 16 x 3), and with gradients as docs/bench.md counts them.
[ "$(grep -c '"flops":[[:space:]]*1622016,' out)" = 1 ] || fail "flops: $(grep '"flops"' out)"
[ "$(grep -c '"flops":[[:space:]]*4554752,' out)" = 1 ] || fail "flops: $(grep '"flops"' out)"
[ "$(grep -c '"bytes":[[:space:]]*79872,' out)" = 1 ] || fail "bytes: $(grep '"bytes"' out)"
[ "$(grep -c '"bytes":[[:space:]]*155648,' out)" = 1 ] || fail "bytes: $(grep '"bytes"' out)"

# --full: grids larger than the 2^14 entries that a CPU device has by default (test_bench). --flexible: lavapipe's
# only inflexible shape is 8x8x8.
bench --suite grid --precision fp32 --batch 512 --quick --full --repetitions 1
grids=$(count suite grid)
all entries 524288 "$grids"
if grep -q '"type":[[:space:]]*"cpu"' out; then
    bench --suite grid --precision coopmat --flexible --batch 512 --quick --repetitions 1
    for shape in '8x8x8 f32' '8x8x16 f16' '16x16x16 f32' '16x8x16 f16'; do
        grep -q "\"coopmat $shape\"" out || fail "--flexible: no $shape: $(cat out)"
    done
fi

# ---- shaders -------------------------------------------------------------------------------------

# Shaders of the precision that is predicted or asked for; all of them compile.
bench --suite programs --quick
programs=$(grep -c '"program":' out)
[ "$programs" -ge 20 ] || fail "--suite programs: only $programs: $(cat out)"
all compile_ms '[0-9.e-]*' "$programs"
all expected true "$programs"
# A pass of the step is listed in the default configuration, and once more with options, however often it runs.
[ "$(grep -c '"program":[[:space:]]*"begin_step"' out)" = 2 ] || fail "begin_step: $(cat out)"
for program in field_backward update_weights mark_unseen_cells find_visible composite_view; do
    grep -q "\"program\":[[:space:]]*\"$program" out || fail "no $program: $(cat out)"
done
[ "$(count use pictures)" -ge 5 ] || fail "programs of pictures: $(grep '"use"' out)"
if grep -q '"type":[[:space:]]*"cpu"' out; then
    [ "$(count path fp32)" = "$programs" ] || fail "not fp32: $(grep '"path"' out)"
    "$bin" bench --quiet --suite programs --precision fp16 >table 2>err || fail "fp16: $(cat err)"
    grep -q '^fp16 .* field_backward_fp16 ' table || fail "--precision fp16: $(cat table)"
    grep -q '^fp16 .* round_parameters ' table || fail "no copies in fp16: $(cat table)"
fi

# ---- sampling methods ----------------------------------------------------------------------------

# The bundled scene is the default. Options of this suite are refused elsewhere.
small="--downscale 8 --batch 1024 --seconds 0.1 $tiny --set march.resolution=16 --set march.ray_samples=32"
VKNERF_ASSETS=$VKNERF_SOURCE_DIR/assets
export VKNERF_ASSETS
# shellcheck disable=SC2086  # $small is several words
bench --suite sampling --quick --seed 5 $small --out compared
[ "$(count kind '')" = 4 ] || fail "--suite sampling: $(cat out)"
all seed 5 4
all downscale 8 1
grep -q '"seconds":[[:space:]]*0.1,$' out || fail "--seconds: $(grep '"seconds"' out)"
[ "$(grep -c '"evaluated_per_ray":[[:space:]]*3[12][.0-9]*,' out)" = 1 ] ||
    fail "march.ray_samples: $(grep '"evaluated_per_ray"' out)"
is_json compared/bench.json
contains compared/bench.svg 'PSNR of test views by march.sampling'
# shellcheck disable=SC2086
"$bin" bench --quiet --suite sampling --quick --seeds 2 --seed 8 $small --set eval_views=2 >out 2>err ||
    fail "--seeds: $(cat err)"
for line in '^.*assets/demo, 2 test views, ' '^   8 occupancy  *[1-9]' '^   9 uniform  *[1-9]' '^   9 hierarchical .* - ' \
    '^   9 uniform .* [1-9][0-9][.][0-9][0-9]$' \
    '^   9 proposal .* - ' '^proposal over occupancy: [-+][0-9.]* dB (.*, 2 seeds)$' \
    '^occupancy over uniform: [-+][0-9.]* dB (.*, 2 seeds)$'; do
    contains out "$line"
done
refuses 2 'only of use with --suite sampling' bench --suite grid --seed 5

# ---- the tuner -----------------------------------------------------------------------------------

# A stopped tuner prints its results; what it remembers is in a file for later runs.
export XDG_CACHE_HOME="$work/cache"
"$bin" bench --tune --quick --precision fp32 --width 16 --batch 1024 --json >out 2>err &
child=$!
wait_until 300 grep '^fp32: .* -> .* ms' err
end_child TERM 130 "interrupted tuner"
[ "$(count suite '')" = 0 ] || fail "--tune runs a suite: $(cat out)"
grep -q '"path":[[:space:]]*"fp32"' out || fail "--tune: no path: $(cat out)"
[ "$(grep -c '"tunable":' out)" -ge 1 ] || fail "--tune: no candidate: $(cat out)"
remembered=$(grep -c '"remembered":[[:space:]]*true' out)
files=$(find cache -name 'tuning-*.json' | wc -l)
[ "$remembered" = "$files" ] || fail "--tune: $files files, remembered $remembered: $(cat out)"

finish
