# The viewer of the program (src/viewer), where the header of libmicrohttpd is, which it loads when it starts.

include(Page)
find_path(VKNERF_MICROHTTPD_INCLUDE microhttpd.h)
set(have_viewer OFF)
if(VKNERF_MICROHTTPD_INCLUDE)
    set(have_viewer ON)
endif()
option(VKNERF_VIEWER "Build the viewer (needs libmicrohttpd-dev)" ${have_viewer})
if(VKNERF_VIEWER AND NOT have_viewer)
    message(FATAL_ERROR "VKNERF_VIEWER needs libmicrohttpd: install libmicrohttpd-dev")
endif()

# Adds it to the program TARGET, or what says that it is not there.
function(vknerf_add_viewer target)
    set(folder ${PROJECT_SOURCE_DIR}/src/viewer)
    if(NOT VKNERF_VIEWER)
        target_sources(${target} PRIVATE ${folder}/stub.c)
        message(STATUS "Without the viewer: with libmicrohttpd-dev there is one")
        return()
    endif()
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.c)
    list(REMOVE_ITEM sources ${folder}/stub.c)
    # The library shows nothing of its module pixels, so the viewer has its own.
    target_sources(${target} PRIVATE ${sources} ${PROJECT_SOURCE_DIR}/src/pixels/jpeg.c)
    if(NOT VKNERF_MICROHTTPD_INCLUDE STREQUAL "/usr/include") # the compiler's own must not be named
        target_include_directories(${target} SYSTEM PRIVATE ${VKNERF_MICROHTTPD_INCLUDE})
    endif()
    vknerf_embed_page(${target})
endfunction()
