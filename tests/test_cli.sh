#!/bin/sh
# The command line: exit codes, one-line errors for every kind of bad input, and a short run from train
# to eval, render, Ctrl-C and resume on the bundled scene.
set -u
bin=${VKNERF_BIN:?}
demo=${VKNERF_SOURCE_DIR:?}/assets/demo
work=$(mktemp -d)
child=
trap '[ -z "$child" ] || kill "$child" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

run() { # ARGUMENT ...: leaves $code, ./out and ./err
    "$bin" "$@" >out 2>err
    code=$?
}

# Standard error is one line, "vknerf: " and the pattern.
refuses() { # CODE PATTERN ARGUMENT ...
    want=$1 pattern=$2
    shift 2
    run "$@"
    [ "$code" = "$want" ] || fail "vknerf $*: exit status $code instead of $want: $(cat err)"
    [ "$(wc -l <err)" = 1 ] || fail "vknerf $*: not one line: $(cat err)"
    grep -q "^vknerf: .*$pattern" err || fail "vknerf $*: '$pattern' is not in: $(cat err)"
    [ ! -s out ] || fail "vknerf $*: standard output: $(cat out)"
}

succeeds() { # ARGUMENT ...
    run "$@"
    [ "$code" = 0 ] || fail "vknerf $*: exit status $code: $(cat err)"
}

has() { # FILE ...
    for file; do
        [ -s "$file" ] || fail "$file: absent or empty"
    done
}

contains() { # FILE PATTERN
    grep -q -- "$2" "$1" || fail "$1: '$2' is not in it: $(head -c 500 "$1")"
}

# vknerf reads JSON strictly: what it takes for settings with unknown keys is one JSON object.
is_json() { # FILE
    run train not/there --config "$1"
    grep -q 'unknown key' err || fail "$1: not one JSON object: $(cat err)"
}

# ---- usage ---------------------------------------------------------------------------------------

succeeds --version
contains out '^vknerf [0-9.]* (\([0-9a-f]\{7,\}\(-dirty\)\?\|unknown\))$'
mv out version
succeeds -V
cmp -s out version || fail "-V is not --version: $(cat out)"
succeeds help
contains out '^usage: vknerf COMMAND'
mv out usage
succeeds --help
cmp -s out usage || fail "help is not --help"
succeeds train --help
mv out usage
succeeds help train
cmp -s out usage || fail "help train is not train --help"
refuses 2 'trian: unknown command; did you mean train?' help trian
refuses 2 'eval: one argument too many' help train eval
for command in info train eval render export demo; do
    succeeds "$command" --help
    contains out "^usage: vknerf $command"
    contains out '--device INDEX|NAME'
done
contains out '--force'
contains out 'default runs/demo'
succeeds report --help
contains out '^usage: vknerf report RUN \[RUN'
succeeds train --help
contains out 'optimizer.learning_rate'
contains out '--model ngp  '
contains out '20k is 20000.*bytes in K, M or G'
succeeds --help
contains out 'demo'

refuses 2 'trian: unknown command; did you mean train?' trian
refuses 2 'SCENE is missing' train
refuses 2 'RUN is missing' eval
refuses 2 'RUN is missing' report
refuses 2 '--stepz: unknown option; did you mean --steps?' train "$demo" --stepz 5
refuses 2 '--zzzzzzzz: unknown option; see vknerf train --help' train "$demo" --zzzzzzzz
refuses 2 '--steps: its value is missing' train "$demo" --steps
refuses 2 '--profile: takes no value' train "$demo" --profile=yes
refuses 2 '--steps: its value is missing' train "$demo" --steps=
refuses 2 '--set: steps: its value is missing' train "$demo" --set steps=
refuses 2 '--loss-scale: static: is none of its values' train "$demo" --loss-scale static:
refuses 2 'eval: RUN is empty' eval ''
refuses 2 'b: one argument too many' train a b
refuses 2 'use: one argument too many; did you mean --find-batch=use?' train a --find-batch use
refuses 2 '--steps: steps: x is not a number' train "$demo" --steps x
refuses 2 '--steps: steps: -5 is out of range' train "$demo" --steps=-5
refuses 2 '--background: background: blue is none of' train "$demo" --background blue
refuses 2 '--model: vanilla is none of its values: ngp' train "$demo" --model vanilla
refuses 2 '--model: x is none of its values: ngp' train "$demo" --model x
refuses 2 '--precision: fp8 is none of its values: auto, fp32, fp16, coopmat' \
    train "$demo" --precision fp8
refuses 2 '--loss-scale: fixed is none of its values: dynamic, static:VALUE, schedule:FILE' \
    train "$demo" --loss-scale fixed
refuses 2 'not/there: ' train "$demo" --loss-scale schedule:not/there
printf '0 256\n# later\n20 x\n' >scales.txt
refuses 2 'scales.txt: line 3: not a step and a scale' train "$demo" --loss-scale schedule:scales.txt
printf '[[20, 256],\n[10, 512]]' >scales.json
refuses 2 'scales.json: \[1\]: step 10 does not come after step 20' \
    train "$demo" --loss-scale schedule:scales.json
refuses 2 'config: loss_scale.schedule: empty, but loss_scale.kind is schedule' \
    train "$demo" --quiet --out never --set loss_scale.kind=schedule
refuses 2 '--loss-scale: loss_scale.initial: x is not a number' train "$demo" --loss-scale static:x
refuses 2 '--loss-scale: loss_scale.initial: 0 is out of range (1e-06 to 8.5e+37, or default)' \
    train "$demo" --loss-scale static:0
