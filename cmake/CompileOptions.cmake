# vknerf-options: what all of our C is compiled and linked with.

add_library(vknerf-options INTERFACE)
target_compile_options(vknerf-options INTERFACE -Wall -Wextra)
# Sanitizers' and tracing's code makes gcc see truncation and uninitialised values where there are none.
if(VKNERF_SANITIZE OR VKNERF_TRACE)
    if(CMAKE_C_COMPILER_ID STREQUAL GNU)
        target_compile_options(vknerf-options INTERFACE
            -Wno-format-truncation -Wno-maybe-uninitialized -Wno-stringop-overflow)
    endif()
endif()
if(VKNERF_WERROR AND NOT VKNERF_SANITIZE)
    target_compile_options(vknerf-options INTERFACE -Werror)
endif()
# Strict C11 hides POSIX and M_PI. A file that needs more defines _GNU_SOURCE, with which <math.h> declares every function
# for eight types instead of three: a tenth of the time that a file takes to compile.
target_compile_definitions(vknerf-options INTERFACE _XOPEN_SOURCE=700 _DEFAULT_SOURCE)

if(VKNERF_SANITIZE)
    string(REPLACE ";" "," sanitizers "${VKNERF_SANITIZE}")
    # The suite compiles this code for longer than it runs it: optimisation does not pay there.
    set(optimization -O0)
    if(VKNERF_ALL_TESTS OR VKNERF_FUZZ OR VKNERF_SANITIZE STREQUAL thread)
        set(optimization -O1)
    endif()
    target_compile_options(vknerf-options INTERFACE
        -fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 ${optimization})
    target_link_options(vknerf-options INTERFACE -fsanitize=${sanitizers})
    if(NOT VKNERF_SANITIZE STREQUAL thread) # ThreadSanitizer needs position-independent programs
        # UndefinedBehaviorSanitizer keeps 10 MB of data with pointers. In a position-independent program the loader
        # relocates them at each start, which is a third of the time of a short command.
        target_link_options(vknerf-options INTERFACE
            $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
    endif()
    add_library(keep-loaded OBJECT ${CMAKE_CURRENT_LIST_DIR}/keep_loaded.c)
    target_link_libraries(vknerf-options INTERFACE $<TARGET_OBJECTS:keep-loaded>)
    if(tool_root)
        # Sanitizers read their stack traces wrongly in a program that its loader is told to start;
        # so this build, which never leaves the machine, names the tool root's loader as its own.
        target_link_options(vknerf-options INTERFACE
            -Wl,--dynamic-linker=${tool_root_loader}
            -Wl,--disable-new-dtags,-rpath,${tool_root_libraries}
            -Wl,--allow-shlib-undefined)
    endif()
endif()

# What tools/changed.py learns from which code a test executes.
if(VKNERF_TRACE)
    add_library(trace OBJECT ${PROJECT_SOURCE_DIR}/tests/trace.c)
    set_target_properties(trace PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_definitions(trace PRIVATE _GNU_SOURCE=)
    target_compile_definitions(vknerf-options INTERFACE VKNERF_TRACE=1)
    target_compile_options(vknerf-options INTERFACE -finstrument-functions -g1)
    target_link_libraries(vknerf-options INTERFACE $<TARGET_OBJECTS:trace>)
endif()

if(VKNERF_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
        message(FATAL_ERROR "VKNERF_FUZZ needs clang: -DCMAKE_C_COMPILER=clang")
    endif()
    target_compile_options(vknerf-options INTERFACE -fsanitize=fuzzer-no-link)
    target_link_options(vknerf-options INTERFACE -fsanitize=fuzzer-no-link)
endif()
