# Defines what cmake --install installs, and the targets bundle (a tarball for other machines), installed, reference.

# If cJSON has only a shared library (Debian 12), the bundle contains that library in lib/.
set(shared_cjson OFF)
if(NOT VKNERF_CJSON_LIBRARY MATCHES "\\.a$")
    set(shared_cjson ON)
    set_target_properties(vknerf PROPERTIES INSTALL_RPATH "$ORIGIN/lib")
endif()

install(TARGETS vknerf RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
if(TARGET vknerf-mpi)
    install(TARGETS vknerf-mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/vknerf COMPONENT mpi)
endif()
# The man page is made from `vknerf help --man` and parts of the manual.
if(NOT WIN32 AND (NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR))
    set(man_sources README.md docs/runs.md)
    list(TRANSFORM man_sources PREPEND ${PROJECT_SOURCE_DIR}/)
    set(man_script ${PROJECT_SOURCE_DIR}/cmake/man_page.awk)
    list(GET man_sources 0 readme)
    file(TIMESTAMP ${readme} man_date "%Y-%m-%d" UTC)
    add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/vknerf.1
        COMMAND vknerf help --man > vknerf.1.program
        COMMAND awk -v date=${man_date} -f ${man_script} ${man_sources} vknerf.1.program > vknerf.1.new
        COMMAND ${CMAKE_COMMAND} -E rename vknerf.1.new vknerf.1
        DEPENDS vknerf ${man_script} ${man_sources}
        WORKING_DIRECTORY ${PROJECT_BINARY_DIR} COMMENT "vknerf.1" VERBATIM)
    add_custom_target(vknerf-man ALL DEPENDS ${PROJECT_BINARY_DIR}/vknerf.1)
    install(FILES ${PROJECT_BINARY_DIR}/vknerf.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT man)
endif()
if(WIN32)
    install(FILES completions/vknerf.ps1 DESTINATION completions COMPONENT completions)
    install(DIRECTORY ${CMAKE_PREFIX_PATH}/licenses DESTINATION . COMPONENT documents OPTIONAL)
else()
    install(FILES completions/vknerf.bash RENAME vknerf
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT completions)
    install(FILES completions/vknerf.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT completions)
    install(FILES completions/_vknerf DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT completions-zsh)
endif()

install(DIRECTORY assets/ DESTINATION ${CMAKE_INSTALL_DATADIR}/vknerf/assets COMPONENT assets
    PATTERN readme.png EXCLUDE PATTERN viewer.png EXCLUDE PATTERN walkthrough EXCLUDE)
install(FILES assets/readme.png assets/viewer.png DESTINATION ${CMAKE_INSTALL_DOCDIR}/assets COMPONENT documents)
install(DIRECTORY assets/walkthrough DESTINATION ${CMAKE_INSTALL_DOCDIR}/assets COMPONENT documents)
install(FILES README.md BENCHMARKS.md CONTRIBUTING.md CHANGELOG.md LICENSE
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents OPTIONAL)
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents)

# The public API: headers, libraries, and relocatable files for pkg-config and CMake.
install(DIRECTORY include/vknerf DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(TARGETS vknerf-shared EXPORT vknerf
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT library
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
if(NOT WIN32)
    install(FILES ${PROJECT_BINARY_DIR}/libvknerf.a
        DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
endif()
file(RELATIVE_PATH pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/vknerf.pc.in vknerf.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/vknerf.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/vknerf)
set_target_properties(vknerf-shared PROPERTIES EXPORT_NAME vknerf)
install(EXPORT vknerf NAMESPACE vknerf:: FILE vknerfTargets.cmake
    DESTINATION ${package_folder} COMPONENT development)
configure_package_config_file(cmake/vknerfConfig.cmake.in vknerfConfig.cmake
    INSTALL_DESTINATION ${package_folder} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(vknerfConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/vknerfConfig.cmake ${PROJECT_BINARY_DIR}/vknerfConfigVersion.cmake
    DESTINATION ${package_folder} COMPONENT development)

set(bundle vknerf-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(bundle_components program assets documents man completions completions-zsh)
set(bundle_ending tar.gz)
if(WIN32)
    set(bundle vknerf-${PROJECT_VERSION}-windows-${CMAKE_SYSTEM_PROCESSOR})
    set(bundle_components program assets documents completions library development)
    set(bundle_ending zip)
endif()
add_custom_target(bundle
    COMMAND ${CMAKE_COMMAND}
        -D BUILD_DIR=${PROJECT_BINARY_DIR} -D BUNDLE=${bundle} -D ENDING=${bundle_ending}
        "-D COMPONENTS=${bundle_components}"
        -D SHARED_CJSON=$<$<BOOL:${shared_cjson}>:${VKNERF_CJSON_LIBRARY}>
        -P ${PROJECT_SOURCE_DIR}/cmake/bundle.cmake
    COMMENT "${bundle}.${bundle_ending}"
    VERBATIM)
add_dependencies(bundle vknerf)
if(WIN32)
    add_dependencies(bundle vknerf-shared)
    return() # neither Debian packages nor a static library
endif()

# Everything that is installed, without tests.
add_custom_target(installed DEPENDS vknerf vknerf-shared vknerf-static-archive)
foreach(target vknerf-mpi vknerf-man)
    if(TARGET ${target})
        add_dependencies(installed ${target})
    endif()
endforeach()

# The reference of the public headers, build/reference/html/index.html; needs doxygen.
add_custom_target(reference
    COMMAND sh -c "{ cat docs/reference/Doxyfile; echo OUTPUT_DIRECTORY=${PROJECT_BINARY_DIR}/reference; } | doxygen -"
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} COMMENT "reference/html/index.html" VERBATIM)

include(Debian)
