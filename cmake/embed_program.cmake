# cmake -D NAME=... -D SPV=... -D OUT_DIR=... -P embed_program.cmake
# Writes OUT_DIR/NAME.c with the words of the SPIR-V file and OUT_DIR/NAME.h with their declaration.

file(READ ${SPV} hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR words "${digits} / 8")
if(words EQUAL 0)
    message(FATAL_ERROR "${SPV} is empty")
endif()

# SPIR-V words are little-endian in the file; eight of them make a line.
string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1," text "${hex}")
string(REPEAT "[^,]*," 8 eight)
string(REGEX REPLACE "(${eight})" "    \\1\n" text "${text}")

file(WRITE ${OUT_DIR}/${NAME}.c "#include \"${NAME}.h\"

const uint32_t program_${NAME}[] = {
${text}
};
")
file(WRITE ${OUT_DIR}/${NAME}.h "#include <stdint.h>

extern const uint32_t program_${NAME}[];
enum { program_${NAME}_words = ${words} };
")
