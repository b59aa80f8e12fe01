# Builds for Windows with mingw-w64: cmake -DCMAKE_TOOLCHAIN_FILE=cmake/mingw-w64.cmake ...
# tools/windows.sh makes the folders of build/windows: libraries that the project needs, and Wine, which runs tests.

set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(mingw x86_64-w64-mingw32)
set(CMAKE_C_COMPILER ${mingw}-gcc-posix)
set(CMAKE_CXX_COMPILER ${mingw}-g++-posix)
set(CMAKE_RC_COMPILER ${mingw}-windres)
# Programs need no DLL of the compiler, such as libwinpthread-1.dll.
foreach(kind IN ITEMS EXE SHARED MODULE)
    set(CMAKE_${kind}_LINKER_FLAGS_INIT -static)
endforeach()

set(windows_dir ${CMAKE_CURRENT_LIST_DIR}/../build/windows)
if(NOT CMAKE_PREFIX_PATH)
    get_filename_component(CMAKE_PREFIX_PATH ${windows_dir}/prefix ABSOLUTE)
endif()
# pkg-config would find libraries of this machine.
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_PREFIX_PATH}/lib/pkgconfig)
if(EXISTS ${windows_dir}/root/.complete)
    get_filename_component(CMAKE_CROSSCOMPILING_EMULATOR ${CMAKE_CURRENT_LIST_DIR}/../tools/wine.sh ABSOLUTE)
endif()

# Programs of this machine; libraries and headers of Windows only.
set(CMAKE_FIND_ROOT_PATH /usr/${mingw} ${CMAKE_PREFIX_PATH})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
