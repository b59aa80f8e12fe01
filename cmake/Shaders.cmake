# vknerf_embed_shaders(TARGET MANIFEST [TABLE]): compiles the shaders that the manifest lists and embeds
# their SPIR-V, packed, in TARGET as TABLEs and TABLE_count; TABLE is gpu_shader (src/gpu/shaders.h)
# unless a target has shaders of its own, which it hands to gpu_add_shaders.
#
# A line of the manifest is one shader:
#   NAME SOURCE [DEFINE[=VALUE] ...] [+AXIS ...] [@TARGET] [?FEATURE ...]
# A NAME with {a,b,...} stands for one shader with each of a, b, ... in that place, and wherever the line
# has {}. MATRIX=MxNxK defines COOPMAT, MATRIX_M, MATRIX_N, MATRIX_K and ACCUM_T=float, with ?coopmat;
# PRECISION=fp16 defines FP16, PRECISION=fp32 nothing. Each +AXIS makes one more shader of the line, NAME_axis, that
# has in its place what a line "+AXIS ..." before lists, the macro AXIS if there is none; DEFINE=VALUE of an
# axis replaces the line's.
# SOURCE is relative to the manifest's folder. Includes are looked up there and in shaders/; @vulkan1.3
# replaces the default target environment vulkan1.2; with ?coopmat the shader is left out when the
# compiler does not know cmake/shader_features/coopmat.comp. # starts a comment.
#
# Debug builds carry lines and names (-g), but not -gVS: what that says of arrays sized by specialisation
# constants is invalid SPIR-V. Nothing optimises the SPIR-V: spirv-opt breaks cooperative matrices.

# ---- the compiler ----------------------------------------------------------------------------------

# shaderc, which is glslang as a library, compiles many shaders in one process, most of whose time goes into its start.
set(compile_shaders_source ${CMAKE_CURRENT_LIST_DIR}/compile_shaders.c)
set(compile_shaders_binary ${PROJECT_BINARY_DIR}/compile_shaders)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${compile_shaders_source}
    ${PROJECT_SOURCE_DIR}/src/gpu/shaderc.h ${PROJECT_SOURCE_DIR}/src/loading/loading.h)
try_compile(compiled ${compile_shaders_binary}.build ${compile_shaders_source}
    CMAKE_FLAGS -DINCLUDE_DIRECTORIES=${PROJECT_SOURCE_DIR}/src
    LINK_LIBRARIES ${VKNERF_Z_LIBRARY} ${CMAKE_DL_LIBS}
    OUTPUT_VARIABLE said
    COPY_FILE ${compile_shaders_binary})
if(NOT compiled)
    message(FATAL_ERROR "cmake/compile_shaders.c does not compile:\n${said}")
endif()
# The tool root's shaderc needs the tool root's C library.
set(compile_shaders ${tool_root_run} ${compile_shaders_binary})

# Sets RESULT to whether the compiler takes cmake/shader_features/FEATURE.comp.
function(check_shader_feature feature result)
    set(source ${PROJECT_SOURCE_DIR}/cmake/shader_features/${feature}.comp)
    if(NOT EXISTS ${source})
        message(FATAL_ERROR "shaders/shaders.txt: unknown feature ?${feature}")
    endif()
    # Asked once per compiler.
    string(MAKE_C_IDENTIFIER "shader_feature_${feature}_${compile_shaders}" key)
    if(NOT DEFINED CACHE{${key}})
        set(list ${PROJECT_BINARY_DIR}/shader_feature.txt)
        file(WRITE ${list} "shader_feature ${feature}.comp vulkan1.3\n")
        execute_process(
            COMMAND ${compile_shaders} -I${PROJECT_SOURCE_DIR}/cmake/shader_features ${list}
            RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE said)
        if(said MATCHES "compile_shaders: no shaderc")
            message(FATAL_ERROR "vknerf needs shaderc, with SPIRV-Tools: install libshaderc1, or run tools/setup.sh\n${said}")
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

# ---- the manifest ----------------------------------------------------------------------------------

# Sets RESULT to a line for the shader NAME_axis that an axis makes of a shader's line without axes.
function(add_axis shader axis added result)
    string(TOLOWER "${axis}" suffix)
    string(REGEX MATCHALL "[A-Z_0-9]+=" replaced "${added}")
    foreach(name IN LISTS replaced)
        string(REGEX REPLACE " ${name}[^ ]*" "" shader "${shader}")
    endforeach()
    string(REGEX REPLACE "^([^ ]+)(.*)$" "\\1_${suffix}\\2 ${added}" shader "${shader}")
    set(${result} "${shader}" PARENT_SCOPE)
