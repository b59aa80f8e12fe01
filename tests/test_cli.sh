#!/bin/sh
# Tests the command line: usage, exit codes, one-line errors for all bad input, vknerf info on devices and scenes,
# captures, failing kernels, the search for a batch.
# shellcheck source=tests/cli.sh
. "${VKNERF_SOURCE_DIR:?}/tests/cli.sh"

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
contains out '^  --steps N  *number of training steps; default 20000, none with seconds$'
contains out '^Loss scaling:$'
contains out '--model ngp|vanilla|dynamic|layered|glsl$'
contains out '20k is 20000.*bytes in K, M or G'
succeeds --help
contains out 'demo'

# Output for the man page and shells (tests/test_manual.py tests all of it).
succeeds help --man
contains out '^.TH VKNERF 1'
contains out '^.SS demo$'
succeeds help --complete train --set loss.kind=h
[ "$(cat out)" = 'loss.kind=huber	' ] || fail "completion of a setting: $(cat out)"
mkdir -p some/run some/other
: >some/run/metrics.jsonl
succeeds help --complete eval --precision fp32 some/
[ "$(sort out | cut -f 1 | tr '\n' ' ')" = 'some/other/ some/run ' ] || fail "completion of a run: $(cat out)"
for words in 'eval' 'eval not/there/' 'train --loss-scale schedule:' 'train -- -' 'report a b ' 'eval --steps=' 'x y' 'eval ~/'; do
    # shellcheck disable=SC2086 # several words
    run help --complete $words ''
    [ "$code" = 0 ] || [ "$words $code" = 'x y 2' ] || fail "completion of $words: exit status $code"
done

refuses 2 'trian: unknown command; did you mean train?' trian
mkdir nothing
refuses 2 'nothing: no scene in this folder' nothing # short for train nothing
refuses 2 'SCENE is missing' train
refuses 2 'RUN is missing' eval
refuses 2 'RUN is missing' report
refuses 2 '--stepz: unknown option; did you mean --steps?' train "$demo" --stepz 5
refuses 2 '--zzzzzzzz: unknown option; see vknerf train --help' train "$demo" --zzzzzzzz
# Names of settings in other programs.
refuses 2 '--lr: unknown option; did you mean --set optimizer.learning_rate=VALUE?' train "$demo" --lr 1e-3
refuses 2 '--Batch_Size: unknown option; did you mean --set batch.samples=VALUE?' train "$demo" --Batch_Size=4096
refuses 2 '--max-num-iterations: unknown option; did you mean --steps?' train "$demo" --max-num-iterations 5
refuses 2 '--gpu: unknown option; did you mean --device?' eval run --gpu 0
refuses 2 '--grid.levels: unknown option; did you mean --set grid.levels=VALUE?' train "$demo" --grid.levels 3
refuses 2 '--data: unknown option; SCENE is given by itself: vknerf train SCENE' train --data "$demo"
refuses 2 '-o: unknown option; did you mean --out?' train "$demo" -o run
refuses 2 '--resolution: unknown option; did you mean --width?' render run --resolution 64
refuses 2 '--set: optimizer.lr: unknown key; did you mean optimizer.learning_rate?' train "$demo" --set optimizer.lr=1
refuses 2 'evaluate: unknown command; did you mean eval?' evaluate run
refuses 2 'process-data: unknown command; did you mean prepare?' process-data images photographs
refuses 2 'refine: SCENE is missing' refine --out refined
refuses 2 'refine: --out REFINED is missing' refine "$demo"
refuses 2 '--view: unknown option' refine "$demo" --out refined --view
refuses 2 'refine: --lenses and --only-verdict exclude each other' \
    refine "$demo" --out refined --only-verdict other --lenses
refuses 2 'seeds: 1 is not from 2 to 100' refine "$demo" --out refined --seeds 1
refuses 2 'not/there: ' refine not/there --out refined
OMPI_COMM_WORLD_RANK=0 # as mpirun sets it
export OMPI_COMM_WORLD_RANK
refuses 2 'refine: runs as one process; for several devices use --devices' refine "$demo" --out refined
unset OMPI_COMM_WORLD_RANK
[ ! -e refined ] || fail "a refused refinement has made its folder"
refuses 2 'devices: unknown command; did you mean info?' devices
refuses 2 'not/there/run: cannot make this folder: there is no folder not/there to make it in' \
    train "$demo" --quiet --out not/there/run
