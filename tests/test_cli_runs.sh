#!/bin/sh
# Tests the command line on a short run on the bundled scene: train, eval, render, report, export, resume; damaged
# checkpoints.
# shellcheck source=tests/cli.sh
. "${VKNERF_SOURCE_DIR:?}/tests/cli.sh"

# ---- train, eval, render -------------------------------------------------------------------------

printf '0 256\n50, 1024 # when resumed\n' >scales.txt
printf '[[0, 0.01], [40, 0.002], [56, 0.002]]' >rates.json
# shellcheck disable=SC2086  # $small is several words
succeeds train "$demo" --out run --downscale 8 --steps 40 --eval-every 32 --save-every 20 --quiet \
    --profile --loss-scale schedule:scales.txt --lr-schedule file:rates.json $small
rm scales.txt rates.json
contains out 'PSNR [0-9.]* dB, SSIM [0-9.]* (12 test views, white background, sRGB, step 40)'
contains err '^field_forward '
contains err '^begin_step .* bytes$' # also for a floor of microseconds
contains err '^idle between passes '
contains err '^floors from this device.s peaks: '
contains err '^training images  *[0-9.]* *[0-9.]*%  device$'
contains err '^all buffers  *[0-9.]* *100.0%$'
contains run/report.html '>Device memory by buffer<'
contains run/trace.json '"traceEvents"'
contains run/report.html '>GFLOP/s<'
has run/config.json run/metrics.jsonl run/checkpoint.safetensors run/summary.json run/report.html \
    run/views/test_000.png run/views/test_011.png run/views/test_011_target.png \
    run/views/test_011_error.png run/views/test_011_depth.png run/views/test_011_opacity.png run/views/step_000032_test_003.png \
    run/views/step_000040_test_009.png run/events.out.tfevents.*
contains run/report.html '>Test views during training<'
contains run/summary.json '"status":.*"finished"'
contains run/summary.json '"color_space":.*"sRGB"'
contains run/summary.json '"views":.4,' # of the quick evaluation
if grep -q '^reached' out; then fail "reached a PSNR in 40 steps: $(cat out)"; fi
if [ "${VKNERF_TEST_NATIVE:-0}" != 1 ]; then
    contains run/summary.json '"precision":.*"fp32"'
    contains run/summary.json '"path":.*"fp32"'
    contains run/summary.json '"path_why":.*"CPU devices multiply f32 fastest"'
    contains run/summary.json '"gradient_sums":.*"f32, a level.s by one subgroup"'
    contains run/config.json '"path":.*"fp32"'
fi
contains run/summary.json "\"commit\":.*\"$("$bin" --version | sed 's/.*(\(.*\))/\1/')\""
contains run/config.json '"commit":'
is_json run/summary.json
tail -n 1 run/metrics.jsonl >last.json
is_json last.json
contains last.json '"step": 40'
contains last.json '"loss_scale": 256, "skipped_steps": 0, "underflowed": 0,'
contains last.json '"learning_rate": 0.002\(2\|1999\)[0-9]*,' # after 39 steps, 0.01 - 0.008 * 39 / 40
contains run/config.json '"schedule":.*"file"'
contains run/config.json '"downscale":.*8'
export VKNERF_DISABLE=timestamps
# shellcheck disable=SC2086  # $small is several words
succeeds train "$demo" --out untimed --downscale 8 --steps 1 --profile --quiet $small \
    --set policy.master_parameters=f16 --set policy.compositing=f16
unset VKNERF_DISABLE
contains err '^no pass was timed: the device gives no timestamps$'
has untimed/trace.json
contains untimed/summary.json '"policy":.*"policy.compositing=f16, policy.master_parameters=f16"'
contains untimed/config.json '"master_parameters":.*"f16"'
contains untimed/report.html 'Changed defaults'
rm -r untimed
refuses 2 'config: policy.matmul: f16 needs precision fp16 or coopmat' train "$demo" --out refused   \
    --downscale 8 --precision fp32 --set policy.matmul=f16 --quiet
refuses 2 'run: holds a run already; go on with --resume run' train "$demo" --out run
mkdir unseen && ln -s checkpoint.safetensors unseen/checkpoint.safetensors
# Wine tells a link to itself by another error.
[ -n "${VKNERF_WINDOWS:-}" ] || refuses 2 'unseen/checkpoint.safetensors: cannot be examined: ' train "$demo" --out unseen
rm -r unseen