refuses 2 '--steps: steps: 0 is out of range (1 to 4294967295, or default)' train "$demo" --steps 0
refuses 2 '--seconds: seconds: 20k is not a number of seconds, such as 90, 5m or 2h' \
    train "$demo" --seconds 20k
for bad in linear step:1 file exponentia cosines cosine1; do
    refuses 2 "--lr-schedule: $bad is none of its values: step, exponential.:RATE., cosine.:RATE., file:FILE" \
        train "$demo" --lr-schedule $bad
done
refuses 2 '--lr-schedule: optimizer.final_rate: x is not a number' train "$demo" --lr-schedule cosine:x
refuses 2 'scales.txt: line 1: rate 256 is out of range' train "$demo" --lr-schedule file:scales.txt
refuses 2 '--eval-every: eval_every: 5x is not a number of steps, nor a list of steps' \
    train "$demo" --eval-every 5x
refuses 2 '--set: steps is not key=value' train "$demo" --set steps
refuses 2 '--set: learning_rate: unknown key; did you mean optimizer.learning_rate?' \
    train "$demo" --set learning_rate=1
refuses 2 'mlp.color_width: 24 is not a multiple of 16' train "$demo" --set mlp.color_width=24
refuses 2 '--orbit: 5G is not a whole number from 1 to 4294967295' render x --orbit 5G --out y
refuses 2 '--memory-budget: 5x is not a size such as 512M or 4G' train "$demo" --memory-budget 5x
refuses 2 '--memory-budget: G is not a size' train "$demo" --memory-budget G
refuses 2 '--stride: 0 is not a whole number from 1' eval x --stride 0
refuses 2 '--background: random is none of its values: white, black' eval x --background random
refuses 2 '--out DIR is missing' render x --orbit 3
refuses 2 '--maps: foo is none of' render x --maps rgb,foo --out y
refuses 2 'from a split, an orbit, an interpolation or a path' render x --orbit 3 --split test --out y
refuses 2 'from a split, an orbit, an interpolation or a path' \
    render x --orbit 3 --interpolate 2 --out y
refuses 2 'd.json: only of use with a path' render x --dataparser d.json --out y
refuses 2 '--mesh FILE or --points FILE is missing' export x
refuses 2 '--crop: 0,0,0,1,1 is not six numbers' export x --mesh y.ply --crop 0,0,0,1,1
refuses 2 '--crop: 0,0,0,1,0,1: y0 is not below y1' export x --mesh y.ply --crop 0,0,0,1,0,1
refuses 2 '--threshold: inf is not a number' export x --mesh y.ply --threshold inf
refuses 2 '--min-component: -1 is not above 0' export x --mesh y.ply --min-component=-1
refuses 2 'x.avi: a video.s name ends in .mp4 or .gif' render x --video x.avi --out y
refuses 2 'x.mp4: no map is a picture that a video could show' \
    render x --maps depth_values --video x.mp4 --out y
refuses 2 'only of use with a video' render x --fps 3 --out y
refuses 2 '--supersample: 3 is not 1, 2 or 4' render x --supersample 3 --out y
refuses 2 '--fps: 0 is not a number from 0.01 to 1000' render x --fps 0 --video x.mp4 --out y
refuses 2 '--fps: 3x is not a number' render x --fps 3x --video x.mp4 --out y

# ---- scenes --------------------------------------------------------------------------------------

# A scene of two images.
frame() { # IMAGE [FIRST-NUMBER]
    printf '{"file_path": "%s", "transform_matrix": [[%s,0,0,0],[0,1,0,0],[0,0,1,4],[0,0,0,1]]}' \
        "$1" "${2:-1}"
}
scene() { # NAME FRAMES [MORE]
    mkdir -p "$1"
    cp "$demo/train/r_0.png" "$1/a.png"
    cp "$demo/train/r_1.png" "$1/b.png"
    printf '{"camera_angle_x": 0.69, %s "frames": [%s]}\n' "${3:-}" "$2" >"$1/transforms_train.json"
}

refuses_scene() { # PATTERN SCENE: nothing is left of a run that could not begin
    refuses 2 "$1" train "$2" --steps 16 --quiet --out never
    [ ! -e never ] || fail "$2: a failed start left its folder"
    rm -rf never
}

scene missing_image "$(frame a),$(frame c)"
refuses_scene 'missing_image.*c' missing_image
scene truncated "$(frame a),$(frame b)"
cp truncated/transforms_train.json truncated/transforms_test.json # else a warning comes first
head -c 900 "$demo/train/r_1.png" >truncated/b.png
refuses_scene 'truncated/b.png: ' truncated
scene broken_json "$(frame a),"
refuses_scene 'broken_json/transforms_train.json: line [0-9]*, column [0-9]*' broken_json
scene nan_matrix "$(frame a NaN)"
refuses_scene 'nan_matrix/transforms_train.json: ' nan_matrix
scene infinite_matrix "$(frame a 1e999)"
refuses_scene 'infinite_matrix/transforms_train.json: .*transform_matrix' infinite_matrix
scene wrong_size "$(frame a)" '"w": 64, "h": 100,'
refuses_scene 'wrong_size/.*64' wrong_size
scene no_frames ''
refuses_scene 'no_frames/transforms_train.json: .*no frames' no_frames
mkdir empty_folder
refuses_scene 'empty_folder: ' empty_folder
refuses_scene 'not/there: ' not/there

# ---- output, configuration, device ---------------------------------------------------------------