[ ! -e not ] || fail "the parents of --out were made"
refuses 2 'r_0.png: one picture; a scene is a folder' train "$demo/train/r_0.png" --quiet --out never
refuses 2 '--steps: its value is missing' train "$demo" --steps
refuses 2 '--profile: takes no value' train "$demo" --profile=yes
refuses 2 '--steps: its value is missing' train "$demo" --steps=
refuses 2 '--out: its value is missing (DIR)' train "$demo" --out --quiet
refuses 2 '--set: steps: its value is missing' train "$demo" --set steps=
refuses 2 '--loss-scale: static: is none of its values' train "$demo" --loss-scale static:
refuses 2 'eval: RUN is empty' eval ''
refuses 2 'b: one argument too many' train a b
refuses 2 'use: one argument too many; did you mean --find-batch=use?' train a --find-batch use
refuses 2 '--view-exit: only valid with --view' train "$demo" --view-exit
refuses 2 '--steps: steps: x is not a number' train "$demo" --steps x
refuses 2 '--steps: steps: -5 is out of range' train "$demo" --steps=-5
refuses 2 '--background: background: blue is none of' train "$demo" --background blue
refuses 2 '--model: x is none of its values: ngp, vanilla, dynamic, layered, glsl' train "$demo" --model x
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
refuses 2 '--eval-every: eval_every: 5x is not a number of steps, a list (100,500,2000) or a series' \
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
refuses 2 'only one of a split, an orbit, an interpolation and a path' render x --orbit 3 --split test --out y
refuses 2 'only one of a split, an orbit, an interpolation and a path' \
    render x --orbit 3 --interpolate 2 --out y
refuses 2 'd.json: only of use with a path' render x --dataparser d.json --out y
refuses 2 '--time: 1.01 is not a number from 0 to 1' render x --orbit 3 --out y --time 1.01
refuses 2 '--mesh FILE, --points FILE, --splats FILE or --masks FOLDER is missing' export x
refuses 2 '--texture: x is not a whole number' export x --mesh y.glb --texture=x
refuses 2 '--time: nan is not a number from 0 to 1' export x --mesh y.ply --time nan
refuses 2 'x.gif: a video is not transparent' render x --background transparent --video x.gif --out y
refuses 2 '--background: transparent is' eval x --background transparent
refuses 2 'background: .*transparent' train x --background transparent
refuses 2 '--lens: fisheye is' render x --lens fisheye --out y
refuses 2 '--crop: 0,0,0,1,1 is not six numbers' export x --mesh y.ply --crop 0,0,0,1,1
refuses 2 '--crop: 0,0,0,1,0,1: y0 is not below y1' export x --mesh y.ply --crop 0,0,0,1,0,1
refuses 2 '--crop: 0,0,0,1,1,1,5 is not nine numbers x0,y0,z0,x1,y1,z1,rx,ry,rz' export x --mesh y.ply --crop 0,0,0,1,1,1,5
refuses 2 '--crop: 0,0,0,1,1,1,0,0,0,0 is not nine numbers' export x --mesh y.ply --crop 0,0,0,1,1,1,0,0,0,0
refuses 2 '--crop: 0,0,0,1,1,1,0,361,0: ry is not from -360 to 360' export x --mesh y.ply --crop 0,0,0,1,1,1,0,361,0
refuses 2 '--threshold: inf is not a number' export x --mesh y.ply --threshold inf
refuses 2 '--min-component: -1 is not above 0' export x --mesh y.ply --min-component=-1
refuses 2 'x.avi: a video.s name ends in .mp4 or .gif' render x --video x.avi --out y
refuses 2 'x.mp4: no map is a picture that a video could show' \
    render x --maps depth_values --video x.mp4 --out y
refuses 2 'only of use with a video' render x --fps 3 --out y
refuses 2 '--crop: 0,0,0,1,1 is not six numbers' render x --crop 0,0,0,1,1 --out y
refuses 2 '--crop: 0,0,0,1,0,1: y0 is not below y1' render x --crop 0,0,0,1,0,1 --out y
refuses 2 '--supersample: 3 is not 1, 2 or 4' render x --supersample 3 --out y
refuses 2 '--fps: 0 is not a number from 0.01 to 1000' render x --fps 0 --video x.mp4 --out y
refuses 2 '--exposure: bright is not a number from -16 to 16' render x --exposure bright --out y
refuses 2 '--exposure: 17 is not a number from -16 to 16' render x --exposure 17 --out y
refuses 2 '--exposure: nan is not a number from -16 to 16' render x --exposure nan --out y
refuses 2 '--fps: 3x is not a number' render x --fps 3x --video x.mp4 --out y