# A test view with another view's picture, and sparse points behind all cameras.
scene by_heart "$(frame a),$(frame a),$(frame a)" '"ply_file_path": "points.ply",'
{
    printf 'ply\nformat ascii 1.0\nelement vertex 30\nproperty float x\nproperty float y\nproperty float z\n'
    printf 'property uchar red\nproperty uchar green\nproperty uchar blue\nend_header\n'
    awk 'BEGIN { for (i = 0; i < 30; i++) print i / 30, 0, 9, 8 * i, 8 * i, 100 }'
} >by_heart/points.ply
sed 's/"a"/"b"/g' by_heart/transforms_train.json >by_heart/transforms_test.json
# shellcheck disable=SC2086  # $small is several words
succeeds train by_heart --out by_heart/run --downscale 8 --steps 200 --quiet $small --set scene.aabb_scale=1 \
    --set optimizer.learning_rate=0.02
contains err 'by_heart: the test views are [0-9.]* dB worse than the training rays'
[ "$(grep -c '^warning: .*by_heart: 6 of 6 views have hardly any of the 30 sparse points in their pictures; check ' err)" = 1 ] ||
    fail "no warning, or several, of poses that do not fit: $(cat err)"

# A test view with a training view's picture, which 160 steps learn.
scene seen "$(frame a),$(frame a),$(frame a)"
cp seen/transforms_train.json seen/transforms_test.json
# shellcheck disable=SC2086  # $small is several words
succeeds train seen --out seen/run --downscale 8 --steps 176 --eval-every 160 --set eval_views=2 --quiet $small \
    --set scene.aabb_scale=1 --set optimizer.learning_rate=0.02
contains out '^reached 25 dB on 2 of 3 test views after [0-9.]* s, at step 160$'
tr -d '[:space:]' <seen/run/summary.json >last.json
contains last.json '"reached":\[{"psnr":25,"split":"test","step":160,"seconds":[0-9.]*,"views":2}'
contains last.json '"quick":{"psnr":[0-9.]*,"ssim":[0-9.]*,"views":2}'
rm -r seen

# A scene that has moved, or left an empty folder.
mv by_heart moved
refuses 2 '/by_heart: No such file or directory; .* with --scene ' eval moved/run --quiet
refuses 2 '/by_heart: No such file or directory; .* with --scene ' render moved/run --orbit 1 --out lost --quiet
refuses 2 '/by_heart: No such file or directory; .* with --scene ' export moved/run --points lost.ply --quiet
refuses 2 '/by_heart: No such file or directory; .* with --scene ' train --resume moved/run --steps 201 --quiet
mkdir by_heart
refuses 2 '/by_heart: no scene of the format transforms in this folder .* with --scene ' eval moved/run --quiet
rmdir by_heart
run eval moved/run --scene neither --quiet
grep -q -- '--scene' err && fail "advises --scene although --scene was given: $(cat err)"
refuses 2 'scene: the scene is given twice, as moved and as by_heart' train moved --resume moved/run --scene by_heart
succeeds train --resume moved/run --scene moved --steps 201 --quiet
contains moved/run/summary.json '"scene":.*/moved"'

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
if grep -q aligned eval.json; then fail "views of a run without refined cameras are aligned by default"; fi
succeeds eval run --aligned --stride 6
contains out '^PSNR [0-9.]* dB (views aligned: [0-9.]* dB), '
contains err '^2 of 2 views aligned: moved by [0-9.]* pixels in the mean, PSNR [-+][0-9.]* dB$'
# shellcheck disable=SC2086  # $small is several words
succeeds train "$demo" --out refined --downscale 8 --steps 16 --quiet $small --set scene.refine=poses
contains refined/summary.json '"psnr_aligned":.*[0-9]'
contains refined/report.html 'mean of the test views; at aligned poses: [0-9.]* dB'
succeeds eval refined --json --stride 6 --quiet
[ "$(grep -c '"psnr_aligned":' out)" = 3 ] || fail "eval of refined cameras aligns no views, or not all: $(cat out)"
rm -r refined
# shellcheck disable=SC2086
succeeds train "$demo" --out exposed --downscale 8 --steps 16 $small --set scene.appearance=full \
    --set loss.robust=on
