# vknerf_embed_programs(TARGET MANIFEST [TABLE]): compiles the programs that the manifest lists and embeds
# their SPIR-V, packed, in TARGET as TABLEs and TABLE_count; TABLE is gpu_program_source (src/gpu/program_sources.h)
# unless a target has programs of its own, which it hands to gpu_add_programs.
#
# A line of the manifest is one program:
#   NAME SOURCE [DEFINE[=VALUE] ...] [+AXIS ...] [@TARGET] [?FEATURE ...]
# A NAME with {a,b,...} stands for one program with each of a, b, ... in that place, and wherever the line
# has {}. MATRIX=MxNxK defines COOPMAT, MATRIX_M, MATRIX_N, MATRIX_K and ACCUM_T=float, with ?coopmat;
# PRECISION=fp16 defines FP16, PRECISION=fp32 nothing. Each +AXIS makes one more program of the line, NAME_axis, that
# has in its place what a line "+AXIS ..." before lists, the macro AXIS if there is none; DEFINE=VALUE of an
# axis replaces the line's.
# SOURCE is relative to the manifest's folder. Includes are looked up there and in shaders/; @vulkan1.3
# replaces the default target environment vulkan1.2; with ?coopmat the program is left out when the
# compiler does not know cmake/shader_features/coopmat.comp. # starts a comment.
#
# Debug builds carry lines and names (-g), but not -gVS: what that says of arrays sized by specialisation
# constants is invalid SPIR-V. Nothing optimises the SPIR-V: spirv-opt breaks cooperative matrices.

# ---- the compiler ----------------------------------------------------------------------------------

# shaderc, which is glslang as a library, compiles many programs in one process, most of whose time goes into its start.
set(compile_programs_source ${CMAKE_CURRENT_LIST_DIR}/compile_programs.c)
set(compile_programs_binary ${PROJECT_BINARY_DIR}/compile_programs)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${compile_programs_source}
    ${PROJECT_SOURCE_DIR}/src/gpu/shaderc.h ${PROJECT_SOURCE_DIR}/src/loading/loading.h)
try_compile(compiled ${compile_programs_binary}.build ${compile_programs_source}
    CMAKE_FLAGS -DINCLUDE_DIRECTORIES=${PROJECT_SOURCE_DIR}/src
    LINK_LIBRARIES ${VKNERF_Z_LIBRARY} ${CMAKE_DL_LIBS}
    OUTPUT_VARIABLE said
    COPY_FILE ${compile_programs_binary})
if(NOT compiled)
    message(FATAL_ERROR "cmake/compile_programs.c does not compile:\n${said}")
endif()
# The tool root's shaderc needs the tool root's C library.
set(compile_programs ${tool_root_run} ${compile_programs_binary})

# Sets RESULT to whether the compiler takes cmake/shader_features/FEATURE.comp.
function(check_shader_feature feature result)
    set(source ${PROJECT_SOURCE_DIR}/cmake/shader_features/${feature}.comp)
    if(NOT EXISTS ${source})
        message(FATAL_ERROR "shaders/programs.txt: unknown feature ?${feature}")
    endif()
    # Asked once per compiler.
    string(MAKE_C_IDENTIFIER "shader_feature_${feature}_${compile_programs}" key)
    if(NOT DEFINED CACHE{${key}})
        set(list ${PROJECT_BINARY_DIR}/shader_feature.txt)
        file(WRITE ${list} "shader_feature ${feature}.comp vulkan1.3\n")
        execute_process(
            COMMAND ${compile_programs} -I${PROJECT_SOURCE_DIR}/cmake/shader_features ${list}
            RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE said)
        if(said MATCHES "compile_programs: no shaderc")
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

# Sets RESULT to a line for the program NAME_axis that an axis makes of a program's line without axes.
function(add_axis program axis added result)
    string(TOLOWER "${axis}" suffix)
    string(REGEX MATCHALL "[A-Z_0-9]+=" replaced "${added}")
    foreach(name IN LISTS replaced)
        string(REGEX REPLACE " ${name}[^ ]*" "" program "${program}")
    endforeach()
    string(REGEX REPLACE "^([^ ]+)(.*)$" "\\1_${suffix}\\2 ${added}" program "${program}")
    set(${result} "${program}" PARENT_SCOPE)
endfunction()

# Sets RESULT to the manifest's programs, a line for each: comments left out, {a,b} and +AXIS written out.
function(read_manifest manifest result)
    file(STRINGS ${manifest} lines)
    set(programs "")
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
            string(REPLACE "{}" "${alternative}" program "${line}")
            string(REGEX REPLACE " PRECISION=fp32" "" program "${program}")
            string(REGEX REPLACE " PRECISION=fp16" " FP16" program "${program}")
            if(program MATCHES " MATRIX=" AND NOT program MATCHES " ACCUM_T=")
                string(APPEND program " ACCUM_T=float")
            endif()
            string(REGEX REPLACE "MATRIX=([0-9]+)x([0-9]+)x([0-9]+)"
                "COOPMAT MATRIX_M=\\1 MATRIX_N=\\2 MATRIX_K=\\3 ?coopmat" program "${program}")
            string(REGEX MATCHALL " \\+[A-Z0-9_]+" axes "${program}")
            string(REGEX REPLACE " \\+[A-Z0-9_]+" "" program "${program}")
            list(APPEND programs "${program}")
            foreach(axis IN LISTS axes)
                string(REPLACE " +" "" axis "${axis}")
                set(added ${axis})
                if(DEFINED axis_${axis})
                    set(added "${axis_${axis}}")
                endif()
                add_axis("${program}" ${axis} "${added}" program_of_axis)
                list(APPEND programs "${program_of_axis}")
            endforeach()
        endforeach()
    endforeach()
    set(${result} "${programs}" PARENT_SCOPE)
