"""Tests failure of every Vulkan call of a short training, once with each result that the specification allows."""
import os

import faults

HOLDS = """A training that fails says so in one line that names the call, leaves no temporary files and a valid
checkpoint or none, and the run can be evaluated, reported and resumed. Failures of naming, timing and caching change
nothing; whatever training has to do without is warned of."""
SHORT = 3

HOST, MEMORY, INITIALIZATION, LOST, MAP = -1, -2, -3, -4, -5
LAYER, EXTENSION, FEATURE, DRIVER, OBJECTS, FRAGMENTED, UNKNOWN = -6, -7, -8, -9, -10, -12, -13
POOL, FRAGMENTATION, SHADER = -1000069000, -1000161000, -1000012000
TIMEOUT, INCOMPLETE = 2, 5
# Results besides out of host or device memory and unknown error, which any call may return.
RESULTS = {"vkCreateInstance": (INITIALIZATION, LAYER, EXTENSION, DRIVER),
           "vkCreateDevice": (INITIALIZATION, LOST, EXTENSION, FEATURE, OBJECTS),
           "vkEnumeratePhysicalDevices": (INITIALIZATION, INCOMPLETE),
           "vkEnumerateDeviceExtensionProperties": (LAYER, INCOMPLETE),
           "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR": (INCOMPLETE,),
           "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT": (INCOMPLETE,),
           "vkQueueSubmit": (LOST,), "vkWaitForFences": (LOST, TIMEOUT), "vkDeviceWaitIdle": (LOST,),
           "vkAllocateMemory": (OBJECTS,), "vkMapMemory": (MAP,), "vkGetPipelineCacheData": (INCOMPLETE,),
           "vkCreateDescriptorPool": (FRAGMENTATION,), "vkAllocateDescriptorSets": (FRAGMENTED, POOL),
           "vkCreateShaderModule": (SHADER,), "vkCreateComputePipelines": (SHADER,),
           "vkCreateShadersEXT": (INITIALIZATION,), "vkGetShaderBinaryDataEXT": (INCOMPLETE,)}
# Options that make a training use certain calls: pipelines on CPU devices, and every shader from SPIR-V, which would
# replace a failing binary.
SWITCHES = {"vkCreateShaderModule": "shader_objects", "vkCreateComputePipelines": "shader_objects",
            "vkCreateShadersEXT": "pipeline_cache"}
# Calls that a training can do without.
HARMLESS = ("vkGetPipelineCacheData", "vkGetShaderBinaryDataEXT", "vkSetDebugUtilsObjectNameEXT", "vkGetCalibratedTimestampsEXT", "vkDeviceWaitIdle",
            "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR", "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT")
# Calls that loaders make themselves, within another call.
WITHIN = {"vkEnumerateDeviceExtensionProperties": "vkCreateDevice", "vkEnumeratePhysicalDevices": "vkCreateInstance"}
# One in this many calls is a case, besides the first and the last, for results that do not run out one after the other.
EVERY = {"vkSetDebugUtilsObjectNameEXT": 40}
# One in this many cases continues the run afterwards.
GO_ON_EVERY = 8


def write_manifest(folder):
    """Writes the file by which loaders find the layer, complete at any time."""
    manifest = {"file_format_version": "1.1.2",
                "layer": {"name": "VK_LAYER_vknerf_fault", "type": "GLOBAL", "library_path": faults.library("vkfault"),
                          "api_version": "1.3.250", "implementation_version": "1", "description": "fails the Nth call"}}
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "vkfault.json")
    if not os.path.exists(path):
        faults.write_json(f"{path}.{os.getpid()}", manifest)
        os.replace(f"{path}.{os.getpid()}", path)
    return folder