contains err "exposed: loss.robust leaves nothing out: less than 1 % of the images' area are outliers"
has exposed/error_map.png
contains exposed/report.html 'Error map of training views; red: outliers, left out'
contains exposed/appearance.json '"white_balance":'
contains exposed/report.html 'Exposures of training images, in stops about the mean'
contains exposed/report.html 'mean of the test views; colours corrected: [0-9.]* dB'
succeeds eval exposed --stride 6
contains out '^PSNR [0-9.]* dB (colours corrected: affine [0-9.]* dB, quadratic [0-9.]* dB), '
succeeds render exposed --split test --exposure 2 --width 24 --out bright --quiet
succeeds render exposed --split test --width 24 --out mean --quiet
[ "$(cksum <bright/frame_0000.png)" != "$(cksum <mean/frame_0000.png)" ] || fail "--exposure changes no picture"
succeeds export exposed --masks masks --json
contains out '"masked_views":.*0'
[ "$(find masks -name '*.png' | wc -l)" = 60 ] || fail "export: other masks than those of 60 images"
refuses 2 'run.*: was trained without loss.robust, which finds masks$' export run --masks none
refuses 2 'no/masks: ' export exposed --masks no/masks
refuses 2 'exposed/config.json: ' export exposed --masks exposed/config.json
[ ! -e none ] || fail "export: a failure left a folder of masks"
rm -r exposed bright mean masks
refuses 2 'there are no val views' eval run --split val --quiet
"$bin" report run --json >/dev/full 2>err
[ $? = 1 ] || fail "a full standard output goes unnoticed"
contains err '^vknerf: standard output: '

succeeds render run --orbit 2 --maps rgb,depth,opacity,normal --width 24 --out orbit --quiet
has orbit/frame_0000.png orbit/frame_0001.png orbit/frame_0001_depth.png \
    orbit/frame_0001_opacity.png orbit/frame_0001_normal.png
contains out '^2 frames in orbit'
contains out '^depth: 255 is '
succeeds render run --orbit 2 --width 24 --crop=-99,-99,-99,99,99,99 --out cropped --quiet
cmp orbit/frame_0001.png cropped/frame_0001.png || fail "a box around everything changes the picture"
# The crop and background of a nerfstudio path, and command-line options that override them.
cat >box.json <<'EOF'
{"render_width": 24, "render_height": 24, "seconds": 1, "camera_type": "perspective",
 "crop": {"crop_center": [50, 50, 50], "crop_scale": [1, 1, 1], "crop_bg_color": {"r": 0, "g": 0, "b": 0}},
 "camera_path": [{"camera_to_world": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 4], [0, 0, 0, 1]], "fov": 40},
                 {"camera_to_world": [[0, 0, 1, 4], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]], "fov": 40}]}
EOF
succeeds render run --path box.json --out boxed --quiet
succeeds render run --path box.json --crop 50,50,50,51,51,51 --background black --out nothing --quiet
succeeds render run --path box.json --crop=-99,-99,-99,99,99,99 --background white --out something --quiet
succeeds render run --orbit 2 --width 24 --crop=-0.2,-0.5,-9,0.2,0.5,9,0,0,90 --out rotated --quiet
succeeds render run --orbit 2 --width 24 --crop=-0.5,-0.2,-9,0.5,0.2,9 --out swapped --quiet
succeeds render run --orbit 2 --width 24 --crop=-0.2,-0.5,-9,0.2,0.5,9 --out straight --quiet
cmp rotated/frame_0000.png swapped/frame_0000.png || fail "a box rotated by 90 degrees is not the box with swapped edges"
! cmp -s rotated/frame_0000.png straight/frame_0000.png || fail "render ignores the rotation of a box"
cmp nothing/frame_0000.png nothing/frame_0001.png || fail "a box far away is not empty"
cmp boxed/frame_0000.png nothing/frame_0000.png || fail "pictures ignore the crop of a camera path"
! cmp -s boxed/frame_0000.png something/frame_0000.png || fail "--crop does not override the path's crop"
succeeds render run --orbit 1 --width 24 --background transparent --maps rgb,depth,depth16,depth_values --time 0.25 --out clear
contains err 'its frames have no times: time 0.25 has no effect$'
contains out '^depth16: 1 is [0-9.e-]* dataset units'
od -An -tu1 -j24 -N2 clear/frame_0000.png >kind
contains kind '^ *8 *6$' # bits, RGBA
succeeds render run --orbit 1 --lens equirectangular --width 48 --maps rgb,depth --out around --json --quiet
cp out render.json
is_json render.json
contains render.json '"frames":.*1,'
contains render.json '"depth_farthest":.*[1-9]'
od -An -tu1 -j16 -N8 around/frame_0000.png >kind
contains kind '^ *0 *0 *0 *48 *0 *0 *0 *24$' # twice as wide as high
# 16-bit depths, read with Python's standard library, equal the depth values.
python3 - clear 2>&1 <<'PYTHON' || fail "16-bit depths"
import json, pathlib, struct, sys, zlib
folder = pathlib.Path(sys.argv[1])
data = (folder / "frame_0000_depth16.png").read_bytes()
at, body = 8, b""
while at < len(data):
    size, kind = struct.unpack(">I4s", data[at:at + 8])
    if kind == b"IHDR":
        width, height, bits, color = struct.unpack(">IIBB", data[at + 8:at + 18])
    body += data[at + 8:at + 8 + size] if kind == b"IDAT" else b""
    at += 12 + size
