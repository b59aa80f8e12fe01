# Finds dependencies and defines the targets vknerf-vulkan, vknerf-cjson, vknerf-stb, vknerf-png, vknerf-jpeg and
# vknerf-expat.

find_package(Threads REQUIRED)

# ---- Vulkan headers and volk ---------------------------------------------------------------------
# Only headers: volk is compiled into src/gpu, and libvulkan is loaded at run time.

# The first version with cooperative matrices.
set(needed_headers 1.3.255)

function(read_vulkan_version include_dir result)
    set(version 0)
    set(core ${include_dir}/vulkan/vulkan_core.h)
    if(EXISTS ${core})
        file(STRINGS ${core} lines REGEX "^#define VK_HEADER_VERSION(_COMPLETE)? ")
        if("${lines}" MATCHES "VK_HEADER_VERSION ([0-9]+)")
            set(patch ${CMAKE_MATCH_1})
        endif()
        if("${lines}" MATCHES "VK_MAKE_API_VERSION\\(0, *([0-9]+), *([0-9]+)")
            set(version ${CMAKE_MATCH_1}.${CMAKE_MATCH_2}.${patch})
        endif()
    endif()
    set(${result} ${version} PARENT_SCOPE)
endfunction()

find_path(VKNERF_VULKAN_INCLUDE vulkan/vulkan_core.h)
find_path(VKNERF_VOLK_INCLUDE volk.h PATH_SUFFIXES volk Volk)
set(vulkan_include ${VKNERF_VULKAN_INCLUDE})
set(volk_include ${VKNERF_VOLK_INCLUDE})
read_vulkan_version("${vulkan_include}" vulkan_version)
if(vulkan_version VERSION_LESS needed_headers AND tool_root)
    # Both from the same folder, because volk only has the functions of its own version of the headers.
    set(vulkan_include ${tool_root}/usr/include)
    set(volk_include ${tool_root}/usr/include)
    read_vulkan_version(${vulkan_include} vulkan_version)
endif()
if(vulkan_version VERSION_LESS needed_headers OR NOT EXISTS "${volk_include}/volk.h")
    message(FATAL_ERROR "vknerf needs volk and Vulkan headers ${needed_headers} or newer (found "
        "${vulkan_version}): install libvulkan-dev and libvulkan-volk-dev, or run tools/setup.sh")
endif()
message(STATUS "Vulkan headers ${vulkan_version}: ${vulkan_include}")

add_library(vknerf-vulkan INTERFACE)
set(vulkan_includes ${volk_include} ${vulkan_include})
list(REMOVE_DUPLICATES vulkan_includes)
# The compiler's default folder must not be named: it would precede the C library's.
list(REMOVE_ITEM vulkan_includes /usr/include)
target_include_directories(vknerf-vulkan SYSTEM INTERFACE ${vulkan_includes})

# add_dependency(NAME INCLUDE LIBRARY ...): defines the target vknerf-NAME.
function(add_dependency name include)
    add_library(vknerf-${name} INTERFACE)
    list(REMOVE_ITEM include /usr/include) # see above
    target_include_directories(vknerf-${name} SYSTEM INTERFACE ${include})
    target_link_libraries(vknerf-${name} INTERFACE ${ARGN})
endfunction()

# ---- cJSON ---------------------------------------------------------------------------------------

find_path(VKNERF_CJSON_INCLUDE cjson/cJSON.h)
find_library(VKNERF_CJSON_LIBRARY NAMES libcjson.a cjson)
if(NOT VKNERF_CJSON_INCLUDE OR NOT VKNERF_CJSON_LIBRARY)
    message(FATAL_ERROR "vknerf needs cJSON: install libcjson-dev")
endif()
add_dependency(cjson ${VKNERF_CJSON_INCLUDE} ${VKNERF_CJSON_LIBRARY})

# ---- stb -----------------------------------------------------------------------------------------

find_path(VKNERF_STB_INCLUDE stb_image.h PATH_SUFFIXES stb)
if(NOT VKNERF_STB_INCLUDE)
    message(FATAL_ERROR "vknerf needs the stb headers: install libstb-dev")
endif()
add_library(vknerf-stb INTERFACE)
target_include_directories(vknerf-stb SYSTEM INTERFACE ${VKNERF_STB_INCLUDE})

# ---- libpng --------------------------------------------------------------------------------------
# Static if available, so that the program also runs on machines without libpng.

find_path(VKNERF_PNG_INCLUDE png.h)
find_library(VKNERF_PNG_LIBRARY NAMES libpng.a png)
find_library(VKNERF_Z_LIBRARY NAMES libz.a z)
if(NOT VKNERF_PNG_INCLUDE OR NOT VKNERF_PNG_LIBRARY OR NOT VKNERF_Z_LIBRARY)
    message(FATAL_ERROR "vknerf needs libpng: install libpng-dev")
endif()
add_dependency(png ${VKNERF_PNG_INCLUDE} ${VKNERF_PNG_LIBRARY} ${VKNERF_Z_LIBRARY} m)

# ---- libjpeg-turbo -------------------------------------------------------------------------------
# Static if available, as libpng.

find_path(VKNERF_JPEG_INCLUDE jpeglib.h)
find_library(VKNERF_JPEG_LIBRARY NAMES libjpeg.a jpeg)
if(NOT VKNERF_JPEG_INCLUDE OR NOT VKNERF_JPEG_LIBRARY)
    message(FATAL_ERROR "vknerf needs libjpeg-turbo: install libjpeg-dev")
endif()
add_dependency(jpeg ${VKNERF_JPEG_INCLUDE} ${VKNERF_JPEG_LIBRARY})

# ---- libexpat ------------------------------------------------------------------------------------
# Loaded at run time where the system has a package of it; part of the program for Windows.

add_library(vknerf-expat INTERFACE)
if(WIN32)
    find_path(VKNERF_EXPAT_INCLUDE expat.h)
    find_library(VKNERF_EXPAT_LIBRARY NAMES libexpat.a)
    if(NOT VKNERF_EXPAT_INCLUDE OR NOT VKNERF_EXPAT_LIBRARY)
        message(FATAL_ERROR "vknerf for Windows needs a static libexpat: run tools/windows.sh")
    endif()
    target_include_directories(vknerf-expat SYSTEM INTERFACE ${VKNERF_EXPAT_INCLUDE})
    target_compile_definitions(vknerf-expat INTERFACE XML_STATIC)
    target_link_libraries(vknerf-expat INTERFACE ${VKNERF_EXPAT_LIBRARY})
endif()
