# Joins the files of src/viewer/page/ into one self-contained HTML file and embeds it in the program. Run as a script it
# writes the joined file: cmake -D PAGE=.. -D STYLES=.. -D SCRIPTS=.. -D OUTPUT=.. -P Page.cmake

if(CMAKE_SCRIPT_MODE_FILE)
    function(read_all files variable)
        set(all "")
        foreach(file IN LISTS files)
            file(READ ${file} text)
            string(APPEND all "${text}")
        endforeach()
        set(${variable} "${all}" PARENT_SCOPE)
    endfunction()
    read_all("${STYLES}" style)
    read_all("${SCRIPTS}" script)
    file(READ ${PAGE} page)
    string(REPLACE "@STYLE@" "${style}" page "${page}")
    string(REPLACE "@SCRIPT@" "${script}" page "${page}")
    file(WRITE ${OUTPUT} "${page}")
    return()
endif()

# Scripts in their order in the page: each uses only definitions of earlier ones.
set(page_scripts math app camera frames maps overlay input cameras photographs crop_box view_panel path path_panel curves
    training main)

# Embeds viewer_page .. viewer_page_end in TARGET, and viewer_denied .. viewer_denied_end, the answer to requests
# without the token (src/viewer/internal.h).
function(vknerf_embed_page target)
    set(folder ${PROJECT_SOURCE_DIR}/src/viewer/page)
    set(styles ${folder}/style.css ${folder}/panels.css ${folder}/maps.css)
    list(TRANSFORM page_scripts PREPEND ${folder}/)
    list(TRANSFORM page_scripts APPEND .js)
    set(page ${PROJECT_BINARY_DIR}/viewer/page.html)
    add_custom_command(
        OUTPUT ${page}
        COMMAND ${CMAKE_COMMAND} -D PAGE=${folder}/page.html "-DSTYLES=${styles}" "-DSCRIPTS=${page_scripts}"
            -D OUTPUT=${page} -P ${PROJECT_SOURCE_DIR}/cmake/Page.cmake
        DEPENDS ${folder}/page.html ${styles} ${page_scripts} ${PROJECT_SOURCE_DIR}/cmake/Page.cmake
        COMMENT "Joining the viewer's page"
        VERBATIM)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/viewer/page.c @ONLY CONTENT [[
/* Written by cmake/Page.cmake. */
#include "@PROJECT_SOURCE_DIR@/cmake/embed.h"

EMBED(char, viewer_page, "@page@")
EMBED(char, viewer_denied, "@folder@/denied.html")
]])
    target_sources(${target} PRIVATE ${PROJECT_BINARY_DIR}/viewer/page.c)
    set_source_files_properties(${PROJECT_BINARY_DIR}/viewer/page.c PROPERTIES
        OBJECT_DEPENDS "${page};${folder}/denied.html")
endfunction()