endfunction()

# Sets RESULT to the manifest's shaders, a line for each: comments left out, {a,b} and +AXIS written out.
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
        "Folder shaders/ of another build of the same sources, whose shaders are taken instead of compiled")
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
                    message(STATUS "Left out: ${name} (the GLSL compiler lacks ${CMAKE_MATCH_1})")
                    set(supported OFF)
                endif()
            elseif(token MATCHES "^[A-Za-z_][A-Za-z0-9_]*(=.*)?$")
                list(APPEND defines ${token})
            else()
                message(FATAL_ERROR "${manifest}: shader ${name}: what is ${token}?")
            endif()
        endforeach()
        if(NOT supported)
            continue()
        endif()

        if(VKNERF_SHADERS AND NOT EXISTS ${out_dir}/${name}.spv.z)
            message(FATAL_ERROR "VKNERF_SHADERS: no ${name}.spv.z in ${out_dir}: that build is not complete, "
                "or of other sources")
        endif()

        list(APPEND names ${name})
        list(APPEND sources ${source})
        string(REPLACE ";" " " defines "${defines}")
        string(APPEND shaders_of_${source} "${name} ${source} ${environment} ${defines}\n")
        list(APPEND files_of_${source} ${out_dir}/${name}.spv.z)
        list(APPEND files ${out_dir}/${name}.spv.z)
        string(APPEND declarations "EMBED(${name}, \"${out_dir}/${name}.spv.z\")\n")
        string(APPEND rows "    {\"${name}\", \"${source}\", \"${defines}\", shader_${name},\n"
            "     shader_${name}_end, \"${environment}\", NULL, NULL, 0},\n")
    endforeach()

    if(NOT VKNERF_SHADERS)
        # As many processes as keep the processors busy. All shaders of a source are in one of them.
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

/* The assembler reads the files: hundreds of files of numbers would take the compiler longer than the rest. */
#define EMBED(name, file)                                                          \
    __asm__(".pushsection .rodata\nshader_" #name ":\n.incbin \"" file               \
            "\"\nshader_" #name "_end:\n.global shader_" #name ", shader_" #name \
            "_end\n.hidden shader_" #name ", shader_" #name "_end\n.popsection\n"); \
    extern const unsigned char shader_##name[], shader_##name##_end[];

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

# The rule for what one start of the compiler makes: the FILES of a LIST's PROGRAMS, lines of it.
function(compile_shaders shader_dir list shaders files)
    # Written only when they change: the files are older than the list then.
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

# Embeds sources in TARGET as gpu_shader_texts (src/gpu/shaders.h): those that shaders which are compiled at
# run time are made of.
function(vknerf_embed_texts target shader_dir)
    set(declarations "")
    set(rows "")
    set(files "")
    foreach(name IN LISTS ARGN)
        set(file ${shader_dir}/${name})
        string(MAKE_C_IDENTIFIER ${name} symbol)
        list(APPEND files ${file})
        string(APPEND declarations "EMBED(${symbol}, \"${file}\")\n")
        string(APPEND rows "    {\"${name}\", text_${symbol}, text_${symbol}_end},\n")
    endforeach()
    list(LENGTH ARGN count)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/shaders/gpu_shader_texts_table.c @ONLY CONTENT [[
/* Written by cmake/Shaders.cmake. */
#include "gpu/shaders.h"

#define EMBED(name, file)                                                                     \
    __asm__(".pushsection .rodata\ntext_" #name ":\n.incbin \"" file "\"\ntext_" #name       \
            "_end:\n.global text_" #name ", text_" #name "_end\n.hidden text_" #name          \
            ", text_" #name "_end\n.popsection\n");                                          \
    extern const char text_##name[], text_##name##_end[];

@declarations@
const struct gpu_shader_text gpu_shader_texts[] = {
@rows@};
const size_t gpu_shader_text_count = @count@;
]])
    set(table_file ${PROJECT_BINARY_DIR}/shaders/gpu_shader_texts_table.c)
    target_sources(${target} PRIVATE ${table_file})
    set_source_files_properties(${table_file} PROPERTIES OBJECT_DEPENDS "${files}")
endfunction()