assert (width, bits, color) == (24, 16, 0), (width, bits, color)
rows, above, row = zlib.decompress(body), bytes(2 * width), 1 + 2 * width
unit = json.loads((folder / "depth_scale.json").read_text())["depth_unit_scale_factor"]
values = struct.unpack("<%df" % (width * height), (folder / "frame_0000_depth.npy").read_bytes()[128:])
solid = 0
for y in range(height):
    line = rows[y * row:(y + 1) * row]
    assert line[0] in (0, 2), "filter"
    above = bytes((b + (a if line[0] == 2 else 0)) & 255 for a, b in zip(above, line[1:]))
    for x, step in enumerate(struct.unpack(">%dH" % width, above)):
        value = values[y * width + x]
        assert (step == 0) == (value == 0) and abs(step * unit - value) <= 0.501 * unit, (x, y, step, value)
        solid += step > 0
assert 20 < solid < width * height and max(values) / unit > 20000, solid
PYTHON
scene path "$(frame x),$(frame y)" '"w": 12, "h": 12,'
succeeds render run --path path/transforms_train.json --maps depth --out path_views --quiet
has path_views/frame_0000_depth.png path_views/frame_0001_depth.png
[ ! -e path_views/frame_0000.png ] || fail "rgb was written without being asked for"
succeeds render run --interpolate 3 --width 12 --maps depth_values --out path_views
has path_views/frame_0002_depth.npy
[ ! -e path_views/frame_0000.png ] || fail "rgb was written without being asked for"
[ ! -e path_views/frame_0001_depth.png ] || fail "a frame of an earlier rendering was left"
contains err '^path_views: 3 files of an earlier rendering removed'

