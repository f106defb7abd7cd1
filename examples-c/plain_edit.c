/* See plain_edit.h. The file is not synced and nothing is atomic: this flatters the plain way. */
#define _POSIX_C_SOURCE 200809L
#include "plain_edit.h"
#include "seconds.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void stop(const char *what)
{
    perror(what);
    exit(2);
}

static void put(int fd, const char *bytes, size_t len, off_t at)
{
    while (len > 0) {
        ssize_t done = pwrite(fd, bytes, len, at);
        if (done <= 0)
            stop("plain file: write");
        bytes += done;
        len -= (size_t)done;
        at += done;
    }
}

static void get(int fd, char *bytes, size_t len, off_t at)
{
    while (len > 0) {
        ssize_t done = pread(fd, bytes, len, at);
        if (done <= 0)
            stop("plain file: read");
        bytes += done;
        len -= (size_t)done;
        at += done;
    }
}

/* Replaces `old_len` bytes at `at` of a file of `size` bytes; returns the new size. */
static size_t splice(int fd, char *room, size_t size, size_t at, size_t old_len, const char *bytes, size_t len)
{
    size_t tail = size - at - old_len;
    memcpy(room, bytes, len);
    get(fd, room + len, tail, (off_t)(at + old_len));
    put(fd, room, len + tail, (off_t)at);
    if (len < old_len && ftruncate(fd, (off_t)(at + len + tail)) != 0)
        stop("plain file: truncate");
    return at + len + tail;
}

plain_result plain_sample(const edit_plan *plan, const char *path, size_t wanted)
{
    plain_result result = {.edits = plan->edit_count < wanted ? plan->edit_count : wanted};
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
    size_t size = plan->text_len, room = size + strlen(plan->headers) + 1;
    char *tail = malloc(room), *must = malloc(room), *to = must;
    size_t copied = 0;
    int64_t shift = 0;
    if (fd < 0 || !tail || !must)
        stop(path);
    put(fd, plan->text, size, 0);
    double start = seconds();
    for (size_t i = 0; i < result.edits; i++) {
        const plan_edit *edit = &plan->edits[i * plan->edit_count / result.edits];
        size_t at = (size_t)((int64_t)edit->at + shift), add = edit->header ? edit->len : 0;
        size_t drop = edit->header ? 0 : edit->len;
        size = splice(fd, tail, size, at, drop, edit->header ? edit->header : "", add);
        shift += (int64_t)add - (int64_t)drop;
        result.bytes_written += size - at;
    }
    result.seconds = seconds() - start;
    for (size_t i = 0; i < result.edits; i++) {
        const plan_edit *edit = &plan->edits[i * plan->edit_count / result.edits];
        memcpy(to, plan->text + copied, edit->at - copied);
        to += edit->at - copied;
        copied = edit->at + (edit->header ? 0 : edit->len);
        memcpy(to, edit->header ? edit->header : "", edit->header ? edit->len : 0);
        to += edit->header ? edit->len : 0;
    }
    memcpy(to, plan->text + copied, plan->text_len - copied);
    to += plan->text_len - copied;
    get(fd, tail, size, 0);
    if ((size_t)(to - must) != size || memcmp(tail, must, size) != 0) {
        fprintf(stderr, "the plain way gave a wrong file\n");
        exit(1);
    }
    free(tail);
    free(must);
    close(fd);
    unlink(path);
    return result;
}
