/* What file_edit.c measures and prints. The figures are summed over the lives of the editing process, so they lie in
 * memory that those processes share. */
#ifndef REPORT_H
#define REPORT_H

#include "edit_plan.h"
#include "plain_edit.h"

#include <flexfile.h>

enum { REPORT_GROUP = 500 }; /* edits per atomic commit */

typedef struct {
    uint64_t user, data, tree, log, gc;
} bytes_written;

typedef struct {
    double import_seconds, edit_seconds, export_seconds;
    uint64_t edits_done;                 /* those that the kill lost and that were done again included */
    bytes_written import_bytes, edit_bytes;
    bytes_written before;                /* since this process opened the space, up to the phase that runs */
    uint64_t disk_bytes, extents;
} run_report;

void report_plan(const edit_plan *plan, const char *text_path, double took);
void report_import(run_report *report, const edit_plan *plan, flexfile *file, double took);
void report_kill(uint64_t committed, uint64_t in_open_group);

/* What was found after reopening. Exits where the file's size is not what `edits` edits give. */
void report_found(const edit_plan *plan, run_report *report, uint64_t edits, uint64_t size, double took);
void report_edits(run_report *report, flexfile *file, double took);

/* Compares the exported file with the expected result; exits where they differ. */
void report_compare(run_report *report, const edit_plan *plan, const char *path, double took);
void report_table(const edit_plan *plan, const run_report *report, const plain_result *plain);

#endif