# Videos, with a script instead of ffmpeg. A sanitized program has the tool root's libraries in its environment, which
# the machine's shell can only load with the tool root's loader.
mkdir bin
shell=/bin/sh
[ -z "${VKNERF_SANITIZED:-}" ] || for loader in "$VKNERF_TOOL_ROOT"/usr/lib*/ld-linux* \
    "$VKNERF_TOOL_ROOT"/usr/lib/*/ld-linux*; do
    [ ! -e "$loader" ] || shell="$loader /bin/sh"
done
printf '{"frames": 3, "fps": 5, "keyframes": [{"position": [3,0,2], "look_at": [0,0,0]},
    {"position": [0,3,2], "look_at": [0,0,0]}]}' >keys.json
# shellcheck disable=SC2016 # the script expands it
fake_ffmpeg() { # COMMANDS: writes the script
    printf '#!%s\nunset LD_LIBRARY_PATH\nfor output; do :; done\noutput=${output#file:}\n%s\n' \
        "$shell" "$1" >bin/ffmpeg
    chmod +x bin/ffmpeg
}
video() { # [OPTION ...]: renders a video, sets $code
    PATH=$work/bin:$PATH "$bin" render run --path keys.json --width 12 --height 10 --quiet "$@" \
        >out 2>err
    code=$?
}
test_videos() {
    # shellcheck disable=SC2016
    fake_ffmpeg 'echo "$@" >ffmpeg.arguments; wc -c >"$output"'
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
    fake_ffmpeg 'cat >/dev/null; echo broken >&2; exit 1'
    video --video failed.gif --fps 7 --out failed
    [ "$code" = 1 ] || fail "render with a failing ffmpeg: exit status $code: $(cat err)"
    contains err '^vknerf: failed.gif: ffmpeg failed (exit status 1): broken; the frames are in failed'
    has failed/frame_0002.png
    [ ! -e failed.gif ] || fail "a failed video was left"
    # shellcheck disable=SC2016
    fake_ffmpeg 'case $output in
        *depth*) ;;
        *) head -c 360 >/dev/null; kill -INT $PPID ;;
    esac
    wc -c >"$output"'
    # A frame exceeds a pipe's buffer: one encoder waits until the other has sent the signal.
    video --width 200 --height 160 --video short.mp4 --maps rgb,depth --out short
    [ "$code" = 130 ] || fail "an interrupted render: exit status $code: $(cat err)"
    contains err '^vknerf: interrupted after [12] of 3 frames'
    has short.mp4 short_depth.mp4 short/frame_0000.png short/frame_0000_depth.png
}
if [ -n "${VKNERF_WINDOWS:-}" ]; then
    echo 'skipped: videos: Windows starts no scripts, as which ffmpeg is replaced here'
else
    test_videos
fi
scene sizes "$(frame x),$(frame y)" '"w": 12, "h": 12,'
sed 's/"file_path": "y"/"w": 13, "h": 12, "file_path": "y"/' sizes/transforms_train.json >sizes.json
refuses 2 'x.mp4: frame 1 has 13x12 pixels and the first 12x12' \
    render run --path sizes.json --video x.mp4 --out sizes_views --quiet
[ ! -e x.mp4 ] || fail "a refused video was left"
touch file # even root cannot write below a file
refuses 2 'file: cannot make this folder' render run --orbit 1 --out file/views --quiet

# ---- report --------------------------------------------------------------------------------------

rm run/report.html
succeeds report run --json
cp out report.json
is_json report.json
contains report.json '"report":.*"run/report.html"'
rm run/report.html
succeeds report run
contains out '^report: run/report.html$'
contains run/report.html '>Test views during training<'
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

refuses 2 'a.stl: ends in neither .ply, .obj nor .glb' export run --mesh a.stl --quiet
refuses 2 'no/a.ply: ' export run --mesh no/a.ply --quiet
refuses 2 'resolution: 5000 is not from 1 to 2048' export run --mesh a.ply --resolution 5000 --quiet
refuses 2 'crop: 9 to 10 along x is outside' export run --mesh a.ply --crop 9,0,0,10,1,1 --quiet
ls a.ply* 2>/dev/null && fail "export: a failure left a file"
succeeds export run --mesh a.ply --resolution 32 --threshold 0.1 --points p.ply --splats s.ply --count 0.1k --seed 3 --quiet
contains out '^a.ply: [1-9][0-9]* vertices, [1-9][0-9]* triangles in [1-9]'
contains a.ply '^element face [1-9]'
contains out '^p.ply: [0-9]* points$'
contains p.ply '^element vertex'
contains out '^s.ply: [1-9][0-9]* splats$'
contains s.ply '^property float f_rest_44$'
succeeds export run --mesh a.obj --resolution 32 --threshold 0.1 --largest --json --quiet
cp out export.json
is_json export.json
contains export.json '"removed_components":'
contains export.json '"unseen":.*"fill"'
succeeds export run --mesh seen.ply --resolution 32 --threshold 0.1 --unseen drop --splats s.ply --points p.ply --count 10 \
    --json --quiet
contains out '"dropped_vertices":.*[1-9]'
cp out splats.json
is_json splats.json
contains splats.json '"splat_count":'
succeeds export run --mesh kept.ply --resolution 32 --threshold 0.1 --unseen keep \
    --crop=-1,-1,-1,1,1,1 --json --quiet
contains out '"dropped_vertices":.*0'
contains out '"voxel":.*0.0625'
contains a.obj '^f [1-9]'

# The box printed for a mesh, given as an option, makes the same mesh.
succeeds export run --mesh printed.ply --resolution 16 --unseen keep --threshold 0.1 --crop=-0.7,-0.33,0.1,0.4,0.9,1.1 --quiet
box=$(sed -n 's/.*, surface at density \([^,]*\), --crop \(.*\)$/--threshold \1 --crop \2/p' out)
# shellcheck disable=SC2086 # several words
succeeds export run --mesh again.ply --resolution 16 --unseen keep $box --quiet
contains out "$(printf '%s' "$box" | sed 's/.* //')\$"
cmp printed.ply again.ply || fail "export: $box is not the box that was printed"

# With a unit of 2 m all positions are doubled; the box is in the dataset's units.
succeeds export run --mesh a2.ply --resolution 32 --threshold 0.1 --points p2.ply --splats s2.ply --count 10 --quiet
cp out unscaled
succeeds export run --mesh a3.ply --resolution 32 --threshold 0.1 --points p3.ply --splats s3.ply --count 10 --quiet \
    --unit-length 2
contains out '^positions are in metres; voxels, density and --crop are in units of the dataset, 2 m each$'
[ "$(sed -n 2p out)" = "$(sed -n 2p unscaled)" ] || fail "export --unit-length: another box: $(cat out)"
for name in a p s; do
    /usr/bin/python3 -B "$VKNERF_SOURCE_DIR"/tests/doubled.py ${name}2.ply ${name}3.ply || fail "${name}3.ply: not doubled"
done
refuses 2 '--unit-length: 0 is not above 0' export run --mesh u.ply --unit-length 0
refuses 2 'unit_length: 1e+10 is not from 1e-09 to 1e+09' export run --mesh u.ply --unit-length 1e10
refuses 2 'unit_length: 1e-300 is not from 1e-09 to 1e+09' export run --mesh u.ply --unit-length 1e-300

# assimp counts vertices and faces, and writes the colours, which are linear in glTF, and the texture.
succeeds export run --mesh a.glb --resolution 32 --threshold 0.1 --quiet
assimp info a.glb >assimp.txt || fail "assimp info: $(cat assimp.txt)"
vertices=$(sed -n 's/^element vertex //p' a.ply)
faces=$(sed -n 's/^element face //p' a.ply)
contains assimp.txt "^Vertices: *$vertices\$"
contains assimp.txt "^Faces: *$faces\$"
assimp export a.glb others.ply >assimp.txt || fail "assimp export: $(cat assimp.txt)"
/usr/bin/python3 -B "$VKNERF_SOURCE_DIR"/tests/same_mesh.py a.ply others.ply || fail "a.glb: other colours or positions"
succeeds export run --mesh t.glb --texture=128 --resolution 16 --threshold 0.1 --json --quiet
cp out texture.json
is_json texture.json
contains texture.json '"texture":.*128'
assimp info t.glb >assimp.txt || fail "assimp info: $(cat assimp.txt)"
contains assimp.txt '^Textures (embed.): *1$'
contains assimp.txt "^Faces: *$(sed -n 's/.*"triangles":[^0-9]*\([0-9]*\).*/\1/p' texture.json)\$"
assimp extract t.glb >assimp.txt || fail "assimp extract: $(cat assimp.txt)"
[ "$(od -A n -t u1 -j 16 -N 8 t_img0.png | tr -s ' ')" = ' 0 0 0 128 0 0 0 128' ] || fail "t_img0.png: not 128 x 128"
succeeds export run --mesh t.glb --texture --resolution 16 --threshold 0.1 --quiet
contains out '^texture of 256 x 256 pixels, [0-9.]* along a voxel, in [0-9]* charts$'
refuses 2 'texture: 20 x 20 pixels are too few for [0-9]* triangles; a larger --texture' \
    export run --mesh u.glb --texture=20 --resolution 16 --threshold 0.1 --quiet