def injection(sandbox, call=None, number=0, result=0, sticky=0, counts=None):
    """Returns the environment in which a call fails."""
    changes = {"VK_ADD_LAYER_PATH": write_manifest(sandbox.shared.path("layers")),
               "VK_INSTANCE_LAYERS": "VK_LAYER_vknerf_fault", "VKFAULT_N": str(number), "VKFAULT_RESULT": str(result),
               "VKFAULT_STICKY": str(sticky)}
    if call in SWITCHES:
        changes["VKNERF_DISABLE"] = SWITCHES[call]
    return {**changes, **({"VKFAULT_CALL": call} if call else {}), **({"VKFAULT_COUNTS": counts} if counts else {})}


def count_calls(shared):
    """Returns how often a training without faults makes each call."""
    plain = count_calls_of(shared, None)
    return {**count_calls_of(shared, "vkCreateComputePipelines"), **plain}


def count_calls_of(shared, call):
    """Returns the same for a training that makes `call`."""
    listing = shared.path("vulkan.calls")
    problems = faults.check_ended(shared.train(env=injection(shared, call, counts=listing)), (faults.DONE,))
    faults.remove(shared.path("run"))
    text = faults.read_file(listing)
    if problems or not text:
        raise faults.Broken(f"counting calls: {problems[0] if problems else 'the layer is not loaded'}")
    return {name: int(count) for name, count in (line.split() for line in text.decode().splitlines())}


def results_of(call):
    """Returns every result of a call except success."""
    return [HOST, MEMORY, UNKNOWN, *RESULTS.get(call, ())]


def cases(shared):
    found = []
    for call, count in sorted(count_calls(shared).items()):
        numbers = sorted({1, count, *range(1, count + 1, EVERY.get(call, 1))})
        found += [[call, number, result, 0] for number in numbers for result in results_of(call)]
    # Memory that has run out stays so.
    last = max(number for call, number, _, _ in found if call == "vkAllocateMemory")
    return found + [["vkAllocateMemory", number, MEMORY, 1] for number in range(1, last + 1)]


def pick(rnd, found, count):
    """Takes first and last calls of all functions, with any result."""
    ends = {}
    for case in found:
        numbers = ends.setdefault(case[0], set())
        numbers.add(case[1])
    extremes = [case for case in found if case[1] in (min(ends[case[0]]), max(ends[case[0]]))]
    chosen = rnd.sample(sorted(ends), min(count, len(ends)))
    return [rnd.choice([case for case in extremes if case[0] == call]) for call in chosen]


def check_message(ended, call):
    """Returns problems of a failing training's message: one line, which names the call or its meaning."""
    lines = [line for line in ended.err.splitlines() if not line.startswith("warning: ")]
    names = (call, WITHIN.get(call, call), "out of memory on", "no Vulkan driver found")
    named = any(name in ended.last_line() for name in names)
    problems = [] if len(lines) == 1 else [f"{len(lines)} lines instead of one: {ended.err[-400:]!r}"]
    return problems + ([] if named else [f"does not name {call}: {ended.last_line()}"])


def try_case(case, sandbox):
    call, number, result, sticky = case
    run = sandbox.path("run")
    harmless = call in HARMLESS or (result > 0 and call not in WITHIN)
    # A wait may only check whether there is a message to print; the next one fails.
    quiet = harmless or result > 0 or call == "vkWaitForFences"
    ended = sandbox.train(env=injection(sandbox, call, number, result, sticky))
    problems = faults.check_ended(ended, (faults.DONE, *(() if harmless else (faults.FAILED, faults.NO_DEVICE))))
    step, wrong = faults.check_run(run)
    problems += wrong
    if ended.code == faults.DONE:
        problems += faults.check_finished(run)
        if not quiet and call not in ended.err and "out of memory on" not in ended.err:
            problems.append(f"done without a word of {call}: {ended.err[-300:]!r}")
    elif not problems:
        problems += check_message(ended, call)
    if not problems and ended.code != faults.DONE and sandbox.rnd.randrange(GO_ON_EVERY) == 0:
        problems += faults.check_goes_on(sandbox, run, step)
    return faults.Outcome(problems, {"code": ended.code, "step": step, "said": ended.last_line()})