# Also root can write neither below a file nor into /proc.
touch file
refuses 2 'file: cannot make this folder' train "$demo" --out file/run --quiet
refuses 2 '/proc/vknerf: cannot make this folder' train "$demo" --out /proc/vknerf --quiet
refuses 2 'scene.downscale: 65 is out of range' train "$demo" --downscale 65
printf '{"steps": 5, "grid": {"level": 3}}' >bad.json
refuses 2 'bad.json: grid.level: unknown key; did you mean grid.levels?' \
    train "$demo" --config bad.json
printf '{"steps": ' >bad.json
refuses 2 'bad.json: line 1' train "$demo" --config bad.json
refuses 2 'absent.json: ' train "$demo" --config absent.json
refuses 3 'no device matches "no such device"' train "$demo" --device 'no such device'
run info --device 'no such device'
[ "$code" = 3 ] || fail "info without the device asked for: exit status $code"
contains err 'no device matches "no such device"'
contains out '^device 0: '
if [ "${VKNERF_TEST_NATIVE:-0}" != 1 ]; then
    # lavapipe's subgroups shrink with its vectors.
    export LP_NATIVE_VECTOR_WIDTH=128
    refuses 3 'cannot be used: its subgroups have fewer than 8 invocations' train "$demo"
    run info
    [ "$code" = 3 ] || fail "info without a usable device: exit status $code"
    contains out 'error  *its subgroups have fewer than 8 invocations'
    unset LP_NATIVE_VECTOR_WIDTH
fi
refuses 2 'absent: neither a run directory nor a checkpoint' eval absent
refuses 2 'empty_folder: no run directory' eval empty_folder
refuses 2 'empty_folder: no run directory' train --resume empty_folder
refuses 2 'absent: neither' train "$demo" --init absent

# ---- info ----------------------------------------------------------------------------------------

# A device that fails its self-test is in the list, with why.
export VKNERF_SELF_TEST_BREAK=subgroups
run info
[ "$code" = 3 ] || fail "info with a broken device: exit status $code"
contains out '^device 0: '
contains out '^  error  *device ".*" fails the self-test: inclusive add'
contains err '^vknerf: .*fails the self-test'
run info --json
[ "$code" = 3 ] || fail "info --json with a broken device: exit status $code"
cp out broken.json
contains broken.json '"error":.*fails the self-test'
is_json broken.json
refuses 3 'fails the self-test' train "$demo" --quiet --out never
unset VKNERF_SELF_TEST_BREAK
succeeds info
contains out '(chosen)'
succeeds info --json
cp out info.json
is_json info.json
contains info.json '"devices"'
contains info.json '"commit":'
for part in '"policy"' '"operation":.*"MLP products"' '"coopmat":.*"f16 matrices"' \
    '"candidates"' '"uses":' '"why":.*"the same in every precision"'; do
    contains info.json "$part"
done
succeeds info
contains out 'hash table and weights as read *f32 *f16 copy *f16 copy'
contains out ' chosen '
export VKNERF_DISABLE=cooperative_matrix,float_atomics,owned_sums
succeeds info
contains out 'coopmat *not offered *no cooperative matrices: VKNERF_DISABLE=cooperative_matrix'
contains out 'grid gradient sums *64-bit fixed point.*no atomic f32 addition: VKNERF_DISABLE'
unset VKNERF_DISABLE

succeeds info "$demo" --json --svg rig.svg
cp out info.json
is_json info.json
contains info.json '"problems":	\[\]'
contains rig.svg '100 train views\|train views'
succeeds info "$demo"
contains out 'no problems found'
refuses 2 'not/there' info not/there
refuses 2 'svg' info --svg rig.svg

# ---- train, eval, render -------------------------------------------------------------------------

# Every command starts anew: a model that compiles in a tenth of the time.
tiny='--set mlp.density_width=16 --set mlp.color_width=16 --set grid.levels=4'
small="--set batch.samples=4096 --set batch.max_rays=1024 --set march.resolution=32 $tiny"
printf '0 256\n50, 1024 # when resumed\n' >scales.txt
printf '[[0, 0.01], [40, 0.002], [56, 0.002]]' >rates.json
# shellcheck disable=SC2086  # $small is several words
succeeds train "$demo" --out run --downscale 4 --steps 40 --eval-every 32 --save-every 20 --quiet \
    --profile --loss-scale schedule:scales.txt --lr-schedule file:rates.json $small
rm scales.txt rates.json
contains out 'PSNR [0-9.]* dB, SSIM [0-9.]* (12 test views, white background, sRGB, step 40)'
contains err '^field_forward '
contains err '^idle between passes '
contains err '^floors from this device.s peaks: '
contains err '^training images  *[0-9.]* *[0-9.]*%  device$'
contains err '^all buffers  *[0-9.]* *100.0%$'
contains run/report.html '>What is in device memory<'
contains run/trace.json '"traceEvents"'
contains run/report.html '>GFLOP/s<'
has run/config.json run/metrics.jsonl run/checkpoint.safetensors run/summary.json run/report.html \
    run/views/test_000.png run/views/test_011.png run/views/test_011_target.png \
    run/views/test_011_error.png run/views/test_011_depth.png run/views/test_011_opacity.png run/views/step_000032_test_003.png \
    run/views/step_000040_test_009.png run/events.out.tfevents.*
contains run/report.html '>How the views formed<'
contains run/summary.json '"status":.*"finished"'
contains run/summary.json '"color_space":.*"sRGB"'
if [ "${VKNERF_TEST_NATIVE:-0}" != 1 ]; then
    contains run/summary.json '"precision":.*"fp32"'
    contains run/summary.json '"path":.*"fp32"'
    contains run/summary.json '"path_why":.*"CPU devices multiply f32 fastest"'
    contains run/summary.json '"gradient_sums":.*"f32, a level.s by one subgroup"'
    contains run/config.json '"path":.*"fp32"'
