/* Embeds files in programs: by .incbin, because compiling hundreds of arrays of numbers would take
 * longer than all other code. */
#ifndef VKNERF_EMBED_H
#define VKNERF_EMBED_H

#ifdef __ELF__
#define EMBED_SECTION      ".pushsection .rodata\n"
#define EMBED_HIDDEN(name) ".hidden " name ", " name "_end\n.popsection\n"
#else /* objects of Windows: no symbol is visible outside a program */
#define EMBED_SECTION      ".section .rdata,\"dr\"\n"
#define EMBED_HIDDEN(name) ".text\n"
#endif

/* Defines the arrays NAME, with the file's bytes, and NAME_end, where they end. */
#define EMBED(type, name, file)                                                           \
    __asm__(EMBED_SECTION #name ":\n.incbin \"" file "\"\n" #name "_end:\n.global " #name \
                                ", " #name "_end\n" EMBED_HIDDEN(#name));                 \
    extern const type name[], name##_end[];

#endif
