# Configures cpack's Debian packages: vknerf (program, documents), libvknerf0 (library), libvknerf-dev (headers, static
# library) and, if MPI is found, vknerf-mpi (module for several machines). `cpack --config build/CPackConfig.cmake`
# writes them into build/packages; tools/package.sh builds and calls cpack.

find_program(VKNERF_GZIP gzip)
mark_as_advanced(VKNERF_GZIP)
if(NOT VKNERF_GZIP)
    return()
endif()

# Set to your own name for packages that you distribute: -DVKNERF_MAINTAINER="NAME <ADDRESS>".
set(VKNERF_MAINTAINER "the authors of vknerf <vknerf@localhost>" CACHE STRING "Maintainer of the Debian packages")
set(CPACK_PACKAGE_CONTACT ${VKNERF_MAINTAINER})
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME vknerf)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # would precede the summary of each package
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

# Debian requires a compressed man page and compressed changelogs, and a copyright file in each package.
list(GET man_sources 0 readme)
file(TIMESTAMP ${readme} changelog_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${PROJECT_BINARY_DIR}/debian/changelog.Debian
    "vknerf (${PROJECT_VERSION}-1) unstable; urgency=medium\n\n  * Changes are listed in CHANGELOG.md of the package vknerf.\n\n"
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
# Debian's zsh searches completions of packages in this folder.
install(FILES completions/_vknerf
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT debian-vknerf EXCLUDE_FROM_ALL)

set(line "neural radiance fields on any Vulkan device")
set(about "vknerf trains neural radiance fields with Vulkan compute shaders from
photographs with known cameras. It renders images and meshes, and measures
quality and the speed of every pass. Without a GPU it trains on the processor.")
set(components)

# add_package(NAME SECTION LINE PARAGRAPH COMPONENT ...): package of install components, with two descriptions.
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
    "This package contains the program, its manual and an example scene." program assets documents completions)
add_package(libvknerf0 libs "${line} (library)" "This package contains the shared library." library)
add_package(libvknerf-dev libdevel "${line} (development)"
    "This package contains files for development: headers, a static library,\nfiles for pkg-config and CMake."
    development)
if(TARGET vknerf-mpi)
    add_package(vknerf-mpi graphics "${line} (MPI)"
        "This package contains the module for training on several machines with mpirun." mpi)
endif()
set(CPACK_COMPONENTS_ALL ${components})

# dpkg-shlibdeps does not see libraries that are loaded at run time.
set(CPACK_DEBIAN_VKNERF_PACKAGE_DEPENDS libvulkan1)
set(CPACK_DEBIAN_LIBVKNERF0_PACKAGE_DEPENDS libvulkan1)
set(file_libraries "libwebp7, libtiff6, libexpat1")
set(CPACK_DEBIAN_VKNERF_PACKAGE_RECOMMENDS "mesa-vulkan-drivers | vulkan-icd, ffmpeg, colmap, \
libmicrohttpd12 | libmicrohttpd12t64, ${file_libraries}")
set(CPACK_DEBIAN_VKNERF_PACKAGE_SUGGESTS vknerf-mpi)
set(CPACK_DEBIAN_LIBVKNERF0_PACKAGE_RECOMMENDS "mesa-vulkan-drivers | vulkan-icd, ${file_libraries}")
file(WRITE ${PROJECT_BINARY_DIR}/debian/shlibs "libvknerf 0 libvknerf0 (>= ${PROJECT_VERSION})\n")
file(WRITE ${PROJECT_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBVKNERF0_PACKAGE_CONTROL_EXTRA
    ${PROJECT_BINARY_DIR}/debian/shlibs ${PROJECT_BINARY_DIR}/debian/triggers)
set(CPACK_DEBIAN_LIBVKNERF-DEV_PACKAGE_DEPENDS "libvknerf0 (= ${PROJECT_VERSION}-1), libcjson-dev, libpng-dev, libjpeg-dev")
set(CPACK_DEBIAN_VKNERF-MPI_PACKAGE_DEPENDS "vknerf (= ${PROJECT_VERSION}-1) | libvknerf0 (= ${PROJECT_VERSION}-1)")

include(CPack)
