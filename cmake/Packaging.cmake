# cmake --install, and the target `bundle`: a tarball that runs on another machine with a GPU.

# Where cJSON is shared only (Debian 12), the bundle carries it next to the executable.
set(shared_cjson OFF)
if(NOT VKNERF_CJSON_LIBRARY MATCHES "\\.a$")
    set(shared_cjson ON)
    set_target_properties(vknerf PROPERTIES INSTALL_RPATH "$ORIGIN/lib")
endif()

install(TARGETS vknerf RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
if(TARGET vknerf-mpi)
    install(TARGETS vknerf-mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/vknerf COMPONENT mpi)
endif()
install(DIRECTORY assets/ DESTINATION ${CMAKE_INSTALL_DATADIR}/vknerf/assets COMPONENT assets)
install(FILES README.md BENCHMARKS.md CONTRIBUTING.md CHANGELOG.md LICENSE
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents OPTIONAL)
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents)

# The public API: its headers, the library, and what finds it, wherever the folder is moved.
install(DIRECTORY include/vknerf DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(TARGETS vknerf-shared EXPORT vknerf
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/libvknerf.a
    DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
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
add_custom_target(bundle
    COMMAND ${CMAKE_COMMAND}
        -D BUILD_DIR=${PROJECT_BINARY_DIR} -D BUNDLE=${bundle}
        -D SHARED_CJSON=$<$<BOOL:${shared_cjson}>:${VKNERF_CJSON_LIBRARY}>
        -P ${PROJECT_SOURCE_DIR}/cmake/bundle.cmake
    COMMENT "${bundle}.tar.gz"
    VERBATIM)
add_dependencies(bundle vknerf)

# The reference of the public headers, where doxygen is: build/reference/html/index.html.
add_custom_target(reference
    COMMAND sh -c "{ cat docs/reference/Doxyfile; echo OUTPUT_DIRECTORY=${PROJECT_BINARY_DIR}/reference; } | doxygen -"
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} COMMENT "reference/html/index.html" VERBATIM)
