/* See text.h. */
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *text_need(void *memory, const char *what)
{
    if (!memory) {
        perror(what);
        exit(2);
    }
    return memory;
}

char *text_read(const char *path, size_t *len)
{
    FILE *file = text_need(fopen(path, "rb"), path);
    size_t room = 1 << 20, have = 0, got;
    char *bytes = text_need(malloc(room + 1), path);
    while ((got = fread(bytes + have, 1, room - have, file)) > 0) {
        have += got;
        if (have == room)
            bytes = text_need(realloc(bytes, (room *= 2) + 1), path);
    }
    if (ferror(file))
        text_need(NULL, path);
    fclose(file);
    bytes[have] = '\0';
    *len = have;
    return bytes;
}

size_t text_line(const char *text, size_t text_len, size_t at, int *blank)
{
    const char *line = text + at, *stop = memchr(line, '\n', text_len - at);
    size_t len = stop ? (size_t)(stop - line) + 1 : text_len - at, i = 0;
    while (i < len && strchr(" \t\r\n", line[i]) && line[i])
        i++;
    *blank = i == len;
    return len;
}