fi
contains run/summary.json "\"commit\":.*\"$(sed 's/.*(\(.*\))/\1/' version)\""
contains run/config.json '"commit":'
is_json run/summary.json
tail -n 1 run/metrics.jsonl >last.json
is_json last.json
contains last.json '"step": 40'
contains last.json '"loss_scale": 256, "skipped_steps": 0, "flushed": 0,'
contains last.json '"learning_rate": 0.002\(2\|1999\)[0-9]*,' # after 39 steps, 0.01 - 0.008 * 39 / 40
contains run/config.json '"schedule":.*"file"'
contains run/config.json '"downscale":.*4'
export VKNERF_DISABLE=timestamps
# shellcheck disable=SC2086  # $small is several words
succeeds train "$demo" --out untimed --downscale 8 --steps 1 --profile --quiet $small
unset VKNERF_DISABLE
contains err '^no pass was timed: the device gives no timestamps$'
has untimed/trace.json
rm -r untimed
refuses 2 'run: holds a run already; go on with --resume run' train "$demo" --out run
mkdir unseen && ln -s checkpoint.safetensors unseen/checkpoint.safetensors
refuses 2 'unseen/checkpoint.safetensors: cannot be looked at: ' train "$demo" --out unseen
rm -r unseen

# A test view with another view's picture.
scene by_heart "$(frame a)"
sed 's/"a"/"b"/' by_heart/transforms_train.json >by_heart/transforms_test.json
# shellcheck disable=SC2086  # $small is several words
succeeds train by_heart --out by_heart/run --downscale 8 --steps 300 --quiet $small
contains err 'by_heart: the test views are [0-9.]* dB worse than what was trained on'

succeeds eval run
contains out '(12 test views, white background, sRGB, step 40)'
succeeds eval run/checkpoint.safetensors --json --stride 6 --background black --quiet
[ ! -s err ] || fail "eval --quiet: standard error: $(cat err)"
cp out eval.json
is_json eval.json
for field in '"psnr":' '"ssim":' '"views":.*2,' '"background":.*"black"' '"color_space":.*"sRGB"' \
    '"step":.*40'; do
    contains eval.json "$field"
done
contains eval.json '"precision":.*"'
refuses 2 'there are no val views' eval run --split val --quiet
"$bin" eval run --json --stride 12 --quiet >/dev/full 2>err
[ $? = 1 ] || fail "a full standard output goes unnoticed"
contains err '^vknerf: standard output: '

succeeds render run --orbit 2 --maps rgb,depth,opacity,normal --width 24 --out orbit --quiet
has orbit/frame_0000.png orbit/frame_0001.png orbit/frame_0001_depth.png \
    orbit/frame_0001_opacity.png orbit/frame_0001_normal.png
contains out '^2 frames in orbit'
contains out '^depth: 255 is '
succeeds render run --orbit 1 --maps depth --width 12 --out orbit --json --quiet
cp out render.json
is_json render.json
contains render.json '"frames":.*1,'
contains render.json '"depth_farthest":.*[1-9]'
scene path "$(frame x),$(frame y)" '"w": 12, "h": 12,'
succeeds render run --path path/transforms_train.json --maps depth --out path_views --quiet
has path_views/frame_0000_depth.png path_views/frame_0001_depth.png
[ ! -e path_views/frame_0000.png ] || fail "rgb was written without being asked for"
succeeds render run --interpolate 3 --width 12 --maps depth_values --out path_views
has path_views/frame_0002_depth.npy
[ ! -e path_views/frame_0000.png ] || fail "rgb was written without being asked for"
[ ! -e path_views/frame_0001_depth.png ] || fail "a frame of an earlier rendering was left"
contains err '^path_views: 3 files of an earlier rendering removed'

