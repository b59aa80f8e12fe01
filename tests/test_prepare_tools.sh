#!/bin/sh
# Tests vknerf prepare from the command line with ffmpeg and COLMAP: a video to a scene that trains; frames, colours and
# sharpness; panoramas; formats; Ctrl-C; messages. Except for the first scene a stand-in replaces COLMAP: test_prepare
# tests poses.
# shellcheck source=tests/cli.sh
. "${VKNERF_SOURCE_DIR:?}/tests/cli.sh"

grey() { # FILE X Y: brightness there, 0 to 255
    ffmpeg -v error -f image2 -pattern_type none -i "$1" -vf "crop=4:4:$2:$3,scale=1:1,format=gray" -f rawvideo - | od -An -tu1 | tr -d ' '
}

near() { # NUMBER EXPECTED WHAT
    if [ "$1" -lt $(($2 - 4)) ] || [ "$1" -gt $(($2 + 4)) ]; then
        fail "$3: $1 instead of $2"
    fi
}

# ---- a video to a scene that trains -----------------------------------------------------------------

mkdir views
"${VKNERF_BUILD_DIR:?}/tests/test_prepare" views views
# Every view three times; the second copy is sharp.
ffmpeg -v error -framerate 10/3 -i views/view_%d.png -crf 12 -pix_fmt yuv420p \
    -vf "fps=10,gblur=sigma=3:steps=2:enable='not(eq(mod(n,3),1))'" "it's a walk.mp4"
ffmpeg -v error -i "it's a walk.mp4" v%03d.png

refuses 2 "it's a walk.mp4: a video without poses; find them with: vknerf prepare '.*/it'.\{1,2\}''s a walk.mp4' --out '.*/it'.\{1,2\}''s a walk-scene'" \
    train "it's a walk.mp4" --quiet --out never
run prepare "it's a walk.mp4" --out a --sharpest --frames 7
[ "$code" = 0 ] || fail "prepare: exit status $code: $(cat err a/prepare/*.log | tail -n 40)"
contains out '^7 of 7 pictures have poses, [0-9]* points, '
contains out '^next: vknerf train a$'
contains out '^or refine its poses first: vknerf refine a --out REFINED$'
for i in 1 4 7; do
    ffmpeg -v error -i "$(printf 'v%03d.png' $((3 * i - 1)))" -i a/images/frame_0000$i.jpg -lavfi ssim=stats_file=- -f null - |
        sed -n 's/.*All:\([0-9.]*\).*/\1/p' >ssim
    [ "$(cut -c 3-4 <ssim)" -gt 90 ] || fail "frame $i is not the sharp one: $(cat ssim)"
done
succeeds info a
contains out '^lenses'
contains out 'opencv  *7'
# shellcheck disable=SC2086 # the options are words
succeeds train a --out r --steps 8 --downscale 4 --quiet $small
# A second call has nothing to do.
succeeds prepare "it's a walk.mp4" --out a --sharpest --frames 7 --json
contains out '"pictures":	7'
contains out '"registered":	7'
contains out '"problems"'
# The refinement begins with the prepared scene, and refuses a folder with other files. test_refine refines.
mkdir q
: >q/mine
run prepare "it's a walk.mp4" --out a --sharpest --frames 7 --quiet --refine q --refine-seconds 5
[ "$code" = 2 ] || fail "--refine: exit status $code: $(cat err)"
contains err '^vknerf: q: this folder contains mine, which refine did not make'
contains out '^7 of 7 pictures have poses'
run prepare "it's a walk.mp4" --out a --sharpest --frames 7 --quiet --refine q --json
[ "$code" = 2 ] || fail "--refine --json: exit status $code: $(cat err)"
[ ! -s out ] || fail "--refine --json: a refinement that fails leaves half of a result: $(cat out)"
refuses 2 '--refine-seconds: only valid with --refine' prepare "it's a walk.mp4" --out a --refine-seconds 5
refuses 2 '--refine-seconds: seconds: soon is not a number of seconds' \
    prepare "it's a walk.mp4" --out a --sharpest --frames 7 --refine q --refine-seconds soon
refuses 2 'a: was prepared before the pictures (.*walk.mp4) or the options for them changed' prepare "it's a walk.mp4" --out a

# ---- with the stand-in ------------------------------------------------------------------------------

