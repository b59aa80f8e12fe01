#!/bin/sh
# Stands in for COLMAP in tests of vknerf prepare: finds as many poses as there are pictures, and appends its arguments
# to the file `calls` beside it. A file `fake` beside it selects a fault: fails STAGE, killed STAGE, slow STAGE (sleeps
# until it is ended), nested STAGE (a child sleeps), spoils STAGE (the record cannot be written), full STAGE
# (the disk is full), cut off (truncated model), few N [M] (N poses, M at the second attempt), newer (names of options).
here=${0%/*}
PATH=/usr/bin:/bin
fake=$(cat "$here/fake" 2>/dev/null)

# Writes images without names and points; all bytes but the ids are zero.
write_images() { # COUNT
    for id in $(seq "$1"); do
        printf '%b\0\0\0' "\\0$(printf %03o "$id")"
        head -c 69 /dev/zero
    done
}
command=$1

if [ "$2" = -h ]; then
    case $fake in
    newer*) echo '  --FeatureExtraction.use_gpu arg (=1)'; echo '  --FeatureMatching.use_gpu arg (=1)' >&2 ;;
    *) echo '  --SiftExtraction.use_gpu arg (=1)'; echo '  --SiftMatching.use_gpu arg (=1)' ;;
    esac
    for name in image_path output_path match_list_path match_type ImageReader.single_camera \
        ImageReader.camera_model ImageReader.camera_params ImageReader.mask_path \
        ImageReader.existing_camera_id SiftExtraction.peak_threshold Mapper.min_model_size; do
        echo "  --$name arg"
    done
    exit 0
fi
echo "$*" >>"$here/calls"

images=''
output=''
database=''
while [ $# -gt 0 ]; do
    case $1 in
    --image_path) images=$2 ;;
    --output_path) output=$2 ;;
    --database_path) database=$2 ;;
    esac
    shift
done

[ "$fake" != "fails $command" ] || { echo 'so far so good'; echo 'ERROR: no such luck'; echo bye; exit 3; } >&2
[ "$fake" != "killed $command" ] || kill -9 $$

count=0
[ -z "$images" ] || count=$(find "$images" -type f | wc -l)
wait_to_be_ended() {
    [ "$fake" != "slow $command" ] || { echo $$ >"$here/waiting"; exec sleep 60; }
    [ "$fake" != "nested $command" ] || { sleep 60 & echo $! >"$here/waiting"; wait; }
}

# The record cannot be written, as on a full disk.
[ "$fake" != "spoils $command" ] || {
    rm "${database%/prepare/*}/prepare.json"
    mkdir -p "${database%/prepare/*}/prepare.json/in the way"
}

[ "$fake" != "full $command" ] || echo 'SQLite error [./src/base/database.cc, line 989]: database or disk is full'

case $command in
feature_extractor)
    : >>"$database"
    for i in $(seq "$count"); do
        echo "Processed file [$i/$count]"
        [ "$i" != 4 ] || wait_to_be_ended
    done ;;
mapper)
    case $fake in
    few*)
        # shellcheck disable=SC2086 # two numbers
        set -- ${fake#few }
        count=$1
        case $database in
        */2/*) count=${2:-$1} ;;
        esac ;;
    esac
    wait_to_be_ended
    [ "$count" != 0 ] || { echo 'ERROR: failed to create sparse model' >&2; exit 1; }
    mkdir "$output/0" "$output/1"
    for i in $(seq "$count"); do
        echo "Registering image #$i ($i)"
    done
    # Complete files without cameras; images have no names, points are zeros.
    head -c 8 /dev/zero | tee "$output/1/cameras.bin" >"$output/0/cameras.bin"
    { printf '%b\0\0\0\0\0\0\0' "\\0$(printf %03o "$count")"; write_images "$count"; } >"$output/0/images.bin"
    { printf '\2\0\0\0\0\0\0\0'; write_images 2; } >"$output/1/images.bin"
    { printf '\0\1\0\0\0\0\0\0'; head -c 13056 /dev/zero; } | tee "$output/0/points3D.bin" >"$output/1/points3D.bin"
    [ "$fake" != 'cut off' ] || truncate -s -9 "$output/0/images.bin" ;;
*)
    echo 'Matching block [1/2, 1/2] in 0.1s'
    wait_to_be_ended
    echo 'garbage [0/0] [7/3] [1/99999999999999999999] [' ;;
esac