# Videos, with a stand-in for ffmpeg. A sanitized program has the tool root's libraries in its
# environment, which the machine's shell only takes from the tool root's loader.
mkdir bin
shell=/bin/sh
[ -z "${VKNERF_SANITIZED:-}" ] || for loader in "$VKNERF_TOOL_ROOT"/usr/lib*/ld-linux* \
    "$VKNERF_TOOL_ROOT"/usr/lib/*/ld-linux*; do
    [ ! -e "$loader" ] || shell="$loader /bin/sh"
done
printf '{"frames": 3, "fps": 5, "keyframes": [{"position": [3,0,2], "look_at": [0,0,0]},
    {"position": [0,3,2], "look_at": [0,0,0]}]}' >keys.json
# shellcheck disable=SC2016 # what the stand-in is to expand
stand_in() { # COMMANDS
    printf '#!%s\nunset LD_LIBRARY_PATH\nfor output; do :; done\noutput=${output#file:}\n%s\n' \
        "$shell" "$1" >bin/ffmpeg
    chmod +x bin/ffmpeg
}
video() { # [OPTION ...]
    PATH=$work/bin:$PATH "$bin" render run --path keys.json --width 12 --height 10 --quiet "$@" \
        >out 2>err
    code=$?
}
# shellcheck disable=SC2016
stand_in 'echo "$@" >ffmpeg.arguments; wc -c >"$output"'
video --video turn.mp4 --out turn
[ "$code" = 0 ] || fail "render --video: exit status $code: $(cat err)"
contains turn.mp4 "^$((3 * 12 * 10 * 3))\$"
contains ffmpeg.arguments '-s:v 12x10 -r 5 '
contains out '^video: turn.mp4'
has turn/frame_0002.png
mkdir some.maps
video --video some.maps/turn.gif --maps depth,depth_values,opacity,normal --out turn_maps
[ "$code" = 0 ] || fail "render --video of maps: exit status $code: $(cat err)"
contains some.maps/turn_depth.gif "^$((3 * 12 * 10))\$"
contains some.maps/turn_opacity.gif "^$((3 * 12 * 10))\$"
contains some.maps/turn_normal.gif "^$((3 * 12 * 10 * 3))\$"
contains out '^video: some.maps/turn_depth.gif'
contains turn_maps/depth_scale.json '"255": '
[ ! -e some.maps/turn.gif ] || fail "a video of rgb was made without being asked for"
stand_in 'cat >/dev/null; echo broken >&2; exit 1'
video --video failed.gif --fps 7 --out failed
[ "$code" = 1 ] || fail "render with a failing ffmpeg: exit status $code: $(cat err)"
contains err '^vknerf: failed.gif: ffmpeg failed (exit status 1): broken; the frames are in failed'
has failed/frame_0002.png
[ ! -e failed.gif ] || fail "a failed video was left"
# shellcheck disable=SC2016
stand_in 'case $output in
    *depth*) ;;
    *) head -c 360 >/dev/null; kill -INT $PPID ;;
esac
wc -c >"$output"'
# A frame is more than a pipe holds: the second waits for whoever sends the signal first.
video --width 200 --height 160 --video short.mp4 --maps rgb,depth --out short
[ "$code" = 130 ] || fail "an interrupted render: exit status $code: $(cat err)"
contains err '^vknerf: interrupted after [12] of 3 frames'
has short.mp4 short_depth.mp4 short/frame_0000.png short/frame_0000_depth.png
scene sizes "$(frame x),$(frame y)" '"w": 12, "h": 12,'
sed 's/"file_path": "y"/"w": 13, "h": 12, "file_path": "y"/' sizes/transforms_train.json >sizes.json
refuses 2 'x.mp4: frame 1 has 13x12 pixels and the first 12x12' \
    render run --path sizes.json --video x.mp4 --out sizes_views --quiet
[ ! -e x.mp4 ] || fail "a refused video was left"
refuses 2 'file: cannot make this folder' render run --orbit 1 --out file/views --quiet

# ---- a COLMAP capture ----------------------------------------------------------------------------

mkdir -p capture/sparse/0 capture/images
cp "$demo/train/r_0.png" "$demo/train/r_1.png" "$demo/train/r_2.png" capture/images
echo '1 SIMPLE_RADIAL 128 128 178 64 64 0.01' >capture/sparse/0/cameras.txt
for i in 0 1 2; do
    printf '%s 1 0 0 0 %s 0 4 1 r_%s.png\n\n' $i $i $i
done >capture/sparse/0/images.txt
printf '1 0 0 0 9 9 9 1 1 0 2 0\n2 0 1 1 9 9 9 1 1 1 2 1\n' >capture/sparse/0/points3D.txt
refuses 2 'capture: no scene of the format llff in this folder (poses_bounds.npy)' \
    train capture --quiet --out never --format llff
refuses 2 '--format: ply is none of its values: auto, transforms, colmap, llff, nsvf' \
    train capture --format ply
# shellcheck disable=SC2086  # $small is several words
succeeds train capture/sparse/0 --downscale 4 --steps 1 --quiet --set scene.aabb_scale=1 $small
mv runs/capture-* captured || fail "$(ls runs): not named after the capture"
contains out 'PSNR [0-9.]* dB.* (1 test view, white background, sRGB, step 1)'
contains captured/config.json '"format":.*"colmap"'
mkdir capture/sparse/1
cp capture/sparse/0/cameras.txt capture/sparse/1
head -n 2 capture/sparse/0/images.txt >capture/sparse/1/images.txt
# shellcheck disable=SC2086
succeeds train capture --out far --downscale 4 --steps 1 --quiet $small \
    --set scene.scale=1 --set scene.offset=9,0,0 --set scene.aabb_scale=1 --set scene.placed=true
contains err 'warning: .*capture: only 0 % of what the training views see is within the cube'
contains err 'warning: .*capture: several sparse models: sparse/0 with 3 images is taken; .* sparse/1 with 1'
# Frames at different times, which no model here knows of.
mkdir moving
sed 's/"file_path": "\(.*\)r_\(.\)"/"time": 0.\2, "file_path": "\1r_\2"/' "$demo/transforms_train.json" \
    >moving/transforms_train.json
cp -r "$demo/train" moving
# shellcheck disable=SC2086
succeeds train moving --out moved --downscale 8 --steps 1 --quiet $small
contains err 'warning: .*moving: its frames have different times, .* what moves will be blurred'
succeeds info moving
contains out 'problem: frames have different times'
refuses 2 'capture/sparse/0: no scene of the format transforms in this folder (transforms_train.json' \
    eval captured --quiet --format transforms

# ---- report --------------------------------------------------------------------------------------

rm run/report.html
succeeds report run --json
cp out report.json
is_json report.json
contains report.json '"report":.*"run/report.html"'
rm run/report.html
succeeds report run
contains out '^report: run/report.html$'
contains run/report.html '>How the views formed<'
cp -r run other
rm other/summary.json
succeeds report run other --out both.html
contains out '^report: both.html$'
contains both.html '<h1>2 runs</h1>'
succeeds report run other
has comparison.html
printf '{"step": "x"}\n' >other/metrics.jsonl
refuses 2 'other/metrics.jsonl: line 1: step: ' report run other --out worse.html
[ ! -e worse.html ] || fail "a report on a damaged run was written"
refuses 2 'absent: not a run directory' report absent
refuses 2 'absent/page.html: ' report run --out absent/page.html
rm -r other comparison.html both.html

# ---- export --------------------------------------------------------------------------------------

refuses 2 'a.stl: ends in neither .ply nor .obj' export run --mesh a.stl --quiet
refuses 2 'no/a.ply: ' export run --mesh no/a.ply --quiet
refuses 2 'resolution: 5000 is not from 1 to 2048' export run --mesh a.ply --resolution 5000 --quiet
refuses 2 'crop: 9 to 10 along x is outside' export run --mesh a.ply --crop 9,0,0,10,1,1 --quiet
ls a.ply* 2>/dev/null && fail "export: a failure left a file"
succeeds export run --mesh a.ply --resolution 32 --threshold 0.1 --quiet
contains out '^a.ply: [1-9][0-9]* vertices, [1-9][0-9]* triangles in [1-9]'
contains a.ply '^element face [1-9]'
succeeds export run --mesh a.obj --resolution 32 --threshold 0.1 --largest --json --quiet
cp out export.json
is_json export.json
contains export.json '"removed_components":'
contains export.json '"unseen":.*"fill"'
succeeds export run --mesh a.ply --resolution 32 --threshold 0.1 --unseen drop --json --quiet
contains out '"dropped_vertices":.*[1-9]'
succeeds export run --mesh a.ply --resolution 32 --threshold 0.1 --unseen keep \
    --crop=-1,-1,-1,1,1,1 --json --quiet
contains out '"dropped_vertices":.*0'
contains out '"voxel":.*0.0625'
contains a.obj '^f [1-9]'
succeeds export run --points p.ply --count 0.1k --seed 3 --quiet
contains out '^p.ply: [0-9]* points$'
contains p.ply '^element vertex'
"$bin" export run --mesh /dev/full --quiet >out 2>err
contains err '^vknerf: /dev/full: ends in neither'
"$bin" export run --mesh b.ply --resolution 2048 --quiet >out 2>err &
child=$!
tries=0
until ls b.ply.* >/dev/null 2>&1 || [ $tries = 300 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
kill -TERM "$child"
wait "$child"
code=$?
child=
[ $code = 130 ] || fail "interrupted export: exit status $code: $(cat err)"
contains err 'interrupted while \(meshing\|looking from the views\)'
ls b.ply* 2>/dev/null && fail "an interrupted export left a file"

# ---- fallbacks -----------------------------------------------------------------------------------

# A kernel that is wrong gives way, in training and in rendering.
export VKNERF_SELF_TEST_BREAK=field_backward_fp16
# shellcheck disable=SC2086
succeeds train "$demo" --out broken --downscale 4 --steps 16 --quiet --precision fp16 $small
contains err '^warning: .*fp16 is switched off: the self-test found field_backward_fp16: gradients of'
contains broken/summary.json '"precision":.*"fp32"'
contains broken/summary.json '"path_why":.*"fp16 failed the self-test"'
export VKNERF_SELF_TEST_BREAK=field_forward_fp16
succeeds eval broken --precision fp16 --stride 12 --json --quiet
contains err 'fp16 is switched off: the self-test found field_forward_fp16: '
contains out '"precision":.*"fp32"'
unset VKNERF_SELF_TEST_BREAK
succeeds eval broken --precision fp16 --stride 12 --json --quiet
[ ! -s err ] || fail "eval --precision fp16: standard error: $(cat err)"
contains out '"precision":.*"fp16"'

# ---- going on ------------------------------------------------------------------------------------

succeeds train --resume run --steps 56 --quiet
contains out '^trained 56 steps'
contains run/config.json '"resumed_with"'
tail -n 1 run/metrics.jsonl >last.json
contains last.json '"learning_rate": 0.002[0-9]*,.* "loss_scale": 1024,' # the schedules are the configuration's
contains run/report.html 'id="loss-scale"'
succeeds train --resume run --steps 60 --quiet --loss-scale static:8 --lr-schedule exponential:0.0001
tail -n 1 run/metrics.jsonl >last.json
contains last.json '"learning_rate": 0.00010797[0-9]*,.* "loss_scale": 8,' # 0.01 * 0.01^(59/60)
# Another precision does not go on with a scale that was right for the one before.
succeeds train --resume run --steps 64 --quiet --precision fp16
tail -n 1 run/metrics.jsonl >last.json
contains last.json '"loss_scale": 65536,'
[ "$(grep -c '"step": 40,' run/metrics.jsonl)" = 1 ] || fail "metrics.jsonl lost or doubled a line"
# shellcheck disable=SC2086
succeeds train "$demo" --init run --out init --downscale 4 --seconds 0.5 --json --config run/config.json
contains err 'trains on '
cp out result.json
is_json result.json
for field in '"status":.*"finished"' '"run":.*"init"' '"checkpoint":.*"init/checkpoint.safetensors"' \
    '"report":.*"init/report.html"' '"psnr":' '"ssim":' '"step":' '"seconds":' '"device":' '"commit":'; do
    contains result.json "$field"
done
has init/report.html
[ "$(find run -name 'events.out.tfevents.*' | wc -l)" = 4 ] || fail "event files: $(ls run)"

# ---- precisions ----------------------------------------------------------------------------------

# A run goes on in another precision with the loss scaling of that precision.
# shellcheck disable=SC2086
succeeds train "$demo" --out mixed --downscale 4 --steps 4 --quiet --precision fp32 $small
tail -n 1 mixed/metrics.jsonl >last.json
contains last.json '"loss_scale": 1,'
succeeds train --resume mixed --steps 8 --quiet --precision fp16
tail -n 1 mixed/metrics.jsonl >last.json
contains last.json '"step": 8,'
contains last.json '"loss_scale": 65536,'
contains mixed/config.json '"precision":.*"fp16"'
contains mixed/summary.json '"gpu_memory_bytes":'
succeeds train --resume mixed --steps 10 --quiet --precision fp32 --loss-scale static:8
tail -n 1 mixed/metrics.jsonl >last.json
contains last.json '"loss_scale": 8,'
succeeds train --resume mixed --steps 12 --quiet --precision fp16 --loss-scale static:8
tail -n 1 mixed/metrics.jsonl >last.json
contains last.json '"loss_scale": 8,'
# A scale that loses all gradients is told, and once more at the end; it is no failure.
cp -r mixed flushed
succeeds train --resume flushed --steps 60 --quiet --precision fp16 --loss-scale static:0.0001
contains err 'warning: step 57: 16 bits turn 100 % of the gradients into zero at a loss scale of 0.0001: '
contains err 'warning: flushed: in 48 of 48 steps 16 bits turned more than 2 % of the gradients into zero$'
[ "$(grep -c warning err)" = 2 ] || fail "warnings: $(cat err)"
contains flushed/summary.json '"flushed_steps":.48,$'
contains flushed/report.html '>Gradients: in 48 of 48 steps 16 bits turned more than 2 % of the gradients into zero<'
rm -r flushed
for precision in fp32 fp16; do
    succeeds eval mixed --precision $precision --json --stride 12 --quiet
    contains out "\"precision\":.*\"$precision\""
    succeeds render mixed --precision $precision --orbit 1 --width 24 --out "orbit_$precision" --quiet
done
# On a device without 16-bit arithmetic: what the run had falls back, what is asked for does not.
export VKNERF_DISABLE=float16,cooperative_matrix
succeeds eval mixed --stride 12 --quiet
contains err 'rendering in fp32: .* has no 16-bit arithmetic'
refuses 2 'has no 16-bit arithmetic' eval mixed --stride 12 --quiet --precision fp16
refuses 2 'has no 16-bit arithmetic' train --resume mixed --steps 14 --quiet --precision fp16
succeeds train --resume mixed --steps 14 --quiet
contains err "no 16-bit arithmetic and storage; the run's precision becomes fp32"
tail -n 1 mixed/metrics.jsonl >last.json
contains last.json '"loss_scale": 1,'
unset VKNERF_DISABLE

# ---- the largest batch ---------------------------------------------------------------------------

refuses 2 '--memory-budget: is for --find-batch' train "$demo" --memory-budget 5
refuses 2 '--find-batch: x is none of its values: use, fastest' train "$demo" --find-batch=x
refuses 2 'no batch is stable: with 1024 samples, .* exceed 1.0 MiB' \
    train "$demo" --find-batch --memory-budget 1 --quiet
# shellcheck disable=SC2086  # $tiny is several words
succeeds train "$demo" --find-batch --memory-budget 30M --downscale 4 --precision fp32 --json --quiet $tiny
cp out batch.json
is_json batch.json
for field in '"largest":' '"fastest":' '"memory_budget_bytes":.*31457280' '"verdict":.*"over budget"'; do
    contains batch.json "$field"
done
# shellcheck disable=SC2086  # $tiny is several words
succeeds train "$demo" --find-batch=use --memory-budget 30 --downscale 4 --precision fp32 --quiet \
    --steps 2 --out largest $tiny
contains out '^  *1024  *1024  *[0-9.]*  *[0-9.]*  *[0-9]*  stable$'
samples=$(sed -n 's/^largest stable batch: \([0-9]*\) samples$/\1/p' out)
contains largest/config.json "\"samples\":.*$samples"
contains batch.json "\"largest\":.*$samples"
tail -n 1 largest/metrics.jsonl >last.json
held=$(sed -n 's/.*"gpu_memory_bytes": \([0-9]*\).*/\1/p' last.json)
[ "$held" -le $((30 << 20)) ] || fail "--find-batch=use: $held bytes exceed the budget"
# shellcheck disable=SC2086  # $tiny is several words
succeeds train "$demo" --find-batch=fastest --memory-budget 28 --downscale 8 --precision fp32 --quiet \
    --steps 1 --out fastest --json $tiny
