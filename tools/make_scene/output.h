/* Files of the data set: written, or compared with those that are there. */
#ifndef MAKE_SCENE_OUTPUT_H
#define MAKE_SCENE_OUTPUT_H

#include <stddef.h>

/* A growing buffer. Zero-initialised is empty; the owner frees bytes. failed: memory ran out. */
typedef struct buffer {
    unsigned char *bytes;
    size_t size, capacity;
    int failed;
} buffer;

void buffer_append(buffer *b, const void *bytes, size_t size);

/* Appends formatted text of at most 255 characters. */
void buffer_print(buffer *b, const char *format, ...);

/* Appends a PNG of size x size straight-alpha RGBA pixels. */
void buffer_png(buffer *b, const unsigned char *rgba, int size);

/* Both return 0, or -1 after saying on standard error which file and why. */
int output_write(const char *path, const buffer *content);
int output_compare(const char *path, const buffer *content);

/* Creates the folder unless it exists; returns 0, or -1 after saying why on standard error. */
int output_folder(const char *path);

#endif
