# Compiles shaders to SPIR-V and embeds them in targets.
# vknerf_embed_shaders(TARGET MANIFEST [TABLE]) compiles the shaders that the manifest lists and embeds their
# compressed SPIR-V in TARGET as the array TABLEs and TABLE_count. TABLE is gpu_shader (src/gpu/shaders.h); a target
# with further shaders gives another name and passes the array to gpu_add_shaders.
#
# A line of the manifest defines a shader:
#   NAME SOURCE [DEFINE[=VALUE] ...] [+AXIS ...] [@TARGET] [?FEATURE ...]
# A NAME with {a,b,...} defines a shader for each of a, b, ..., which also replaces {} in the rest of the line.
# MATRIX=MxNxK defines COOPMAT, MATRIX_M, MATRIX_N, MATRIX_K and ACCUM_T=float, and implies ?coopmat.
# PRECISION=fp16 defines FP16; PRECISION=fp32 defines nothing. Each +AXIS defines a further shader NAME_axis, with
# the words of an earlier line "+AXIS ..." in place of +AXIS, or with the macro AXIS if there is no such line.
# DEFINE=VALUE of an axis replaces that of the shader's line.
# SOURCE and includes are relative to the manifest's folder; includes may also be in shaders/. @vulkan1.3 replaces the
# default target environment vulkan1.2. With ?FEATURE the shader is omitted if the GLSL compiler cannot compile
# cmake/shader_features/FEATURE.comp. # starts a comment.
#
# Debug builds have lines and names (-g), but not -gVS, whose information about arrays sized by specialisation
# constants is invalid SPIR-V. SPIR-V is not optimised, because spirv-opt breaks cooperative matrices.

# ---- compiler --------------------------------------------------------------------------------------

# Compiles many shaders in one process with shaderc (glslang as a library), since most of the time goes into its start.
set(compile_shaders_source ${CMAKE_CURRENT_LIST_DIR}/compile_shaders.c)
set(compile_shaders_binary ${PROJECT_BINARY_DIR}/compile_shaders)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${compile_shaders_source}
    ${PROJECT_SOURCE_DIR}/src/gpu/shaderc.h ${PROJECT_SOURCE_DIR}/src/loading/loading.h)
# The build runs it, so that a cross compiler must not compile it.
set(compile_for_build ${CMAKE_C_COMPILER})
set(build_libraries ${VKNERF_Z_LIBRARY} -ldl)
if(CMAKE_CROSSCOMPILING)
    set(compile_for_build cc)
    set(build_libraries -lz -ldl)
elseif(WIN32)
    string(APPEND compile_shaders_binary .exe)
    list(APPEND compile_for_build ${windows_options} -I${VKNERF_EXPAT_INCLUDE} -DXML_STATIC ${windows_sources})
    set(build_libraries ${VKNERF_Z_LIBRARY} ${VKNERF_EXPAT_LIBRARY} ${windows_libraries} -static)
endif()
execute_process(
    COMMAND ${compile_for_build} -I${PROJECT_SOURCE_DIR}/src ${compile_shaders_source} -o ${compile_shaders_binary}
        ${build_libraries}
    RESULT_VARIABLE status ERROR_VARIABLE messages)
if(NOT status EQUAL 0)
    message(FATAL_ERROR "cmake/compile_shaders.c does not compile:\n${messages}")
endif()
# The tool root's shaderc needs the tool root's C library.
set(compile_shaders ${tool_root_run} ${compile_shaders_binary})

# Sets RESULT to whether cmake/shader_features/FEATURE.comp compiles.
function(check_shader_feature feature result)
    set(source ${PROJECT_SOURCE_DIR}/cmake/shader_features/${feature}.comp)
    if(NOT EXISTS ${source})
        message(FATAL_ERROR "shaders/shaders.txt: unknown feature ?${feature}")
    endif()
    # Tested once per compiler.
    string(MAKE_C_IDENTIFIER "shader_feature_${feature}_${compile_shaders}" key)
    if(NOT DEFINED CACHE{${key}})
        set(list ${PROJECT_BINARY_DIR}/shader_feature.txt)
        file(WRITE ${list} "shader_feature ${feature}.comp vulkan1.3\n")
        execute_process(
            COMMAND ${compile_shaders} -I${PROJECT_SOURCE_DIR}/cmake/shader_features ${list}
            RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE messages)
        if(messages MATCHES "compile_shaders: no shaderc")
            message(FATAL_ERROR "vknerf needs shaderc, with SPIRV-Tools: install libshaderc1, or run tools/setup.sh\n${messages}")
        endif()
        set(has OFF)
        if(status EQUAL 0)
            set(has ON)
        endif()
        set(${key} ${has} CACHE INTERNAL "")
        message(STATUS "GLSL compiler has ${feature}: ${has}")
    endif()
    set(${result} ${${key}} PARENT_SCOPE)
endfunction()

# ---- manifest --------------------------------------------------------------------------------------

