# vknerf_embed_programs(TARGET MANIFEST [TABLE]): compiles the programs that the manifest lists and embeds
# their SPIR-V in TARGET as TABLEs and TABLE_count; TABLE is gpu_program_source (src/gpu/program_sources.h)
# unless a target has programs of its own, which it hands to gpu_add_programs.
#
# A line of the manifest is one program:
#   NAME SOURCE [DEFINE[=VALUE] ...] [+AXIS ...] [@TARGET] [?FEATURE ...]
# A NAME with {a,b,...} stands for one program with each of a, b, ... in that place, and wherever the line
# has {}. MATRIX=MxNxK defines COOPMAT, MATRIX_M, MATRIX_N, MATRIX_K and ACCUMULATE=float, with ?coopmat;
# PRECISION=fp16 defines FP16, PRECISION=fp32 nothing. Each +AXIS makes one more program of the line, NAME_axis, that
# has in its place what a line "+AXIS ..." before lists, the macro AXIS if there is none; DEFINE=VALUE of an
# axis replaces the line's.
# SOURCE is relative to the manifest's folder. Includes are looked up there and in shaders/; @vulkan1.3
# replaces the default target environment vulkan1.2; with ?coopmat the program is left out when the
# compiler does not know cmake/shader_features/coopmat.comp. # starts a comment.
#
# Debug builds carry lines and names (-g), but not -gVS: what that says of arrays sized by specialisation
# constants is invalid SPIR-V. Nothing optimises the SPIR-V: spirv-opt breaks cooperative matrices.

# ---- the tools -------------------------------------------------------------------------------------

if(tool_root)
    set(glslang ${tool_root_run} ${tool_root}/usr/bin/glslangValidator)
    set(spirv_val ${tool_root_run} ${tool_root}/usr/bin/spirv-val)
else()
    find_program(VKNERF_GLSLANG NAMES glslang glslangValidator)
    find_program(VKNERF_SPIRV_VAL spirv-val)
    if(NOT VKNERF_GLSLANG)
        message(FATAL_ERROR "vknerf needs the glslang compiler: install glslang-tools")
    endif()
    set(glslang ${VKNERF_GLSLANG})
    set(spirv_val "")
    if(VKNERF_SPIRV_VAL)
        set(spirv_val ${VKNERF_SPIRV_VAL})
    endif()
endif()

# With shaderc, which is glslang as a library, all programs of a source are compiled in one process, most of whose
# time goes into its start. Sets compile_programs to the command words; to nothing where there is no shaderc, or one
# that lacks a feature (glslang may be newer): then glslang compiles programs one by one.
find_path(VKNERF_SHADERC_INCLUDE shaderc/shaderc.h)
find_library(VKNERF_SHADERC_LIBRARY NAMES shaderc_shared shaderc)
set(shaderc_library ${VKNERF_SHADERC_LIBRARY})
if(tool_root)
    # With the tool root's C library goes its own alone.
    set(shaderc_library ${tool_root_libraries}/libshaderc.so.1)