# ---- scenes --------------------------------------------------------------------------------------

refuses_scene() { # PATTERN SCENE: a refused scene leaves no folder of a run
    refuses 2 "$1" train "$2" --steps 16 --quiet --out never
    [ ! -e never ] || fail "$2: a failed start left its folder"
    rm -rf never
}

scene missing_image "$(frame a),$(frame c)"
refuses_scene 'missing_image.*c' missing_image
scene truncated "$(frame a),$(frame b)"
cp truncated/transforms_train.json truncated/transforms_test.json # avoids a warning that would come first
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
refuses_scene 'empty_folder: no scene in this folder: it is empty' empty_folder
refuses_scene 'not/there: ' not/there

# ---- output, configuration, device ---------------------------------------------------------------

# Not even root can write below a file or into /proc.
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
refuses 2 'empty_folder: not a run directory' eval empty_folder
refuses 2 'empty_folder: not a run directory' train --resume empty_folder
refuses 2 'absent: neither' train "$demo" --init absent

# ---- info ----------------------------------------------------------------------------------------

# A device that fails its self-test is listed, with the reason.
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
export VKNERF_DISABLE=global_priority
succeeds info --low-priority
contains err '^warning: ".*" has no priorities of programs.*--low-priority has no effect$'
unset VKNERF_DISABLE
succeeds info --json
cp out info.json
is_json info.json
contains info.json '"devices"'
contains info.json '"commit":'
contains info.json '"cas_sums":	true'
contains info.json '"f16_subnormals":	true'
contains info.json '"f16_rounds_to_even":	true'
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

# The length of a dataset unit, from two points: 5 units are 1.25 m.
succeeds info "$demo" --distance=-1,0,2,2,4,2=1.25
contains out '^unit length  *0.25$'
contains out '^to export in metres: vknerf train --set scene.unit_length=0.25, or vknerf export --unit-length 0.25$'
succeeds info "$demo" --distance=-1,0,2,2,4,2=1.25 --json
contains out '"unit_length":.*0.25,'
refuses 2 '--distance: 0,0,0,1,1,1 is not x0,y0,z0,x1,y1,z1=METRES' info "$demo" --distance 0,0,0,1,1,1
refuses 2 '--distance: 0,0,0,1,1 is not six numbers' info "$demo" --distance 0,0,0,1,1=2
refuses 2 '--distance: 1m is not a number' info "$demo" --distance 0,0,0,1,1,1=1m
for metres in 0 -1 1e30; do
    refuses 2 'a unit is not 1e-9 to 1e9 m long' info "$demo" --distance "0,0,0,1,1,1=$metres"
done
refuses 2 '2 m over 0 units' prepare none --out made --distance 1,1,1,1,1,1=2
refuses 2 '--distance: the scene is missing' info --distance 0,0,0,1,1,1=2

test_libraries() {
    # Image formats whose libraries are loaded on demand: a missing library is an error that names the package.
    mkdir none
    : >none/libwebp.so.7
    : >none/libtiff.so.6
    for picture in rgba.webp turned.tif; do
        scene pictures "$(frame $picture)"
        cp "$VKNERF_SOURCE_DIR/tests/fuzz/corpus/scene/$picture" pictures
        succeeds info pictures
        contains out '^ *5  *2  *1$'
        LD_LIBRARY_PATH=$PWD/none "${VKNERF_BUILD_DIR:?}/vknerf" info pictures >out 2>err && fail "$picture: without its library"
        contains err "pictures/$picture: .* needs lib.*, which is missing: install lib\(webp7\|tiff6\)\$"
    done
    refuses 2 'metashape/cameras.xml: 0 of 0 cameras with a pose' prepare metashape --out made --quiet
}

mkdir -p metashape
echo '<document><chunk></chunk></document>' >metashape/cameras.xml
refuses 2 'metashape: a capture of Metashape (cameras.xml), not a scene; convert it with: vknerf prepare' info metashape
if [ -n "${VKNERF_WINDOWS:-}" ]; then
    echo 'skipped: libraries that are loaded on demand: the tests of Windows have none of them'