cp out fastest.json
is_json fastest.json
contains fastest.json '"trials":'
contains fastest.json '"run":.*"fastest"'
# shellcheck disable=SC2086  # $tiny is several words
"$bin" train "$demo" --find-batch --downscale 4 --quiet $tiny >out 2>err &
child=$!
sleep 3
kill -TERM "$child"
wait "$child"
code=$?
child=
[ $code = 130 ] || fail "interrupted search: exit status $code: $(cat err)"
contains err '^vknerf: interrupted after [0-9]* batches'

# ---- runs that are stopped and killed ------------------------------------------------------------

start() { # FOLDER ARGUMENT ...: until there is a new checkpoint; leaves $child, ./bout and ./berr
    folder=$1
    shift
    touch started
    "$bin" "$@" --quiet >bout 2>berr &
    child=$!
    tries=0
    until [ -n "$(find "$folder" -name checkpoint.safetensors -newer started 2>/dev/null)" ]; do
        [ $tries != 600 ] || fail "vknerf $*: no checkpoint: $(cat berr)"
        [ $tries != 600 ] || break
        sleep 0.1
        tries=$((tries + 1))
    done
}

stop() { # SIGNAL STATUS
    kill "-$1" "$child"
    wait "$child" 2>/dev/null
    code=$?
    child=
    [ $code = "$2" ] || fail "stopped by $1: exit status $code: $(cat berr)"
}

