/* What file_edit.c does to a text: which edits, in which order, and the result that must come out.
 *
 * Edits are listed by their offset in the ORIGINAL text, ascending; one edit either inserts the header
 * line of a source file or removes one blank line (nothing but spaces, tabs and carriage returns).
 * Their offset in the file being edited is `at` plus the sum of what the edits before them added.
 * `expected` is made by a pass over the text that doesn't look at the edits.
 */
#ifndef EDIT_PLAN_H
#define EDIT_PLAN_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t at;         /* in the original text */
    const char *header;  /* the line to insert, NULL for a removal */
    uint32_t len;        /* bytes to insert or to remove */
} plan_edit;

typedef struct {
    char *text, *expected, *headers;
    size_t text_len, expected_len;
    plan_edit *edits;
    size_t edit_count, header_count;
} edit_plan;

extern const char plan_first_line[]; /* what is inserted at offset 0, after all other edits */

/* Reads the text and the index that make_corpus.py wrote ("offset TAB name" lines), or, where `index_path`
 * is NULL, takes the text for one source file. Prints a message and exits where that is impossible. */
edit_plan *plan_load(const char *text_path, const char *index_path);

/* How much longer the file is after the first `count` edits (negative: shorter). */
int64_t plan_shift(const edit_plan *plan, size_t count);

void plan_free(edit_plan *plan);

#endif