else
    test_libraries
fi

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
succeeds train capture/sparse/0 --downscale 8 --steps 1 --quiet --set scene.aabb_scale=1 $small
mv runs/capture-* captured || fail "$(ls runs): not named after the capture"
contains out 'PSNR [0-9.]* dB.* (1 test view, white background, sRGB, step 1)'
contains captured/config.json '"format":.*"colmap"'
mkdir capture/sparse/1
cp capture/sparse/0/cameras.txt capture/sparse/1
head -n 2 capture/sparse/0/images.txt >capture/sparse/1/images.txt
# shellcheck disable=SC2086
succeeds train capture --out far --downscale 8 --steps 1 --quiet $small \
    --set scene.scale=1 --set scene.offset=9,0,0 --set scene.aabb_scale=1 --set scene.fixed_transform=true
contains err 'warning: .*capture: only 0 % of what the training views see is within the cube'
contains err 'warning: .*capture: several sparse models: sparse/0 with 3 images is taken; .* sparse/1 with 1'
# Frames with different times, which the default model ignores.
moving=${demo%/demo}/moving
# shellcheck disable=SC2086
succeeds train "$moving" --out moved --downscale 8 --steps 1 --quiet $small
contains err 'warning: .*moving: its frames have different times, .* blurred; use --model dynamic'
succeeds info "$moving"
contains out 'problem: frames have different times'
refuses 2 'capture/sparse/0: no scene of the format transforms in this folder (transforms_train.json' \
    eval captured --quiet --format transforms

# ---- fallbacks -----------------------------------------------------------------------------------

# A wrong kernel is replaced by a fallback, in training and in rendering.
export VKNERF_SELF_TEST_BREAK=field_backward_fp16
# shellcheck disable=SC2086
succeeds train "$demo" --out broken --downscale 8 --steps 16 --quiet --precision fp16 $small
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

# ---- the largest batch ---------------------------------------------------------------------------

refuses 2 '--memory-budget: only valid with --find-batch' train "$demo" --memory-budget 5
refuses 2 '--find-batch: x is none of its values: use, fastest' train "$demo" --find-batch=x
refuses 2 'no batch is stable: with 1024 samples, .* exceed 1.0 MiB' \
    train "$demo" --find-batch --memory-budget 1 --quiet
# A budget between the needs of 1024 and 4096 samples; a trial has a third of a second.
tiny="$tiny --set march.resolution=16 --set march.steps_per_unit=64"
# shellcheck disable=SC2086  # $tiny is several words
succeeds train "$demo" --find-batch --memory-budget 24M --downscale 8 --precision fp32 --json --quiet $tiny
cp out batch.json
is_json batch.json
for field in '"largest":' '"fastest":' '"memory_budget_bytes":.*25165824' '"verdict":.*"over budget"'; do
    contains batch.json "$field"
done
# shellcheck disable=SC2086  # $tiny is several words
succeeds train "$demo" --find-batch=use --memory-budget 24 --downscale 8 --precision fp32 --quiet \
    --steps 2 --out largest $tiny
contains out '^  *1024  *1024  *[0-9.]*  *[0-9.]*  *[0-9]*  stable$'
samples=$(sed -n 's/^largest stable batch: \([0-9]*\) samples$/\1/p' out)
contains largest/config.json "\"samples\":.*$samples"
contains batch.json "\"largest\":.*$samples"
tail -n 1 largest/metrics.jsonl >last.json
held=$(sed -n 's/.*"gpu_memory_bytes": \([0-9]*\).*/\1/p' last.json)
[ "$held" -le $((24 << 20)) ] || fail "--find-batch=use: $held bytes exceed the budget"
# shellcheck disable=SC2086  # $tiny is several words
succeeds train "$demo" --find-batch=fastest --memory-budget 24 --downscale 8 --precision fp32 --quiet \
    --steps 1 --out fastest --json $tiny
cp out fastest.json
is_json fastest.json
contains fastest.json '"trials":'
contains fastest.json '"run":.*"fastest"'
# shellcheck disable=SC2086  # $tiny is several words
"$bin" train "$demo" --find-batch --downscale 8 $tiny >out 2>err &
child=$!
wait_until 300 grep 'trying [0-9]* samples' err
end_child TERM 130 "interrupted search"
contains err '^vknerf: interrupted after [0-9]* batches'

finish
