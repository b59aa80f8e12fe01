# Joins page files into self-contained HTML files and embeds them. Run as a script it writes a joined file:
# cmake -D PAGE=.. -D STYLES=.. -D SCRIPTS=.. -D OUTPUT=.. -P Page.cmake

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

set(shared_page_files ${PROJECT_SOURCE_DIR}/src/report/page) # base.css and curves.js, of the viewer and all reports

# Joins the HTML file PAGE with lists of style sheets and of scripts into OUTPUT. A script uses only definitions of
# earlier ones.
function(vknerf_join_page output page styles scripts)
    get_filename_component(name ${output} NAME)
    add_custom_command(
        OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -D PAGE=${page} "-DSTYLES=${styles}" "-DSCRIPTS=${scripts}" -D OUTPUT=${output}
            -P ${PROJECT_SOURCE_DIR}/cmake/Page.cmake
        DEPENDS ${page} ${styles} ${scripts} ${PROJECT_SOURCE_DIR}/cmake/Page.cmake
        COMMENT "Joining ${name}"
        VERBATIM)
endfunction()

# Embeds viewer_page .. viewer_page_end in TARGET, and viewer_denied .. viewer_denied_end, the answer to requests
# without the token (src/viewer/internal.h).
function(vknerf_embed_viewer target)
    set(folder ${PROJECT_SOURCE_DIR}/src/viewer/page)
    set(scripts math app camera frames maps overlay input cameras photographs crop_box view_panel tasks path
        gizmo path_panel exports surface training main)
    list(TRANSFORM scripts PREPEND ${folder}/)
    list(TRANSFORM scripts APPEND .js)
    set(page ${PROJECT_BINARY_DIR}/viewer/page.html)
    vknerf_join_page(${page} ${folder}/page.html "${shared_page_files}/base.css;${folder}/style.css;${folder}/panels.css;${folder}/maps.css;${folder}/tools.css"
        "${shared_page_files}/curves.js;${scripts}")
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

# Embeds the pages of src/report in TARGET (src/report/page.h): page.html with the script of each kind of page.
function(vknerf_embed_reports target)
    set(folder ${shared_page_files})
    set(declarations "")
    set(pages "")
    foreach(kind run comparison refinement certificate)
        set(page ${PROJECT_BINARY_DIR}/report/${kind}.html)
        vknerf_join_page(${page} ${folder}/page.html "${folder}/base.css;${folder}/report.css"
            "${folder}/curves.js;${folder}/report.js;${folder}/${kind}.js")
        list(APPEND pages ${page})
        string(APPEND declarations "EMBED(char, report_${kind}, \"${page}\")\n"
            "const struct page_file page_${kind}_file = {report_${kind}, report_${kind}_end};\n")
    endforeach()
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/report/pages.c @ONLY CONTENT [[
/* Written by cmake/Page.cmake. */
#include "report/page.h"

#include "@PROJECT_SOURCE_DIR@/cmake/embed.h"

@declarations@]])
    target_sources(${target} PRIVATE ${PROJECT_BINARY_DIR}/report/pages.c)
    set_source_files_properties(${PROJECT_BINARY_DIR}/report/pages.c PROPERTIES OBJECT_DEPENDS "${pages}")
endfunction()
