# cmake -D BUILD_DIR=... -D BUNDLE=NAME -D ENDING=tar.gz|zip -D COMPONENTS=... -D SHARED_CJSON=[LIBRARY] -P bundle.cmake
# Packs BUILD_DIR/NAME.ENDING: NAME/vknerf, documents, assets/, what else the components install, lib/ for shared cJSON.

set(stage ${BUILD_DIR}/bundle)
set(folder ${stage}/${BUNDLE})
file(REMOVE_RECURSE ${stage})
file(MAKE_DIRECTORY ${folder})

foreach(component IN LISTS COMPONENTS)
    execute_process(
        COMMAND ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${stage}/${component}
            --component ${component}
        OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
    # Moves program, assets and documents to the top, so that the bundle runs in the folder that is unpacked.
    file(GLOB_RECURSE files RELATIVE ${stage}/${component} ${stage}/${component}/*)
    foreach(file IN LISTS files)
        string(REGEX REPLACE "^(bin|share/vknerf|share/doc/vknerf)/" "" target ${file})
        get_filename_component(target_folder ${folder}/${target} DIRECTORY)
        file(COPY ${stage}/${component}/${file} DESTINATION ${target_folder})
    endforeach()
endforeach()

if(SHARED_CJSON)
    # The name with which the program is linked.
    file(GLOB library ${SHARED_CJSON}.[0-9])
    file(COPY ${library} DESTINATION ${folder}/lib FOLLOW_SYMLINK_CHAIN)
endif()

set(flags czf)
set(format "")
if(ENDING STREQUAL zip)
    set(flags cf)
    set(format --format=zip)
endif()
execute_process(
    COMMAND ${CMAKE_COMMAND} -E tar ${flags} ${BUILD_DIR}/${BUNDLE}.${ENDING} ${format} ${BUNDLE}
    WORKING_DIRECTORY ${stage} COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE_RECURSE ${stage})
message("${BUILD_DIR}/${BUNDLE}.${ENDING}")
