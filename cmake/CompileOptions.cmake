# Defines the target vknerf-options: compiler and linker options of all C code of the project.

add_library(vknerf-options INTERFACE)
target_compile_options(vknerf-options INTERFACE -Wall -Wextra)
# With code of sanitizers or tracing gcc warns falsely about truncation and uninitialised values.
if(VKNERF_SANITIZE OR VKNERF_TRACE)
    if(CMAKE_C_COMPILER_ID STREQUAL GNU)
        target_compile_options(vknerf-options INTERFACE
            -Wno-format-truncation -Wno-maybe-uninitialized -Wno-stringop-overflow)
    endif()
endif()
if(VKNERF_WERROR AND NOT VKNERF_SANITIZE)
    target_compile_options(vknerf-options INTERFACE -Werror)
endif()
# Strict C11 hides POSIX and M_PI. _GNU_SOURCE is defined only in files that need it: with it <math.h> declares every
# function for eight types instead of three, which takes a tenth of a file's compile time.
target_compile_definitions(vknerf-options INTERFACE _XOPEN_SOURCE=700 _DEFAULT_SOURCE)

if(VKNERF_SANITIZE)
    string(REPLACE ";" "," sanitizers "${VKNERF_SANITIZE}")
    # Compiling this code takes longer than the tests that run it, so optimisation does not pay.
    set(optimization -O0)
    if(VKNERF_ALL_TESTS OR VKNERF_FUZZ OR VKNERF_SANITIZE STREQUAL thread)
        set(optimization -O1)
    endif()
    target_compile_options(vknerf-options INTERFACE
        -fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 ${optimization})
    target_link_options(vknerf-options INTERFACE -fsanitize=${sanitizers})
    if(NOT VKNERF_SANITIZE STREQUAL thread) # ThreadSanitizer needs position-independent programs
        # UndefinedBehaviorSanitizer has 10 MB of data with pointers. In a position-independent program the loader
        # relocates the pointers at each start, which takes a third of the time of a short command.
        target_link_options(vknerf-options INTERFACE
            $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
    endif()
    add_library(keep-loaded OBJECT ${CMAKE_CURRENT_LIST_DIR}/keep_loaded.c)
    target_link_libraries(vknerf-options INTERFACE $<TARGET_OBJECTS:keep-loaded>)
    if(tool_root)
        # Stack traces of sanitizers are wrong in a program that is passed to its loader. This build, which is for
        # this machine only, therefore has the tool root's loader as its interpreter.
        target_link_options(vknerf-options INTERFACE
            -Wl,--dynamic-linker=${tool_root_loader}
            -Wl,--disable-new-dtags,-rpath,${tool_root_libraries}
            -Wl,--allow-shlib-undefined)
    endif()
endif()

# Records for tools/changed.py which code a test executes.
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
