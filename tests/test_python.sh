#!/bin/sh
# Tests the Python package: builds the wheel from the built library, installs it, checks its type hints, the layouts of
# its structures, its classes and functions with small trainings, and runs the notebooks. Takes some 20 s: five small
# trainings, and pipelines of two shapes.
set -u
source=${VKNERF_SOURCE_DIR:?}
build=${VKNERF_BUILD_DIR:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
# All results are of fp32: other precisions are not compiled.
VKNERF_DISABLE=float16,cooperative_matrix
export VKNERF_DISABLE
python=/usr/bin/python3 # the distribution's, which has NumPy and pycparser
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# ---- the wheel -------------------------------------------------------------------------------------

"$python" "$source/python/build_wheel.py" "$build/libvknerf.so.0" wheels >out 2>&1 || fail "build_wheel.py: $(cat out)"
wheel=$(tail -n 1 out)
"$python" "$source/python/build_wheel.py" "$build/libvknerf.so.0" again >out 2>&1 || fail "build_wheel.py: $(cat out)"
cmp "$wheel" "$(tail -n 1 out)" || fail "a second wheel is different"
"$python" -m pip install -q --no-index --no-deps --target installed "$wheel" >out 2>&1 || fail "pip: $(cat out)"
PYTHONPATH=$work/installed
export PYTHONPATH
# No library of the wheel needs a newer C library than the wheel's name says, and none is left out.
newest=$(objdump -p installed/vknerf/lib/* | grep -oE '\bGLIBC_[0-9.]+' | sort -uV | tail -n 1)
case $wheel in
    */vknerf-*-py3-none-manylinux_"$(echo "${newest#GLIBC_}" | tr . _)"_"$(uname -m)".whl) ;;
    *) fail "$wheel needs $newest" ;;
esac
ldd installed/vknerf/lib/libvknerf.so.0 >out
grep -vE "$work/installed/|(libc|libm|libz)\.so|linux-vdso|/ld-linux" out && fail "the library needs others"
grep -q "not found" out && fail "a library is missing: $(cat out)"

# ---- the package -----------------------------------------------------------------------------------

cat >use.py <<'END'
import vknerf

trainer = vknerf.Trainer("scene", {"steps": 5}, grid={"levels": 4})
for stats in trainer.train(seconds=3.0):
    psnr: float = stats.psnr
picture: vknerf.Picture = trainer.renderer().render(trainer.scene.camera(0).look_at((1, 2, 3), (0, 0, 0)))
evaluation = vknerf.evaluate("run", split="test", background=vknerf.Background.WHITE)
names: list[str] = [view.name for view in evaluation.views]
vknerf.evaluate("run", strid=3)
END
# One error in all, in the program's last line: none in the package, which mypy reads too. The cache is for NumPy's hints.
MYPYPATH=$work/installed mypy --strict --cache-dir "$build/mypy_cache" use.py >out 2>&1
[ "$(grep -c error: out)" = 1 ] || fail "mypy: $(cat out)"
grep -q '^use.py:9: error: Unexpected keyword argument "strid"' out || fail "mypy finds no wrong argument: $(cat out)"
"$python" "$source/tests/python/layouts.py" "$source/include" >out 2>&1 || fail "layouts.py: $(cat out)"
"$source/tools/run_test.sh" "$python" "$source/tests/python/package.py" >out 2>&1 || fail "package.py: $(cat out)"
"$source/tools/run_test.sh" "$python" "$source/tests/python/run_notebook.py" "$source"/python/notebooks/*.ipynb \
    >out 2>&1 || fail "run_notebook.py: $(cat out)"
VKNERF_LIBRARY=/nowhere.so "$python" -c 'import vknerf' >out 2>&1 && fail "the package loads without a library"
grep -q '^ImportError: /nowhere.so: .*VKNERF_LIBRARY' out || fail "without a library: $(cat out)"

[ "$failures" = 0 ]
