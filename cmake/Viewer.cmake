# Adds the viewer (src/viewer) to the program if microhttpd.h is found; libmicrohttpd itself is loaded at run time.

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

# Adds the viewer to the program TARGET, or a stub that prints that there is none.
function(vknerf_add_viewer target)
    set(folder ${PROJECT_SOURCE_DIR}/src/viewer)
    if(NOT VKNERF_VIEWER)
        target_sources(${target} PRIVATE ${folder}/stub.c)
        message(STATUS "No viewer: install libmicrohttpd-dev to build it")
        return()
    endif()
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.c)
    list(REMOVE_ITEM sources ${folder}/stub.c)
    # The library does not export its module pixels, so the viewer has its own copy.
    target_sources(${target} PRIVATE ${sources} ${PROJECT_SOURCE_DIR}/src/pixels/jpeg.c)
    if(NOT VKNERF_MICROHTTPD_INCLUDE STREQUAL "/usr/include") # the compiler's default folder must not be named
        target_include_directories(${target} SYSTEM PRIVATE ${VKNERF_MICROHTTPD_INCLUDE})
    endif()
    vknerf_embed_page(${target})
endfunction()