refuses 2 'texture: only a mesh in a .glb file has one' export run --mesh u.ply --texture --quiet
refuses 2 'texture: 16385 is more than 16384 pixels' export run --mesh u.glb --texture=16385 --quiet
refuses 2 's.splat: does not end in .ply' export run --splats s.splat --quiet
refuses 2 'p.obj: does not end in .ply' export run --points p.obj --quiet
refuses 2 'no/s.ply: ' export run --splats no/s.ply --quiet
ls u.* s.splat* 2>/dev/null && fail "export: a failure left a file"

# Times, of a scene with times and of one without.
scene timed "$(frame a),$(frame b | sed 's/"file_path"/"time": 0.5, &/')"
succeeds render run --scene timed --orbit 1 --width 12 --time 0.25 --out moment
[ "$(grep -c 'time' err)" = 0 ] || fail "render --time: $(cat err)"
succeeds export run --scene timed --points p.ply --count 10
contains err '^timed: its frames have times: exporting time 0$'
succeeds export run --scene timed --points p.ply --count 10 --time 1 --json
contains out '"time":.*1,'
[ "$(grep -c 'time' err)" = 0 ] || fail "export --time: $(cat err)"
# The PSNR of a blank page, for scenes with times: independent of the field.
succeeds eval run --scene "${demo%/demo}/moving" --quiet
contains out ' dB (background alone: 14\.\(68\|69\|70\) dB), .* (12 test views,'
succeeds eval run --scene "${demo%/demo}/moving" --quiet --json --background black --stride 11
contains out '"time":.*0.041667'
contains out '"background_psnr":.*1[0-9]\.'
if grep -q 'blank' eval.json; then fail "background alone of a scene without times"; fi