# Sets RESULT to the line of the shader NAME_axis, given a shader's line without axes and the words of the axis.
function(add_axis shader axis added result)
    string(TOLOWER "${axis}" suffix)
    string(REGEX MATCHALL "[A-Z_0-9]+=" replaced "${added}")
    foreach(name IN LISTS replaced)
        string(REGEX REPLACE " ${name}[^ ]*" "" shader "${shader}")
    endforeach()
    string(REGEX REPLACE "^([^ ]+)(.*)$" "\\1_${suffix}\\2 ${added}" shader "${shader}")
    set(${result} "${shader}" PARENT_SCOPE)
endfunction()

# Sets RESULT to a line for each of the manifest's shaders, without comments and with {a,b} and +AXIS expanded.
function(read_manifest manifest result)
    file(STRINGS ${manifest} lines)
    set(shaders "")
    foreach(line IN LISTS lines)
        string(REGEX REPLACE "#.*" "" line "${line}")
        if(line MATCHES "^\\+([A-Z0-9_]+) +(.*)$")
            set(axis_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
            continue()
        endif()
        set(alternatives "none")
        if(line MATCHES "^([^ ]*){([^}]+)}(.*)$")
            string(REPLACE "," ";" alternatives "${CMAKE_MATCH_2}")
            set(line "${CMAKE_MATCH_1}{}${CMAKE_MATCH_3}")
        endif()
        foreach(alternative IN LISTS alternatives)
            string(REPLACE "{}" "${alternative}" shader "${line}")
            string(REGEX REPLACE " PRECISION=fp32" "" shader "${shader}")
            string(REGEX REPLACE " PRECISION=fp16" " FP16" shader "${shader}")
            if(shader MATCHES " MATRIX=" AND NOT shader MATCHES " ACCUM_T=")
                string(APPEND shader " ACCUM_T=float")
            endif()
            string(REGEX REPLACE "MATRIX=([0-9]+)x([0-9]+)x([0-9]+)"
                "COOPMAT MATRIX_M=\\1 MATRIX_N=\\2 MATRIX_K=\\3 ?coopmat" shader "${shader}")
            string(REGEX MATCHALL " \\+[A-Z0-9_]+" axes "${shader}")
            string(REGEX REPLACE " \\+[A-Z0-9_]+" "" shader "${shader}")
            list(APPEND shaders "${shader}")
            foreach(axis IN LISTS axes)
                string(REPLACE " +" "" axis "${axis}")
                set(added ${axis})
                if(DEFINED axis_${axis})
                    set(added "${axis_${axis}}")
                endif()
                add_axis("${shader}" ${axis} "${added}" shader_of_axis)
                list(APPEND shaders "${shader_of_axis}")
            endforeach()
        endforeach()
    endforeach()
    set(${result} "${shaders}" PARENT_SCOPE)
endfunction()

function(vknerf_embed_shaders target manifest)
    set(table gpu_shader)
    if(ARGC GREATER 2)
        set(table ${ARGV2})
    endif()
    get_filename_component(shader_dir ${manifest} DIRECTORY)
    set(out_dir ${PROJECT_BINARY_DIR}/shaders)
    set(VKNERF_SHADERS "" CACHE PATH
        "Folder shaders/ of another build of the same sources, whose compiled shaders are used")
    if(VKNERF_SHADERS)
        set(out_dir ${VKNERF_SHADERS})
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${manifest})
    read_manifest(${manifest} lines)

    set(names "")
    set(sources "")
    set(files "")
    set(declarations "")
    set(rows "")
    foreach(line IN LISTS lines)
        separate_arguments(words UNIX_COMMAND "${line}")
        if(NOT words)
            continue()
        endif()
        list(LENGTH words length)
        list(GET words 0 name)
        if(length LESS 2 OR NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
            message(FATAL_ERROR "${manifest}: expected NAME SOURCE ..., found: ${line}")
        endif()
        if(name IN_LIST names)
            message(FATAL_ERROR "${manifest}: two shaders are named ${name}")
        endif()
        list(GET words 1 source)
        if(NOT EXISTS ${shader_dir}/${source})
            message(FATAL_ERROR "${manifest}: shader ${name}: no file ${source}")
        endif()
        set(tokens ${words})
        list(REMOVE_AT tokens 0 1)

        set(environment vulkan1.2)
        set(defines "")
        set(supported ON)
        foreach(token IN LISTS tokens)
            if(token MATCHES "^@(.+)$")
                set(environment ${CMAKE_MATCH_1})
            elseif(token MATCHES "^\\?(.+)$")
                check_shader_feature(${CMAKE_MATCH_1} has)
                if(NOT has)
                    message(STATUS "Omitted: ${name} (the GLSL compiler lacks ${CMAKE_MATCH_1})")
                    set(supported OFF)
                endif()
            elseif(token MATCHES "^[A-Za-z_][A-Za-z0-9_]*(=.*)?$")
                list(APPEND defines ${token})
            else()
                message(FATAL_ERROR "${manifest}: shader ${name}: cannot read ${token}")
            endif()
        endforeach()
        if(NOT supported)
            continue()
        endif()

        if(VKNERF_SHADERS AND NOT EXISTS ${out_dir}/${name}.spv.z)
            message(FATAL_ERROR "VKNERF_SHADERS: no ${name}.spv.z in ${out_dir}: that build is incomplete or "
                "has other sources")
        endif()

        list(APPEND names ${name})
        list(APPEND sources ${source})
        string(REPLACE ";" " " defines "${defines}")
        string(APPEND shaders_of_${source} "${name} ${source} ${environment} ${defines}\n")
        list(APPEND files_of_${source} ${out_dir}/${name}.spv.z)
        list(APPEND files ${out_dir}/${name}.spv.z)
        string(APPEND declarations "EMBED(unsigned char, shader_${name}, \"${out_dir}/${name}.spv.z\")\n")
        string(APPEND rows "    {\"${name}\", \"${source}\", \"${defines}\", shader_${name},\n"
            "     shader_${name}_end, \"${environment}\", NULL, NULL, 0},\n")
    endforeach()

    if(NOT VKNERF_SHADERS)
        # Eight processes keep the processors busy. One process compiles all shaders of a source.
        set(lists 8)
        list(REMOVE_DUPLICATES sources)
        set(next 0)
        foreach(source IN LISTS sources)
            string(APPEND shaders_${next} "${shaders_of_${source}}")
            list(APPEND files_${next} ${files_of_${source}})
            math(EXPR next "(${next} + 1) % ${lists}")
        endforeach()
        foreach(i RANGE 1 ${lists})
            math(EXPR i "${i} - 1")
            if(files_${i})
                compile_shaders(${shader_dir} ${out_dir}/${table}s_${i}.txt "${shaders_${i}}" "${files_${i}}")
            endif()
        endforeach()
    endif()

    list(LENGTH names count)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/shaders/${table}s_table.c @ONLY CONTENT [[
/* Written by cmake/Shaders.cmake from @manifest@. */
#include "gpu/shaders.h"

#include "@PROJECT_SOURCE_DIR@/cmake/embed.h"

@declarations@
struct gpu_shader @table@s[] = {
@rows@    {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0},
};
const size_t @table@_count = @count@;
]])
    set(table_file ${PROJECT_BINARY_DIR}/shaders/${table}s_table.c)
    target_sources(${target} PRIVATE ${table_file})
    set_source_files_properties(${table_file} PROPERTIES OBJECT_DEPENDS "${files}")
    message(STATUS "Shaders of ${target}: ${count}")