mkdir bin
cp "$VKNERF_SOURCE_DIR/tests/fake_colmap.sh" bin/colmap
PATH=$work/bin:$PATH
# The stand-in's result is no model, so that the step after the preparation fails.
prepares() { # ARGUMENT ...
    rm -f bin/calls
    run prepare "$@"
    if [ "$code" != 2 ] || ! grep -q '/sparse/0' err; then
        fail "vknerf prepare $*: exit status $code: $(cat err)"
    fi
}

# 150 of 1200 frames, evenly: brightness is the frame number modulo 256, plus 4 in every eighth frame's centre.
ffmpeg -v error -f lavfi -i "nullsrc=s=16x16:r=100:d=12,format=gray,geq=lum='mod(N,256)'" -pix_fmt yuvj420p long.mkv
prepares long.mkv --out b --quiet
[ "$(find b/images -name '*.jpg' | wc -l)" = 150 ] || fail "not 150 frames: $(ls b/images)"
near "$(grey b/images/frame_00001.jpg 4 4)" 4 'the first frame'
near "$(grey b/images/frame_00101.jpg 4 4)" 36 'frame 804'
near "$(grey b/images/frame_00150.jpg 4 4)" 172 'the last frame'
contains bin/calls sequential_matcher
contains bin/calls matches_importer

# Colours stay: BT.709 in the video, BT.601 in JPEG; and light too bright for a screen keeps some structure.
ffmpeg -v error -f lavfi -i color=c=0xc03020:s=64x64:r=5:d=1 -vf scale=out_color_matrix=bt709:out_range=tv \
    -colorspace bt709 -color_primaries bt709 -color_trc bt709 -pix_fmt yuv444p red.mp4
prepares red.mp4 --out c
ffmpeg -v error -i c/images/frame_00001.jpg -vf scale=1:1,format=rgb24 -f rawvideo - | od -An -tu1 >rgb
read -r red green blue <rgb
near "$red" 192 'red of a red video'
near "$green" 48 'green of a red video'
near "$blue" 32 'blue of a red video'
ffmpeg -v error -f lavfi -i gradients=s=64x64:r=5:d=1:c0=black:c1=white:x0=0:x1=63:y0=0:y1=0:speed=0.00001 \
    -color_trc arib-std-b67 -colorspace bt2020nc -color_primaries bt2020 -pix_fmt yuv420p10le hdr.mp4
prepares hdr.mp4 --out d
[ "$(grey d/images/frame_00001.jpg 56 30)" -gt "$(($(grey d/images/frame_00001.jpg 8 30) + 100))" ] ||
    fail "an HDR video lost its light"

# A telephone held upright.
ffmpeg -v error -f lavfi -i testsrc=s=96x64:r=5:d=1 -pix_fmt yuv420p flat.mp4
ffmpeg -v error -i flat.mp4 -c copy -metadata:s:v rotate=90 upright.mp4 2>/dev/null
ffprobe -v error -show_streams upright.mp4 | grep -q rotation= ||
    ffmpeg -v error -y -display_rotation 90 -i flat.mp4 -c copy upright.mp4
prepares upright.mp4 --out e
ffprobe -v error -show_entries stream=width,height -of csv=p=0 e/images/frame_00001.jpg >size
contains size '^64,96'

# Panoramas: brightness is the longitude, and views look every 45 degrees.
mkdir around
for i in 1 2 3; do
    ffmpeg -v error -f lavfi -i "nullsrc=s=1024x512,format=gray,geq=lum='X/4'" -frames:v 1 around/$i.png
done
prepares around --out "f%02d" --equirectangular
[ "$(find f%02d/images -name '*.jpg' | wc -l)" = 24 ] || fail "not 8 views of 3 panoramas: $(ls f%02d/images)"
contains bin/calls '--ImageReader.camera_model PINHOLE --ImageReader.camera_params 128.0,128.0,128,128'
near "$(grey "f%02d/images/2_0.jpg" 126 126)" 128 'the view ahead'
near "$(grey f%02d/images/2_2.jpg 126 126)" 192 'the view to the right'
near "$(grey f%02d/images/2_6.jpg 126 126)" 64 'the view to the left'
prepares around --out around-flat
contains err '^warning: around: 3 of 3 pictures are twice as wide as high: .*prepare them with --equirectangular'
refuses 2 'demo/train/r_0.png: 128x128 pixels; an equirectangular picture is twice as wide as high' \
    prepare "$demo/train" --out g --equirectangular --quiet
