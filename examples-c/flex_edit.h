/* The FlexFile way: each edit is one insert or collapse, whatever lies behind it; GROUP of them per atomic commit. */
#ifndef FLEX_EDIT_H
#define FLEX_EDIT_H

#include "edit_plan.h"
#include "report.h"

/* One life of the editing process. Opens the space, imports the text unless that is done, goes on with the edits where
 * the commit word says, exports the result and compares it. Before edit number `kill_at` it dies by SIGKILL, in the
 * middle of a group. Prints a message and exits where anything fails. */
void flex_session(const edit_plan *plan, const char *space_path, const char *result_path, size_t kill_at,
                  run_report *report);

#endif
