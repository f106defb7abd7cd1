/* See edit_plan.h. Plain C over memory: nothing in here knows FlexFile. */
#include "edit_plan.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char plan_first_line[] = "==== edited in place by file_edit: a header per source file, no blank lines ====\n";

static void add_edit(edit_plan *plan, size_t *room, uint64_t at, const char *header, size_t len)
{
    if (plan->edit_count == *room)
        plan->edits = text_need(realloc(plan->edits, (*room *= 2) * sizeof *plan->edits), "edits");
    plan->edits[plan->edit_count++] = (plan_edit){at, header, (uint32_t)len};
    plan->header_count += header != NULL;
}

/* Headers come first in the list; the blank lines are merged into it by offset. */
static void list_edits(edit_plan *plan, const uint64_t *starts, size_t count)
{
    size_t room = 4096, source = 0, len = 0;
    const char *header = plan->headers;
    int blank;
    plan->edits = text_need(malloc(room * sizeof *plan->edits), "edits");
    for (size_t at = 0; at < plan->text_len || source < count; at += len) {
        for (; source < count && starts[source] <= at; source++) {
            size_t header_len = (size_t)(strchr(header, '\n') - header) + 1;
            add_edit(plan, &room, starts[source], header, header_len);
            header += header_len;
        }
        len = at < plan->text_len ? text_line(plan->text, plan->text_len, at, &blank) : 0;
        if (len > 0 && blank)
            add_edit(plan, &room, at, NULL, len);
    }
}

/* The result in one pass: first line, then per source file its header and its lines that are not blank. */
static void build_expected(edit_plan *plan, const uint64_t *starts, size_t count)
{
    size_t first = strlen(plan_first_line), len;
    char *to = plan->expected = text_need(malloc(first + strlen(plan->headers) + plan->text_len + 1), "expected result");
    const char *header = plan->headers;
    int blank;
    memcpy(to, plan_first_line, first);
    to += first;
    for (size_t source = 0; source < count; source++) {
        size_t end = source + 1 < count ? starts[source + 1] : plan->text_len;
        do
            *to++ = *header;
        while (*header++ != '\n');
        for (size_t at = starts[source]; at < end; at += len) {
            len = text_line(plan->text, plan->text_len, at, &blank);
            memcpy(to, plan->text + at, blank ? 0 : len);
            to += blank ? 0 : len;
        }
    }
    plan->expected_len = (size_t)(to - plan->expected);
}

/* Where each source file starts; their header lines go to plan->headers, one after the other. */
static uint64_t *read_index(edit_plan *plan, char *index, size_t index_len, size_t *count)
{
    uint64_t *starts = text_need(malloc((index_len / 2 + 1) * sizeof *starts), "index");
    char *to = plan->headers = text_need(malloc(index_len * 8 + 64), "headers");
    *to = '\0';
    *count = 0;
    for (char *line = index; *line; ) {
        char *name, *end = line + strcspn(line, "\n");
        uint64_t start = strtoull(line, &name, 10);
        uint64_t least = *count ? starts[*count - 1] : 0;
        int at_line = start == 0 || (start <= plan->text_len && plan->text[start - 1] == '\n');
        if (*name != '\t' || start < least || (*count == 0 && start != 0) || !at_line) {
            fprintf(stderr, "the index does not fit the text at: %.*s\n", (int)(end - line), line);
            exit(2);
        }
        to += sprintf(to, "==== %.*s\n", (int)(end - name - 1), name + 1);
        starts[(*count)++] = start;
        line = *end ? end + 1 : end;
    }
    if (*count == 0) {
        fprintf(stderr, "the index names no source file\n");
        exit(2);
    }
    return starts;
}

edit_plan *plan_load(const char *text_path, const char *index_path)
{
    edit_plan *plan = text_need(calloc(1, sizeof *plan), "plan");
    size_t index_len, count;
    char *index;
    plan->text = text_read(text_path, &plan->text_len);
    if (index_path) {
        index = text_read(index_path, &index_len);
    } else {
        index_len = strlen(text_path) + 3;
        index = text_need(malloc(index_len + 1), "index");
        sprintf(index, "0\t%s\n", text_path);
    }
    uint64_t *starts = read_index(plan, index, index_len, &count);
    list_edits(plan, starts, count);
    build_expected(plan, starts, count);
    free(starts);
    free(index);
    return plan;
}

int64_t plan_shift(const edit_plan *plan, size_t count)
{
    int64_t shift = 0;
    for (size_t i = 0; i < count; i++)
        shift += plan->edits[i].header ? (int64_t)plan->edits[i].len : -(int64_t)plan->edits[i].len;
    return shift;
}

void plan_free(edit_plan *plan)
{
    free(plan->text);
    free(plan->expected);
    free(plan->headers);
    free(plan->edits);
    free(plan);
}
