#!/bin/sh
# Tests vknerf.exe under Wine: trainings in two precisions, names and paths of Windows, ends and locks.
# shellcheck source=tests/cli.sh
. "${VKNERF_SOURCE_DIR:?}/tests/cli.sh"

backslashed() { # PATH
    echo "$1" | sed 's#/#\\#g'
}
windows_work=$(backslashed "Z:$work")

# ---- the device ----------------------------------------------------------------------------------

succeeds info
contains out '^device 0: llvmpipe '
contains out '^  float16  *yes'
contains out '^  cooperative matrix  *yes'

# ---- names: backslashes, a drive, spaces, umlauts, more than 260 characters ----------------------

floor=24 # dB after 200 steps
folder='ä ö ß 日本'
mkdir "$folder"
# shellcheck disable=SC2086 # $small is several words
succeeds train "$(backslashed "Z:$demo")" --out "$windows_work\\$folder\\run" --downscale 8 --steps 200 \
    --quiet --json --set optimizer.learning_rate=0.02 $small
psnr=$(grep -o '"psnr":[[:space:]]*[0-9.]*' "$folder/run/summary.json" | head -n 1 | grep -o '[0-9.]*$')
awk -v psnr="${psnr:-0}" -v floor=$floor 'BEGIN { exit !(psnr >= floor) }' || fail "PSNR $psnr is below $floor"
echo "PSNR ${psnr:-none} dB, floor $floor dB"
has "$folder/run/checkpoint.safetensors" "$folder/run/report.html" "$folder/run/views/test_000.png"
succeeds eval "$folder/run" --stride 6
contains out '^PSNR '

deep=.
for number in 1 2 3 4 5; do
    deep="$deep/a folder for paths of more than 260 characters in all, number $number of 5"
done
mkdir -p "$deep"
# shellcheck disable=SC2086
succeeds train "$demo" --out "$deep/run" --downscale 8 --steps 2 --quiet $small
has "$deep/run/checkpoint.safetensors" "$deep/run/report.html" "$deep/run/views/test_000.png"
succeeds render "$windows_work\\$(backslashed "${deep#./}")\\run" --orbit 1 --width 16 --out "$deep/orbit" --quiet
has "$deep/orbit/frame_0000.png"

# ---- what a training leaves ----------------------------------------------------------------------

succeeds render "$folder\\run" --orbit 2 --width 24 --out "$folder/orbit" --quiet
has "$folder/orbit/frame_0001.png"
succeeds export "$folder/run" --mesh "$folder\\mesh ä.ply" --resolution 24 --quiet
has "$folder/mesh ä.ply"
rm "$folder/run/report.html"
succeeds report "$folder\\run"
has "$folder/run/report.html"

# ---- viewer --------------------------------------------------------------------------------------

status_of() { # URL
    python3 - "$1" <<'END'
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=30).status)
except urllib.error.HTTPError as error:
    print(error.code)
END
}

"$bin" view "$folder/run" --port 0 --quiet >address 2>err &
child=$!
wait_until 600 grep -q 'http://' address || fail "no address: $(cat err)"
url=$(grep -o 'http://[^ ]*' address)
[ "$(status_of "$url")" = 200 ] || fail "$url is not answered"
[ "$(status_of "${url%%\?*}")" = 403 ] || fail "${url%%\?*} is not refused"
end_child INT 0 "view" err

# ---- a precision with cooperative matrices -------------------------------------------------------

# shellcheck disable=SC2086
succeeds train "$demo" --out matrices --precision coopmat --downscale 8 --steps 20 --quiet $small
contains matrices/summary.json '"precision":.*"coopmat"'
contains matrices/config.json '"precision":.*"coopmat"'
grep -o '"path":[[:space:]]*"[^"]*"' matrices/summary.json | head -n 1

# ---- ends and locks ------------------------------------------------------------------------------

train_in_background() { # ARGUMENT ...: waits for a new checkpoint; sets $child
    rm -f stopped/checkpoint.safetensors
    "$bin" train "$@" --quiet >bout 2>berr &
    child=$!
    wait_until 600 test -s stopped/checkpoint.safetensors || fail "no checkpoint: $(cat berr)"
}

# shellcheck disable=SC2086
train_in_background "$demo" --out stopped --downscale 8 --steps 100000 --set save_seconds=0.1 $small
refuses 2 'stopped: process [0-9]* on .* is training into this folder' train --resume stopped
end_child KILL 137 "killed" berr
last=$(sed -n 's/^{"step": \([0-9]*\),.*/\1/p' stopped/metrics.jsonl | tail -n 1)
"$bin" train --resume stopped --quiet >bout 2>berr &
child=$!
# shellcheck disable=SC2317 # wait_until calls it
is_ahead() {
    [ "$(sed -n 's/^{"step": \([0-9]*\),.*/\1/p' stopped/metrics.jsonl | tail -n 1)" -gt "$last" ]
}
wait_until 600 is_ahead || fail "the training does not continue: $(cat berr)"
end_child INT 130 "stopped by Ctrl-C" berr
contains berr 'interrupted at step [0-9]* and saved; go on with: vknerf train --resume stopped'
contains stopped/summary.json '"status":.*"interrupted"'

# ---- a window of its own, as after a double click --------------------------------------------------

in_window() { # ARGUMENT ...: runs vknerf in a console of its own, and presses Enter when it waits for the key
    code=0
    # Its window needs explorer.exe, which keeps the output open for a while: see tools/wine.sh.
    WINEDLLOVERRIDES='' "$VKNERF_SOURCE_DIR/tools/wine.sh" \
        "$VKNERF_BUILD_DIR/tests/windows_console.exe" 'Press Enter' "$VKNERF_BUILD_DIR/vknerf.exe" "$@" \
        >window 2>&1 || code=$?
}
in_window
[ $code = 2 ] || fail "a double click: exit status $code: $(cat window)"
contains window '^usage: vknerf COMMAND'
in_window "Z:\\dropped ä"
[ $code = 2 ] || fail "a dropped folder: exit status $code: $(cat window)"
contains window 'vknerf: Z:/dropped ä: '

# ---- certificate ---------------------------------------------------------------------------------

succeeds certify --only rays --out "certificate ä" --quiet
[ -n "$(find "certificate ä" -name '*.json')" ] || fail "no certificate: $(find "certificate ä")"

finish
