# Defines vknerf-shared and vknerf-static, the installed libraries, which export only the functions of include/vknerf/.
# Tests link vknerf-core instead, because they call internal functions.

# Shared dependencies: static ones may not be position-independent, and their functions would be exported. A DLL
# contains its dependencies.
if(WIN32)
    set(library_dependencies vknerf-cjson vknerf-expat vknerf-png vknerf-jpeg)
else()
    find_library(VKNERF_CJSON_SHARED_LIBRARY NAMES libcjson.so cjson)
    find_library(VKNERF_PNG_SHARED_LIBRARY NAMES libpng.so png)
    find_library(VKNERF_Z_SHARED_LIBRARY NAMES libz.so z)
    find_library(VKNERF_JPEG_SHARED_LIBRARY NAMES libjpeg.so jpeg)
    set(library_dependencies ${VKNERF_CJSON_SHARED_LIBRARY} ${VKNERF_PNG_SHARED_LIBRARY} ${VKNERF_Z_SHARED_LIBRARY}
        ${VKNERF_JPEG_SHARED_LIBRARY})
endif()
set(library_needs Threads::Threads ${CMAKE_DL_LIBS} m)

add_library(vknerf-shared SHARED $<TARGET_OBJECTS:vknerf-core>)
if(VKNERF_SANITIZE)
    set_target_properties(vknerf-shared PROPERTIES EXCLUDE_FROM_ALL ON) # no test uses it
endif()
set_target_properties(vknerf-shared PROPERTIES OUTPUT_NAME vknerf VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE C)
target_include_directories(vknerf-shared INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(vknerf-shared PRIVATE ${library_dependencies} ${library_needs} $<BUILD_INTERFACE:vknerf-options>)
if(WIN32)
    # The DLL exports the functions of include/vknerf/; without a list it would export all.
    file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/vknerf/*.h)
    set(exports "EXPORTS\n")
    foreach(header IN LISTS headers)
        file(READ ${header} text)
        string(REGEX MATCHALL "\nVKN_API [^;({]*[ *](vkn_[a-z0-9_]+)\\(" functions "${text}")
        foreach(function IN LISTS functions)
            string(REGEX REPLACE ".*[ *](vkn_[a-z0-9_]+)\\(" "    \\1\n" function "${function}")
            string(APPEND exports "${function}")
        endforeach()
    endforeach()
    file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/vknerf.def CONTENT "${exports}")
    target_sources(vknerf-shared PRIVATE ${PROJECT_BINARY_DIR}/vknerf.def)
elseif(NOT VKNERF_SANITIZE)
    # The functions of sanitizers are defined in programs, not in libraries.
    target_link_options(vknerf-shared PRIVATE -Wl,--no-undefined -Wl,--exclude-libs,ALL)
endif()

add_library(vknerf-static INTERFACE)
target_include_directories(vknerf-static INTERFACE ${PROJECT_SOURCE_DIR}/include)
if(WIN32)
    target_link_libraries(vknerf-static INTERFACE vknerf-core) # objects of Windows have no hidden symbols
    return()
endif()

# An archive of one object with local hidden symbols; symbols shared by several objects would be visible to users.
set(static_object ${PROJECT_BINARY_DIR}/vknerf.o)
set(static_archive ${PROJECT_BINARY_DIR}/libvknerf.a)
add_custom_command(OUTPUT ${static_archive}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${static_archive}
    COMMAND ${CMAKE_LINKER} -r -o ${static_object} $<TARGET_OBJECTS:vknerf-core>
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${static_object}
    COMMAND ${CMAKE_AR} rcs ${static_archive} ${static_object}
    COMMAND ${CMAKE_COMMAND} -E rm ${static_object}
    DEPENDS vknerf-core $<TARGET_OBJECTS:vknerf-core>
    COMMAND_EXPAND_LISTS VERBATIM COMMENT "libvknerf.a")
add_custom_target(vknerf-static-archive ALL DEPENDS ${static_archive})
add_dependencies(vknerf-static vknerf-static-archive)
target_link_libraries(vknerf-static INTERFACE ${static_archive} vknerf-cjson vknerf-png vknerf-jpeg ${library_needs})