# What will take long on a CPU device is said; what was interrupted is JSON as well.
# shellcheck disable=SC2086
"$bin" train "$demo" --out slow --downscale 4 --steps 4G --json $small >out 2>err &
child=$!
tries=0
expected='demo: 4000000000 steps take about [0-9]* hours more on this CPU device; --seconds 5m'
[ "${VKNERF_TEST_NATIVE:-0}" != 1 ] || expected='^step '
until grep -q "$expected" err || [ $tries = 300 ]; do
    sleep 0.2
    tries=$((tries + 1))
done
kill -TERM "$child"
wait "$child"
code=$?
child=
[ $code = 130 ] || fail "interrupted: exit status $code: $(cat err)"
contains err '^vknerf: interrupted at step [0-9]* and saved; go on with: vknerf train --resume slow'
contains err "$expected"
cp out slow.json
is_json slow.json
contains slow.json '"status":.*"interrupted"'

# Nobody else trains into a run that is trained, everybody reads it; kill -9 leaves the last checkpoint.
# shellcheck disable=SC2086
start stopped train "$demo" --out stopped --downscale 4 --steps 100000 \
    --set save_seconds=0.1 $small
owner="process $(cut -d ' ' -f 1 stopped/.lock) on $(uname -n)"
refuses 2 "stopped: $owner is training into this folder" train --resume stopped
refuses 2 "stopped: $owner is training into this folder" train "$demo" --out stopped
succeeds report stopped
stop KILL 137
[ -e stopped/.lock ] || fail "kill -9: the lock was not there"
# A temporary of a process that is gone, and lines of steps that will be trained again.
touch stopped/checkpoint.safetensors.$$.7.tmp
printf '{"step": 99999}\n{"step": 16}\n{"step": 16' >>stopped/metrics.jsonl
# A shell without job control starts its children with SIGINT ignored; SIGTERM stops as Ctrl-C does.
start stopped train --resume stopped
stop TERM 130
contains berr '^vknerf: interrupted at step [0-9]* and saved; go on with: vknerf train --resume stopped'
has stopped/checkpoint.safetensors stopped/report.html
contains stopped/summary.json '"status":.*"interrupted"'
[ -z "$(find stopped -name '*.tmp' -o -name .lock)" ] || fail "left behind: $(find stopped)"
step=$(sed -n 's/^{"step": \([0-9]*\),.*/\1/p' stopped/metrics.jsonl | tail -n 1)
[ "$(sed -n 's/^{"step": \([0-9]*\)[,}].*/\1/p' stopped/metrics.jsonl | sort -nu)" = \
    "$(sed -n 's/^{"step": \([0-9]*\)[,}].*/\1/p' stopped/metrics.jsonl)" ] ||
    fail "metrics.jsonl: steps that do not rise: $(cut -c -16 stopped/metrics.jsonl)"
