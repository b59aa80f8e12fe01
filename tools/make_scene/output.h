/* Declares functions that write files of the data set or compare them with existing ones. */
#ifndef MAKE_SCENE_OUTPUT_H
#define MAKE_SCENE_OUTPUT_H

#include <stddef.h>

/* A growing buffer, initialised with zeros. The owner frees bytes. failed: out of memory. */
typedef struct buffer {
    unsigned char *bytes;
    size_t size, capacity;
    int failed;
} buffer;

void buffer_append(buffer *b, const void *bytes, size_t size);

/* Appends formatted text of at most 255 characters. */
void buffer_print(buffer *b, const char *format, ...);

/* Appends a PNG of size x size RGBA pixels with straight alpha. */
void buffer_png(buffer *b, const unsigned char *rgba, int size);

/* Write a file, or compare a file with `content`. Return 0, or -1 after an error message. */
int output_write(const char *path, const buffer *content);
int output_compare(const char *path, const buffer *content);

/* Creates a folder unless it exists. Returns 0, or -1 after an error message. */
int output_folder(const char *path);

#endif
