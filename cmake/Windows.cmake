# What builds for Windows need: src/windows, which has the functions of POSIX that mingw-w64 lacks.
# Every source file FILE_windows.c replaces FILE.c there, and is left out elsewhere.

# Leaves the files of the other system out of the list `name`.
function(vknerf_choose_system name)
    set(chosen ${${name}})
    list(FILTER chosen EXCLUDE REGEX "_windows\\.c$")
    if(WIN32)
        foreach(file IN LISTS ${name})
            if(file MATCHES "_windows\\.c$")
                string(REPLACE "_windows.c" ".c" replaced ${file})
                list(REMOVE_ITEM chosen ${replaced})
                list(APPEND chosen ${file})
            endif()
        endforeach()
    endif()
    set(${name} ${chosen} PARENT_SCOPE)
endfunction()

if(WIN32)
    # Headers of POSIX that mingw-w64 lacks. src/windows/posix.h, in front of every file, declares what they would.
    set(posix_headers ${PROJECT_BINARY_DIR}/posix_headers)
    foreach(header dlfcn.h dirent.h sys/file.h sys/ioctl.h sys/random.h)
        file(WRITE ${posix_headers}/${header} "")
    endforeach()
    foreach(header poll.h netdb.h arpa/inet.h netinet/in.h sys/socket.h)
        file(WRITE ${posix_headers}/${header} "#include \"windows/sockets.h\"\n")
    endforeach()
    # Winsock declares a function of this name with another type.
    file(WRITE ${posix_headers}/winsock2.h
        "#undef gethostname\n#include_next <winsock2.h>\n#define gethostname windows_gethostname\n")
    # printf as in C11 with 64-bit sizes; the functions of Windows 10.
    set(windows_options -I${posix_headers} -I${PROJECT_SOURCE_DIR}/src
        -include ${PROJECT_SOURCE_DIR}/src/windows/posix.h -D__USE_MINGW_ANSI_STDIO=1 -D_FILE_OFFSET_BITS=64
        -D_GNU_SOURCE= -D_WIN32_WINNT=0x0A00 -DWIN32_LEAN_AND_MEAN)
    string(REPLACE ";" " " shell_options "${windows_options}")
    target_compile_options(vknerf-options INTERFACE "SHELL:${shell_options}")
    # For programs of the build and of the tests that use no other sources.
    file(GLOB windows_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/windows/*.c)
    # Random numbers and sockets.
    set(windows_libraries -ladvapi32 -lws2_32)
    target_link_libraries(vknerf-options INTERFACE ${windows_libraries})
    # Programs need no DLL but those of the system.
    target_link_options(vknerf-options INTERFACE -static)
endif()
