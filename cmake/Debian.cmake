# cpack: Debian packages of what is installed. vknerf is the program with its documents, libvknerf0 the library,
# libvknerf-dev what programs are built with, vknerf-mpi the module for several machines where it is built.
# `cpack --config build/CPackConfig.cmake` writes them into build/packages; tools/package.sh does all of it.

find_program(VKNERF_GZIP gzip)
mark_as_advanced(VKNERF_GZIP)
if(NOT VKNERF_GZIP)
    return()
endif()

# Whoever builds packages for others names themselves: -DVKNERF_MAINTAINER="NAME <ADDRESS>".
set(VKNERF_MAINTAINER "the authors of vknerf <vknerf@localhost>" CACHE STRING "Maintainer of the Debian packages")
set(CPACK_PACKAGE_CONTACT ${VKNERF_MAINTAINER})
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME vknerf)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # which would stand before each package's own
set(CPACK_PACKAGE_VENDOR vknerf)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)

# What Debian wants in a form of its own: the man page and changelogs compressed, a copyright file each.
list(GET man_sources 0 readme)
file(TIMESTAMP ${readme} changelog_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${PROJECT_BINARY_DIR}/debian/changelog.Debian
    "vknerf (${PROJECT_VERSION}-1) unstable; urgency=medium\n\n  * What has changed is in CHANGELOG.md of the package vknerf.\n\n"
    " -- ${CPACK_PACKAGE_CONTACT}  ${changelog_date}\n")
execute_process(COMMAND ${VKNERF_GZIP} -9nkf ${PROJECT_BINARY_DIR}/debian/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
if(TARGET vknerf-man)
    add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/debian/vknerf.1.gz
        COMMAND ${VKNERF_GZIP} -9nc ${PROJECT_BINARY_DIR}/vknerf.1 > ${PROJECT_BINARY_DIR}/debian/vknerf.1.gz
        DEPENDS ${PROJECT_BINARY_DIR}/vknerf.1 COMMENT "vknerf.1.gz" VERBATIM)
    add_custom_target(vknerf-man-compressed ALL DEPENDS ${PROJECT_BINARY_DIR}/debian/vknerf.1.gz)
    add_dependencies(installed vknerf-man-compressed)
    install(FILES ${PROJECT_BINARY_DIR}/debian/vknerf.1.gz
        DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT debian-vknerf EXCLUDE_FROM_ALL)
endif()
# Debian's zsh looks into a folder of its own for what packages bring.
install(FILES completions/_vknerf
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT debian-vknerf EXCLUDE_FROM_ALL)

set(line "neural radiance fields on any Vulkan device")
set(about "vknerf trains neural radiance fields through Vulkan compute: photographs with
known cameras go in; a radiance field, its pictures, its measured quality and
the speed of every pass come out. Without a GPU it trains on the processor.")
set(components)

# NAME SECTION LINE PARAGRAPH COMPONENT ...: a package, a line and a paragraph that describe it, what goes into it.
function(add_package name section line paragraph)
    string(TOUPPER ${name} group)
    install(FILES ${PROJECT_SOURCE_DIR}/cmake/debian/copyright ${PROJECT_BINARY_DIR}/debian/changelog.Debian.gz
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT debian-${name} EXCLUDE_FROM_ALL)
    foreach(component IN LISTS ARGN ITEMS debian-${name})
        string(TOUPPER ${component} upper)
        set(CPACK_COMPONENT_${upper}_GROUP ${name} PARENT_SCOPE)
    endforeach()
    set(components ${components} ${ARGN} debian-${name} PARENT_SCOPE)
    set(CPACK_DEBIAN_${group}_PACKAGE_NAME ${name} PARENT_SCOPE)
    set(CPACK_DEBIAN_${group}_PACKAGE_SECTION ${section} PARENT_SCOPE)
    set(CPACK_DEBIAN_${group}_DESCRIPTION "${line}\n${about}\n.\n${paragraph}" PARENT_SCOPE)
endfunction()

add_package(vknerf graphics "${line}"
    "This package has the program, its manual and a scene to try it with." program assets documents completions)
add_package(libvknerf0 libs "${line} (library)" "This package has the shared library." library)
add_package(libvknerf-dev libdevel "${line} (development)"
    "This package has what programs are built with: headers, a static library,\nfiles of pkg-config and CMake."
    development)
if(TARGET vknerf-mpi)
    add_package(vknerf-mpi graphics "${line} (MPI)"
        "This package has the module for training on several machines by mpirun." mpi)
endif()
set(CPACK_COMPONENTS_ALL ${components})

# Loaders that are loaded when they are needed are not seen by dpkg-shlibdeps.
set(CPACK_DEBIAN_VKNERF_PACKAGE_DEPENDS libvulkan1)
set(CPACK_DEBIAN_LIBVKNERF0_PACKAGE_DEPENDS libvulkan1)
set(pictures "libwebp7, libtiff6")
set(CPACK_DEBIAN_VKNERF_PACKAGE_RECOMMENDS "mesa-vulkan-drivers | vulkan-icd, ffmpeg, colmap, \
libmicrohttpd12 | libmicrohttpd12t64, ${pictures}")
set(CPACK_DEBIAN_VKNERF_PACKAGE_SUGGESTS vknerf-mpi)
set(CPACK_DEBIAN_LIBVKNERF0_PACKAGE_RECOMMENDS "mesa-vulkan-drivers | vulkan-icd, ${pictures}")
file(WRITE ${PROJECT_BINARY_DIR}/debian/shlibs "libvknerf 0 libvknerf0 (>= ${PROJECT_VERSION})\n")
file(WRITE ${PROJECT_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBVKNERF0_PACKAGE_CONTROL_EXTRA
    ${PROJECT_BINARY_DIR}/debian/shlibs ${PROJECT_BINARY_DIR}/debian/triggers)
set(CPACK_DEBIAN_LIBVKNERF-DEV_PACKAGE_DEPENDS "libvknerf0 (= ${PROJECT_VERSION}-1), libcjson-dev, libpng-dev, libjpeg-dev")
set(CPACK_DEBIAN_VKNERF-MPI_PACKAGE_DEPENDS "vknerf (= ${PROJECT_VERSION}-1) | libvknerf0 (= ${PROJECT_VERSION}-1)")

include(CPack)
