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
    target_include_directories(vknerf-options INTERFACE ${posix_headers})
    target_compile_options(vknerf-options INTERFACE "SHELL:-include ${PROJECT_SOURCE_DIR}/src/windows/posix.h")
    target_include_directories(vknerf-options INTERFACE ${PROJECT_SOURCE_DIR}/src)
    # printf as in C11 with 64-bit sizes; the functions of Windows 10.
    target_compile_definitions(vknerf-options INTERFACE __USE_MINGW_ANSI_STDIO=1 _FILE_OFFSET_BITS=64
        _GNU_SOURCE= _WIN32_WINNT=0x0A00 WIN32_LEAN_AND_MEAN)
    # Random numbers and sockets.
    target_link_libraries(vknerf-options INTERFACE advapi32 ws2_32)
    # Programs need no DLL but those of the system.
    target_link_options(vknerf-options INTERFACE -static)
endif()
