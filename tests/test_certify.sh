#!/bin/sh
# Tests vknerf certify: its files, parts that fail, hang or crash, wrong shaders, Ctrl-C, bad input; trainings in fp32; and
# that features whose tests have failed are switched off. The tests of passes themselves are test_pass_*.
# Takes more than 20 s: it trains three times, and waits for processes that hang.
# shellcheck source=tests/cli.sh
. "${VKNERF_SOURCE_DIR:?}/tests/cli.sh"
export XDG_CACHE_HOME="$work/cache"
mkdir cache

# ---- files ----
succeeds certify --out lens --only lens,mesh --quiet
contains out ': 7 tests, 0 failed, '
has lens/certificate.json lens/certificate.html
is_json lens/certificate.json
python3 - lens <<'END' || fail "the certificate is wrong: $?"
import hashlib, json, re, sys, xml.etree.ElementTree as tree
text = open(sys.argv[1] + '/certificate.json', encoding='utf-8').read()
certificate = json.loads(text)
signed = text[:text.rindex(',\n\t"sha256"')] + '\n}'
assert hashlib.sha256(signed.encode()).hexdigest() == certificate['sha256'], 'hash'
assert [part['part'] for part in certificate['parts']] == ['lens', 'mesh'], 'parts'
assert certificate['complete'] is False and certificate['failed'] == 0 and certificate['switched_off'] == []
figures = [figure for test in certificate['parts'][0]['tests'] for figure in test['figures']]
assert all(0 <= f['error'] <= f['tolerance'] and abs(f['error_ulps'] - f['error'] * 2 ** 23) <= 1e-9 * f['error_ulps'] for f in figures), figures
assert {'direction of ray', 'length of ray'} <= {f['what'] for f in figures}
assert certificate['parts'][1]['tests'][0]['passes'][0] == 'mesh_points'
page = open(sys.argv[1] + '/certificate.html', encoding='utf-8').read()
tree.fromstring(re.sub('(?s)<!doctype html>|<script.*?</script>', '', page))
assert 'All tests that ran have passed.' in page and certificate['device']['name'] in page
END
succeeds certify --out json --only lens --quiet --json
cp out printed
is_json printed

# ---- failures, a hang, a crash ----
VKNERF_SELF_TEST_BREAK=fail_test_panorama,crash_test_all_around,hang_test_depth_scale \
    run certify --out broken --only lens --limit 4 --quiet
[ "$code" = 1 ] || fail "broken: exit status $code instead of 1: $(cat err)"
contains out '^FAILED: lens: test_panorama: injected; last pass: generate_view_rays'
contains out '^FAILED: lens: test_all_around: signal 6; last pass: generate_view_rays'
contains out '^FAILED: lens: test_depth_scale: hung: no progress for 4 s; last pass: generate_view_rays'
contains out ': 5 tests, 3 failed, '
contains broken/certificate.html 'hung: no progress for 4 s'

# ---- a wrong shader is named ----
cp -r "$VKNERF_SOURCE_DIR/shaders" shaders
sed -i 's/    atomicAdd(gradients\[index\], value);/    gradients[index] += value;/' shaders/field/accumulate.glsl
run certify --out wrong --only basics --shader-dir shaders --quiet
[ "$code" = 1 ] || fail "wrong: exit status $code instead of 1: $(cat err)"
contains out '^FAILED: basics: test_float_sums: sum 0: .*; last pass: certify_sums_float, f32 sums; switched off: float_atomics$'

# ---- a device without f16, matrices and float atomics ----
VKNERF_DISABLE=float16,storage16,cooperative_matrix,float_atomics succeeds certify --out few --only basics,grid,inputs --quiet

# ---- Ctrl-C ----
VKNERF_SELF_TEST_BREAK=hang_test_panorama "$bin" certify --out stopped --only lens --quiet >out 2>err &
child=$!
sleep 4
kill -INT $child
wait $child
[ $? = 130 ] || fail "stopped: not exit status 130: $(cat err)"
child=
contains stopped/certificate.json '"complete":	false'

# ---- bad input ----
refuses 2 '--out DIR is missing' certify
refuses 2 'nothing is no part of a certificate' certify --out x --only nothing
refuses 2 'nothing is no part of a certificate' certify --out x --only lens,nothing
refuses 2 'not/there: cannot make this folder' certify --out not/there --only lens
refuses 3 'no device matches "none"' certify --out x --only lens --device none

# ---- trainings ----
VKNERF_DISABLE=float16,cooperative_matrix run certify --out trained --only trainings --quiet
[ "$code" = 0 ] || fail "trained: exit status $code: $(cat out err)"
python3 - trained <<'END' || fail "the trainings are wrong"
import json, sys
part, = json.load(open(sys.argv[1] + '/certificate.json', encoding='utf-8'))['parts']
fp32, bits = part['tests']
assert (fp32['test'], bits['test']) == ('fp32', 'same bits') and fp32['psnr'] > fp32['floor'], part
assert any(p['name'] == 'field_backward' and p['milliseconds'] > p['floor_milliseconds'] > 0 for p in fp32['passes'])
END
refuses 2 'trained: this folder has a certificate' certify --out trained --only trainings

# ---- what has failed is switched off ----
"$bin" certify --part device >events 2>err || fail "device: $(cat err)"
cache=$(sed -n 's/.*"cache":"\([^"]*\)".*/\1/p' events)
mkdir -p "$(dirname "$cache")"
printf '{"date": "2026-11-28", "tests": 2, "failed": 1, "switched_off": [{"feature": "matrix_8x8x8", "test": "test_x", "pass": "p"},
    {"feature": "float_atomics", "test": "test_x", "pass": "p"}, {"feature": "of another version"}]}' >"$cache"
succeeds info --json
contains out '"float_atomic_add":	false'
grep -q '8x8x8 f16' out && fail "8x8x8 matrices are not switched off"
contains out '"failed":	1'
contains err 'matrix_8x8x8 is switched off: in the certificate of 2026-11-28 test_x has failed in p'
VKNERF_DISABLE=certificate succeeds info --json
contains out '8x8x8 f16'
printf 'no JSON' >"$cache"
succeeds info --json
contains out '8x8x8 f16'

exit $failures