refuses 2 "stopped/checkpoint.safetensors: step $step is past --steps 10: nothing would be trained" \
    train --resume stopped --steps 10
succeeds train --resume stopped --steps "$step" --quiet
contains err "already finished at step $step: nothing is trained"
contains stopped/summary.json '"status":.*"finished"'
[ "${VKNERF_TEST_NATIVE:-0}" = 1 ] ||
    contains stopped/summary.json '"path_why":.*"chosen when the run began: CPU devices multiply f32'

# ---- damaged checkpoints -------------------------------------------------------------------------

mkdir corrupt
head -c 5000 run/checkpoint.safetensors >corrupt/checkpoint.safetensors
refuses 2 'corrupt/checkpoint.safetensors: ' eval corrupt
refuses 2 'corrupt/checkpoint.safetensors: ' train --resume corrupt
cp "$demo/train/r_0.png" corrupt/checkpoint.safetensors
refuses 2 'corrupt/checkpoint.safetensors: ' render corrupt --orbit 2 --out orbit2
: >corrupt/checkpoint.safetensors
refuses 2 'corrupt/checkpoint.safetensors: ' train "$demo" --init corrupt

# ---- demo ----------------------------------------------------------------------------------------

VKNERF_ASSETS=$VKNERF_SOURCE_DIR/assets
export VKNERF_ASSETS
# shellcheck disable=SC2086
succeeds demo --out demo --seconds 0.5 --downscale 4 --quiet $small
contains out '^report: demo/report.html'
contains out '^orbit: demo/orbit'
has demo/report.html demo/orbit/frame_0023.png
succeeds demo --out demo
contains out 'demo: trained before'
# One that is trained anew and killed before it is saved leaves no old model with its own figures.
touch started
# shellcheck disable=SC2086
"$bin" demo --out demo --force --steps 100000 --set save_seconds=-1 --downscale 4 --quiet $small \
    >bout 2>berr &
child=$!
tries=0
until [ -n "$(find demo -name metrics.jsonl -newer started)" ] || [ $tries = 600 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
stop KILL 137
# shellcheck disable=SC2086
succeeds demo --out demo --steps 2 --downscale 4 --quiet $small
contains out '^trained 2 steps'
contains demo/summary.json '"step":.*2,'
[ -n "$(find demo/orbit -name frame_0023.png -newer demo/checkpoint.safetensors)" ] ||
    fail "demo: the orbit is that of the model before"

[ $failures = 0 ] && echo "all passed"
[ $failures = 0 ]