# The object alone, of pictures without alpha in more than the unit cube; what cannot be told apart is exported whole.
scene room "$(frame a),$(frame b | sed 's/,0,0,0\],/,0,0,1],/')" '"aabb_scale": 2,'
cp run/views/test_000.png room/a.png
cp run/views/test_000.png room/b.png
# shellcheck disable=SC2086  # $small is several words
succeeds train room --out outside --downscale 8 --steps 1 --quiet $small
succeeds export outside --points p.ply --count 10
contains err '^outside: exporting everything, since the views look at no common point$'
succeeds export outside --points p.ply --count 10 --all
succeeds export outside --points p.ply --count 10 --crop=-1,-1,-1,1,1,1
if grep -q 'exporting everything' err; then fail "export --all, --crop: a message about the object"; fi
# The white of these pictures is a wall, in front of which the views have the scene in common.
mkdir -p around/test
for number in 0 1 2 3 4 5 6 7 8 9 10 11; do
    cp "run/views/test_0$(printf '%02d' "$number").png" "around/test/r_$number.png"
done
sed 's/"camera_angle_x"/"aabb_scale": 2, &/' "$demo/transforms_test.json" >around/transforms_train.json
rm -r outside
# shellcheck disable=SC2086  # $small is several words
succeeds train around --out outside --steps 40 --background black --quiet $small
succeeds export outside --points p.ply --mesh m.ply --resolution 16 --unseen keep --count 100 --quiet
box=$(sed -n 's/^only the object that most training views look at (--all: everything): \(--crop .*\)$/\1/p' out)
[ -n "$box" ] || fail "export: no object: $(cat out err)"
contains out ' voxels of [0-9.e+-]*, surface at density [0-9.e+-]*$'
# shellcheck disable=SC2086 # several words
succeeds export outside --points again.ply --mesh n.ply --resolution 16 --unseen keep --count 100 --quiet $box
for pair in "p.ply again.ply" "m.ply n.ply"; do
    # shellcheck disable=SC2086 # two names
    cmp $pair || fail "export: $box is not the box that was printed"
done
# The rotation is printed too, and the printed box gives the same bits.
succeeds export outside --points p.ply --mesh m.ply --resolution 16 --unseen keep --count 100 --quiet --crop=-1,-0.7,-0.5,0.9,0.8,1.2,10,-25,40.5
box=$(sed -n 's/.*, --crop \(.*\)$/--crop=\1/p' out)
case $box in *,10,-25,40.5) ;; *) fail "export: no rotation: $(cat out err)" ;; esac
succeeds export outside --mesh n.ply --resolution 16 --unseen keep --quiet "$box"
cmp m.ply n.ply || fail "export: $box is not the box that was printed"
refuses 2 'export: --all and --crop exclude each other' export run --mesh a.ply --all --crop=-1,-1,-1,1,1,1
"$bin" export run --mesh /dev/full --quiet >out 2>err
contains err '^vknerf: /dev/full: ends in neither'
"$bin" export run --mesh b.ply --resolution 2048 --quiet >out 2>err &
child=$!
wait_until 300 sh -c 'ls b.ply.*'
end_child TERM 130 "interrupted export"
contains err 'interrupted while \(meshing\|rendering visibility maps\)'
ls b.ply* 2>/dev/null && fail "an interrupted export left a file"

