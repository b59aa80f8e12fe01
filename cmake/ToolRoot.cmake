# Finds the private tool root, which tools/setup.sh makes if the distribution's shaderc or lavapipe is
# too old. Sets
#   tool_root          its folder; empty if there is none
#   tool_root_loader   its dynamic loader
#   tool_root_libraries  the folder of its libraries
#   tool_root_run      command that runs a program with the tool root's libraries

set(default_tool_root ${PROJECT_SOURCE_DIR}/build/toolroot)
if(DEFINED ENV{VKNERF_TOOL_ROOT})
    set(default_tool_root $ENV{VKNERF_TOOL_ROOT})
endif()
set(VKNERF_TOOL_ROOT ${default_tool_root} CACHE PATH
    "Tool root made by tools/setup.sh; used when it exists")

set(tool_root "")
set(tool_root_run "")
if(EXISTS ${VKNERF_TOOL_ROOT}/.complete)
    file(GLOB tool_root_loader ${VKNERF_TOOL_ROOT}/usr/lib/*/ld-linux-*.so.[0-9])
    if(tool_root_loader)
        set(tool_root ${VKNERF_TOOL_ROOT})
        get_filename_component(tool_root_libraries ${tool_root_loader} DIRECTORY)
        set(tool_root_run ${tool_root_loader} --library-path ${tool_root_libraries})
        message(STATUS "Tool root: ${tool_root}")
    endif()
endif()
