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

# The public API: its headers, and the library that the executable is made of.
install(DIRECTORY include/vknerf DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(TARGETS vknerf-core ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
configure_file(cmake/vknerf.pc.in vknerf.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/vknerf.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

set(bundle vknerf-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
add_custom_target(bundle
    COMMAND ${CMAKE_COMMAND}
        -D BUILD_DIR=${PROJECT_BINARY_DIR} -D BUNDLE=${bundle}
        -D SHARED_CJSON=$<$<BOOL:${shared_cjson}>:${VKNERF_CJSON_LIBRARY}>
        -P ${PROJECT_SOURCE_DIR}/cmake/bundle.cmake
    COMMENT "${bundle}.tar.gz"
    VERBATIM)
add_dependencies(bundle vknerf)