# ---- resuming ------------------------------------------------------------------------------------

succeeds train --resume run --steps 56 --quiet
contains out '^trained 56 steps'
contains run/config.json '"resumed_with"'
tail -n 1 run/metrics.jsonl >last.json
contains last.json '"learning_rate": 0.002[0-9]*,.* "loss_scale": 1024,' # the schedules are in the configuration
contains run/report.html 'id="loss-scale"'
succeeds train --resume run --steps 60 --quiet --loss-scale static:8 --lr-schedule exponential:0.0001 \
    --set scene.unit_length=0.25
tail -n 1 run/metrics.jsonl >last.json
contains last.json '"learning_rate": 0.00010797[0-9]*,.* "loss_scale": 8,' # 0.01 * 0.01^(59/60)
[ "$(grep -c '"step": 40,' run/metrics.jsonl)" = 1 ] || fail "metrics.jsonl lost or doubled a line"
# shellcheck disable=SC2086
succeeds train "$demo" --init run --out init --downscale 8 --seconds 0.1 --json --config run/config.json \
    --set scene.unit_length=default
contains err 'trains on '
cp out result.json
is_json result.json
for field in '"status":.*"finished"' '"run":.*"init"' '"checkpoint":.*"init/checkpoint.safetensors"' \
    '"report":.*"init/report.html"' '"psnr":' '"ssim":' '"step":' '"seconds":' '"device":' '"commit":'; do
    contains result.json "$field"
done
has init/report.html
succeeds export init --points p.ply --count 10 --json --quiet # the unit is inherited from the weights' run
contains out '"unit_length":.*0.25'
[ "$(find run -name 'events.out.tfevents.*' | wc -l)" = 3 ] || fail "event files: $(ls run)"

# ---- refine --------------------------------------------------------------------------------------

# shellcheck disable=SC2086
succeeds refine "$demo" --out refined --lenses --downscale 8 --steps 96 --quiet --set refine.start=0 \
    --set refine.initial_rate=0.1 $small
kept=$(sed -n 's/^views that keep their cameras, as they are at refine.limit or do not fit: \([0-9]*\) (view [0-9, ]*), see the report$/\1/p' out)
contains out "^$((72 - ${kept:-0})) views have moved by [0-9.]* pixels in the mean\$"
[ "$(grep -c '"rolled_back":.*true' refined/verdict.json)" = "${kept:-0}" ] || fail "refine: views that keep their cameras: $(cat out)"
contains out '^PSNR of test views: original cameras [0-9.]* dB, refined cameras [0-9.]* dB: [-+][0-9.]* dB, noise'
contains out '^verdict: keep the \(original\|refined\) cameras'
contains out '^next: vknerf train '
has refined/report.html refined/transforms_train.json refined/transforms_test.json refined/train/r_0.png \
    refined/refine/refined_1/checkpoint.safetensors
# shellcheck disable=SC2086
succeeds refine "$demo" --out refined --lenses --downscale 8 --steps 96 --quiet --set refine.start=0 \
    --set refine.initial_rate=0.1 $small --json
{ cat refined/verdict.json && echo; } | cmp -s - out || fail "refine --json: not the verdict: $(head -c 300 out)"
is_json refined/verdict.json
succeeds info refined
contains out '^format  *transforms'

# ---- damaged checkpoints -------------------------------------------------------------------------

mkdir corrupt
head -c 5000 run/checkpoint.safetensors >corrupt/checkpoint.safetensors
refuses 2 'corrupt/checkpoint.safetensors: ' eval corrupt
refuses 2 'corrupt/checkpoint.safetensors: ' train --resume corrupt
cp "$demo/train/r_0.png" corrupt/checkpoint.safetensors
refuses 2 'corrupt/checkpoint.safetensors: ' render corrupt --orbit 2 --out orbit2
: >corrupt/checkpoint.safetensors
refuses 2 'corrupt/checkpoint.safetensors: ' train "$demo" --init corrupt

finish
