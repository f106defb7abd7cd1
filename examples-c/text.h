/* A text file in memory, line by line. */
#ifndef TEXT_H
#define TEXT_H

#include <stddef.h>

/* `memory`, or, where it is NULL, a message from errno and the end of the program. */
void *text_need(void *memory, const char *what);

/* The whole file with a NUL behind it. Ends the program where it can't be read. */
char *text_read(const char *path, size_t *len);

/* The length of the line at `at`, its newline included. *blank: nothing in it but spaces, tabs, carriage returns. */
size_t text_line(const char *text, size_t text_len, size_t at, int *blank);

#endif