endfunction()

# Adds the rule by which one process compiles the shaders of LIST, whose lines are SHADERS, into FILES.
function(compile_shaders shader_dir list shaders files)
    # The list is written only if it changes; then the files are older and are compiled again.
    file(CONFIGURE OUTPUT ${list} CONTENT "${shaders}" @ONLY)
    get_filename_component(name ${list} NAME_WE)
    add_custom_command(
        OUTPUT ${files}
        COMMAND ${compile_shaders} "$<$<CONFIG:Debug>:-g>" -I${shader_dir} -I${PROJECT_SOURCE_DIR}/shaders ${list}
        DEPENDS ${list} ${compile_shaders_source} ${PROJECT_SOURCE_DIR}/src/gpu/shaderc.h
        DEPFILE ${list}.d
        COMMENT "Shaders ${name}"
        COMMAND_EXPAND_LISTS VERBATIM)
endfunction()

# Embeds GLSL files in TARGET as gpu_shader_texts (src/gpu/shaders.h), for shaders that are compiled at run time.
function(vknerf_embed_texts target shader_dir)
    set(declarations "")
    set(rows "")
    set(files "")
    foreach(name IN LISTS ARGN)
        set(file ${shader_dir}/${name})
        string(MAKE_C_IDENTIFIER ${name} symbol)
        list(APPEND files ${file})
        string(APPEND declarations "EMBED(char, text_${symbol}, \"${file}\")\n")
        string(APPEND rows "    {\"${name}\", text_${symbol}, text_${symbol}_end},\n")
    endforeach()
    list(LENGTH ARGN count)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/shaders/gpu_shader_texts_table.c @ONLY CONTENT [[
/* Written by cmake/Shaders.cmake. */
#include "gpu/shaders.h"

#include "@PROJECT_SOURCE_DIR@/cmake/embed.h"

@declarations@
const struct gpu_shader_text gpu_shader_texts[] = {
@rows@};
const size_t gpu_shader_text_count = @count@;
]])
    set(table_file ${PROJECT_BINARY_DIR}/shaders/gpu_shader_texts_table.c)
    target_sources(${target} PRIVATE ${table_file})
    set_source_files_properties(${table_file} PROPERTIES OBJECT_DEPENDS "${files}")
endfunction()
