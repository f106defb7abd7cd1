/* The plain way: the same edits on an ordinary file, where each one moves and rewrites everything behind it. */
#ifndef PLAIN_EDIT_H
#define PLAIN_EDIT_H

#include "edit_plan.h"

typedef struct {
    size_t edits;           /* how many were timed */
    double seconds;
    uint64_t bytes_written;
} plain_result;

/* Writes the original text to `path`, applies up to `wanted` of the plan's edits, spread evenly over the
 * text, and compares the file with what they must give. Prints a message and exits where that fails. */
plain_result plain_sample(const edit_plan *plan, const char *path, size_t wanted);

#endif