endfunction()

function(vknerf_embed_programs target manifest)
    set(table gpu_program_source)
    if(ARGC GREATER 2)
        set(table ${ARGV2})
    endif()
    get_filename_component(shader_dir ${manifest} DIRECTORY)
    set(out_dir ${PROJECT_BINARY_DIR}/programs)
    set(VKNERF_PROGRAMS "" CACHE PATH
        "Folder programs/ of another build of the same sources, whose shaders are taken instead of compiled")
    if(VKNERF_PROGRAMS)
        set(out_dir ${VKNERF_PROGRAMS})
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
            message(FATAL_ERROR "${manifest}: two programs are named ${name}")
        endif()
        list(GET words 1 source)
        if(NOT EXISTS ${shader_dir}/${source})
            message(FATAL_ERROR "${manifest}: program ${name}: no file ${source}")
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
                message(FATAL_ERROR "${manifest}: program ${name}: what is ${token}?")
            endif()
        endforeach()
        if(NOT supported)
            continue()
        endif()

        if(VKNERF_PROGRAMS AND NOT EXISTS ${out_dir}/${name}.spv.z)
            message(FATAL_ERROR "VKNERF_PROGRAMS: no ${name}.spv.z in ${out_dir}: that build is not complete, "
                "or of other sources")
        endif()

        list(APPEND names ${name})
        list(APPEND sources ${source})
        string(REPLACE ";" " " defines "${defines}")
        string(APPEND programs_of_${source} "${name} ${source} ${environment} ${defines}\n")
        list(APPEND files_of_${source} ${out_dir}/${name}.spv.z)
        list(APPEND files ${out_dir}/${name}.spv.z)
        string(APPEND declarations "EMBED(${name}, \"${out_dir}/${name}.spv.z\")\n")
        string(APPEND rows "    {\"${name}\", \"${source}\", \"${defines}\", program_${name},\n"
            "     program_${name}_end, \"${environment}\", NULL, NULL, 0},\n")
    endforeach()

    if(NOT VKNERF_PROGRAMS)
        # As many processes as keep the processors busy. All programs of a source are in one of them.
        set(lists 8)
        list(REMOVE_DUPLICATES sources)
        set(next 0)
        foreach(source IN LISTS sources)
            string(APPEND programs_${next} "${programs_of_${source}}")
            list(APPEND files_${next} ${files_of_${source}})
            math(EXPR next "(${next} + 1) % ${lists}")
        endforeach()
        foreach(i RANGE 1 ${lists})
            math(EXPR i "${i} - 1")
            if(files_${i})
                compile_programs(${shader_dir} ${out_dir}/${table}s_${i}.txt "${programs_${i}}" "${files_${i}}")
            endif()
        endforeach()
    endif()

    list(LENGTH names count)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/programs/${table}s_table.c @ONLY CONTENT [[
/* Written by cmake/Shaders.cmake from @manifest@. */
#include "gpu/program_sources.h"

/* The assembler reads the files: hundreds of files of numbers would take the compiler longer than the rest. */
#define EMBED(name, file)                                                          \
    __asm__(".pushsection .rodata\nprogram_" #name ":\n.incbin \"" file               \
            "\"\nprogram_" #name "_end:\n.global program_" #name ", program_" #name \
            "_end\n.hidden program_" #name ", program_" #name "_end\n.popsection\n"); \
    extern const unsigned char program_##name[], program_##name##_end[];

@declarations@
struct gpu_program_source @table@s[] = {
@rows@    {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0},
};
const size_t @table@_count = @count@;
]])
    set(table_file ${PROJECT_BINARY_DIR}/programs/${table}s_table.c)
    target_sources(${target} PRIVATE ${table_file})
    set_source_files_properties(${table_file} PROPERTIES OBJECT_DEPENDS "${files}")
    message(STATUS "Shader programs of ${target}: ${count}")
endfunction()

# The rule for what one start of the compiler makes: the FILES of a LIST's PROGRAMS, lines of it.
function(compile_programs shader_dir list programs files)
    # Written only when they change: the files are older than the list then.
    file(CONFIGURE OUTPUT ${list} CONTENT "${programs}" @ONLY)
    get_filename_component(name ${list} NAME_WE)
    add_custom_command(
        OUTPUT ${files}
        COMMAND ${compile_programs} "$<$<CONFIG:Debug>:-g>" -I${shader_dir} -I${PROJECT_SOURCE_DIR}/shaders ${list}
        DEPENDS ${list} ${compile_programs_source} ${PROJECT_SOURCE_DIR}/src/gpu/shaderc.h
        DEPFILE ${list}.d
        COMMENT "Shader programs ${name}"
        COMMAND_EXPAND_LISTS VERBATIM)
endfunction()

# Embeds sources in TARGET as gpu_shader_texts (src/gpu/program_sources.h): those that programs which are compiled at
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
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/programs/gpu_shader_texts_table.c @ONLY CONTENT [[
/* Written by cmake/Shaders.cmake. */
#include "gpu/program_sources.h"

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
    set(table_file ${PROJECT_BINARY_DIR}/programs/gpu_shader_texts_table.c)
    target_sources(${target} PRIVATE ${table_file})
    set_source_files_properties(${table_file} PROPERTIES OBJECT_DEPENDS "${files}")
endfunction()
