# cmake -D SOURCE_DIR=... -D OUTPUT=commit.h -P write_commit.cmake
# Writes the commit of the sources into a header: "abc1234", "abc1234-dirty" if tracked files have changed, "unknown" if
# there is neither a git checkout nor an archive from git. Writes the file only if the commit changes.

set(commit unknown)
file(READ ${SOURCE_DIR}/cmake/commit.txt archived)
if(archived MATCHES "^([0-9a-f]+)[ \n]*$") # inserted by git archive
    set(commit ${CMAKE_MATCH_1})
elseif(EXISTS ${SOURCE_DIR}/.git) # a folder around an unpacked archive does not count
    find_program(git git)
    if(git)
        execute_process(
            COMMAND ${CMAKE_COMMAND} -E env --unset=GIT_DIR --unset=GIT_WORK_TREE --unset=GIT_INDEX_FILE
                ${git} --no-optional-locks -C ${SOURCE_DIR} describe --always --dirty --exclude=*
            OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
        if(NOT failed AND described MATCHES "^[0-9a-f]+(-dirty)?$")
            set(commit ${described})
        endif()
    endif()
endif()

file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define VKNERF_COMMIT \"${commit}\"\n")