endif()
set(compile_programs_source ${CMAKE_CURRENT_LIST_DIR}/compile_programs.c)
set(compile_programs_binary ${PROJECT_BINARY_DIR}/compile_programs)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${compile_programs_source})
set(compile_programs "")
if(VKNERF_SHADERC_INCLUDE AND EXISTS "${shaderc_library}")
    try_compile(compiled ${compile_programs_binary}.build ${compile_programs_source}
        CMAKE_FLAGS -DINCLUDE_DIRECTORIES=${VKNERF_SHADERC_INCLUDE}
        LINK_OPTIONS -Wl,--allow-shlib-undefined
        LINK_LIBRARIES ${shaderc_library}
        COPY_FILE ${compile_programs_binary} COPY_FILE_ERROR not_copied)
    if(compiled AND NOT not_copied)
        set(compile_programs ${tool_root_run} ${compile_programs_binary})
    endif()
    file(GLOB features ${CMAKE_CURRENT_LIST_DIR}/shader_features/*.comp)
    foreach(source IN LISTS features)
        execute_process(COMMAND ${compile_programs} ${source}
            -o ${PROJECT_BINARY_DIR}/shader_feature.spv --target-env vulkan1.3
            RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
        if(NOT status EQUAL 0)
            set(compile_programs "")
            break()
        endif()
    endforeach()
endif()
if(compile_programs)
    message(STATUS "Shaders are compiled with ${shaderc_library}")
else()
    message(STATUS "Shaders are compiled by glslang, one at a time: with libshaderc-dev it takes a quarter of the time")
endif()

# Sets RESULT to whether the compiler takes cmake/shader_features/FEATURE.comp.
function(check_shader_feature feature result)
    set(source ${PROJECT_SOURCE_DIR}/cmake/shader_features/${feature}.comp)
    if(NOT EXISTS ${source})
        message(FATAL_ERROR "shaders/programs.txt: unknown feature ?${feature}")
    endif()
    # Asked once per compiler.
    string(MAKE_C_IDENTIFIER "shader_feature_${feature}_${glslang}" key)
    if(NOT DEFINED CACHE{${key}})
        execute_process(
            COMMAND ${glslang} -V --target-env vulkan1.3 -S comp
                -o ${PROJECT_BINARY_DIR}/shader_feature.spv ${source}
            RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
        if(status EQUAL 0)
            set(${key} ON CACHE INTERNAL "")
        else()
            set(${key} OFF CACHE INTERNAL "")
        endif()
        message(STATUS "GLSL compiler has ${feature}: ${${key}}")
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
            if(program MATCHES " MATRIX=" AND NOT program MATCHES " ACCUMULATE=")
                string(APPEND program " ACCUMULATE=float")
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
    file(MAKE_DIRECTORY ${out_dir})
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

        list(APPEND names ${name})
        set(spv ${out_dir}/${name}.spv)
        list(APPEND files ${spv})
        list(TRANSFORM defines PREPEND -D OUTPUT_VARIABLE options)
        list(PREPEND options -o ${spv} --target-env ${environment})
        set(validation "")
        if(spirv_val)
            set(validation COMMAND ${spirv_val} --target-env ${environment} ${spv})
        endif()
        if(VKNERF_PROGRAMS)
            # Compiled already.
        elseif(compile_programs)
            list(APPEND sources ${source})
            list(APPEND spv_of_${source} ${spv})
            list(APPEND options_of_${source} ${options})
            list(APPEND validation_of_${source} ${validation})
        else()
            compile_program("Program ${name}" ${shader_dir} ${source} "${glslang};-V;--quiet;-S;comp"
                ${spv} "${options}" "${validation}")
        endif()
        string(REPLACE ";" " " defines_text "${defines}")
        string(APPEND declarations "EMBED(${name}, \"${spv}\")\n")
        string(APPEND rows "    {\"${name}\", \"${source}\", \"${defines_text}\", program_${name},\n"
            "     program_${name}_end, \"${environment}\", NULL},\n")
    endforeach()

    list(REMOVE_DUPLICATES sources)
    foreach(source IN LISTS sources)
        compile_program("Programs of ${source}" ${shader_dir} ${source} "${compile_programs}"
            "${spv_of_${source}}" "${options_of_${source}}" "${validation_of_${source}}")
    endforeach()

    list(LENGTH names count)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/programs/${table}s_table.c @ONLY CONTENT [[
/* Written by cmake/Shaders.cmake from @manifest@. */
#include "gpu/program_sources.h"

/* The assembler reads the words: hundreds of files of numbers would take the compiler longer than the rest. */
#define EMBED(name, file)                                                          \
    __asm__(".pushsection .rodata\n.balign 4\nprogram_" #name ":\n.incbin \"" file   \
            "\"\nprogram_" #name "_end:\n.global program_" #name ", program_" #name \
            "_end\n.hidden program_" #name ", program_" #name "_end\n.popsection\n"); \
    extern const uint32_t program_##name[], program_##name##_end[];

@declarations@
const struct gpu_program_source @table@s[] = {
@rows@    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};
const size_t @table@_count = @count@;
]])
    set(table_file ${PROJECT_BINARY_DIR}/programs/${table}s_table.c)
    target_sources(${target} PRIVATE ${table_file})
    set_source_files_properties(${table_file} PROPERTIES OBJECT_DEPENDS "${files}")
    message(STATUS "Shader programs of ${target}: ${count}")
endfunction()

# The rule for what one start of the compiler makes: SOURCE -> the files SPV, each by its options, validated.
function(compile_program comment shader_dir source compiler spv options validation)
    list(GET spv 0 first)
    add_custom_command(
        OUTPUT ${spv}
        COMMAND ${compiler} -I${shader_dir} -I${PROJECT_SOURCE_DIR}/shaders "$<$<CONFIG:Debug>:-g>"
            --depfile ${first}.d ${shader_dir}/${source} ${options}
        ${validation}
        DEPENDS ${shader_dir}/${source} ${compile_programs_source}
        DEPFILE ${first}.d
        COMMENT "${comment}"
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