# A file that is no panorama is left out like one that cannot be read.
cp "$demo/train/r_0.png" around/flat.png
prepares around --out around-but-one --equirectangular
[ "$(find around-but-one/images -name '*.jpg' | wc -l)" = 24 ] || fail "not 8 views of 3 panoramas: $(ls around-but-one/images)"
contains err '^warning: around: 1 of 4 photographs cannot be used and are left out: flat.png (128x128 pixels; an equirectangular picture is twice as wide as high)$'

# Other formats.
mkdir other
for i in 1 2 3; do
    ffmpeg -v error -f lavfi -i testsrc=s=64x48 -frames:v 1 other/$i.tiff
done
cp other/3.tiff "other/-4 it's%d.TIFF"
prepares other --out "%d h"
has "%d h/images/00002_1.tiff.jpg"
# Broken files are left out in every format; none of them is a list that ffmpeg would follow.
ffmpeg -v error -i other/1.tiff other/5.webp
for name in 4.webp 6.tif 7.heic 8.avif; do
    printf 'ffconcat version 1.0\nfile %s/other/1.tiff\n' "$work" >other/$name
done
rm -r "%d h"
prepares other --out i --quiet
contains err 'warning: other: 4 of 9 photographs cannot be used and are left out: 4.webp (cannot be converted by ffmpeg: '
contains err '6.tif (cannot be converted by ffmpeg: .*), 7.heic (cannot be converted by ffmpeg: .*), 8.avif'
[ "$(find i/images -name '*.jpg' | wc -l)" = 5 ] || fail "not 5 converted photographs: $(ls i/images)"
# The content decides, not the name: a WebP called JPEG.
mkdir misnamed
cp other/[123].tiff misnamed
cp other/5.webp misnamed/5.jpg
prepares misnamed --out m --quiet
[ "$(find m/images -name '*.jpg' | wc -l)" = 4 ] || fail "not 4 converted photographs: $(ls m/images)"
printf 'ffconcat version 1.0\nfile flat.mp4\n' >list.mp4
printf '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nflat.mp4\n#EXT-X-ENDLIST\n' >walk.m3u8
for name in list.mp4 walk.m3u8; do
    refuses 2 "$name: neither a folder of photographs nor a video: " prepare $name --out j --quiet
done
echo no video >text.mp4
refuses 2 'text.mp4: neither a folder of photographs nor a video: ffprobe failed (exit status 1): ' prepare text.mp4 --out j --quiet
ffmpeg -v error -f lavfi -i sine=d=1 sound.m4a
refuses 2 'sound.m4a: neither a folder of photographs nor a video: it has no pictures' prepare sound.m4a --out j --quiet

# ---- usage ------------------------------------------------------------------------------------------

succeeds prepare --help
contains out '^usage: vknerf prepare PICTURES|VIDEO --out SCENE'
refuses 2 'PICTURES is missing' prepare
refuses 2 'prepare: --out SCENE is missing' prepare views
refuses 2 '--matcher: vocabulary is none of its values: exhaustive, sequential' prepare views --out k --matcher vocabulary
refuses 2 'not/there: No such file' prepare not/there --out k
refuses 2 'frames: is for videos, but views is a folder' prepare views --out k --frames 10
refuses 2 'view_1.png: one photograph; name the folder' prepare views/view_1.png --out k

# ---- Ctrl-C -----------------------------------------------------------------------------------------

echo 'slow exhaustive_matcher' >bin/fake
"$bin" prepare views --out l >out 2>err &
child=$!
wait_until 200 test -s bin/waiting || fail "COLMAP was not begun"
end_child INT 130 'prepare, interrupted' err
contains err 'interrupted; run the same command again to continue'
kill -0 "$(cat bin/waiting)" 2>/dev/null && fail "COLMAP goes on"
refuses 2 'l: this scene is only partly prepared; run the same vknerf prepare again to continue' train l --quiet --out never
rm bin/fake
prepares views --out l
contains bin/calls exhaustive_matcher
grep -q feature_extractor bin/calls && fail "features were found twice"

finish
