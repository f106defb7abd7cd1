/* See report.h. */
#include "report.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MB(bytes) ((double)(bytes) / 1e6)

void report_plan(const edit_plan *plan, const char *text_path, double took)
{
    printf("text      %.1f MB from %s\n", MB(plan->text_len), text_path);
    printf("plan      %zu edits: %zu header lines to insert, %zu blank lines to remove; then a line at offset 0\n",
           plan->edit_count, plan->header_count, plan->edit_count - plan->header_count);
    printf("          (reading the text, and the expected result in one pass in memory: %.2f s)\n", took);
}

/* Adds to `sum` what the space wrote since the last call, or since it was opened. */
static void add_bytes(run_report *report, bytes_written *sum, flexfile *file)
{
    flexspace_stats stats = {.struct_size = sizeof stats};
    if (flexfile_get_stats(file, &stats) != FLEXFILE_OK) {
        fprintf(stderr, "statistics: %s\n", flexfile_last_error_message());
        exit(1);
    }
    bytes_written now = {stats.user_bytes_written, stats.data_bytes_written, stats.tree_bytes_written,
                         stats.log_bytes_written, stats.gc_bytes_written};
    sum->user += now.user - report->before.user;
    sum->data += now.data - report->before.data;
    sum->tree += now.tree - report->before.tree;
    sum->log += now.log - report->before.log;
    sum->gc += now.gc - report->before.gc;
    report->before = now;
    report->disk_bytes = stats.disk_bytes;
    report->extents = stats.extents;
}

void report_import(run_report *report, const edit_plan *plan, flexfile *file, double took)
{
    report->import_seconds += took;
    add_bytes(report, &report->import_bytes, file);
    printf("import    %.1f MB in %.2f s, synced\n", MB(plan->text_len), took);
}

void report_kill(uint64_t committed, uint64_t in_open_group)
{
    printf("kill      by SIGKILL: %llu edits committed, %llu more in an open group\n", (unsigned long long)committed,
           (unsigned long long)in_open_group);
    fflush(stdout);
}

void report_found(const edit_plan *plan, run_report *report, uint64_t edits, uint64_t size, double took)
{
    report->before = (bytes_written){0};
    uint64_t must = edits > plan->edit_count ? 0 : plan->text_len + (uint64_t)plan_shift(plan, (size_t)edits);
    printf("reopen    in %.3f s: the commit word says %llu edits, the file has %llu bytes\n", took,
           (unsigned long long)edits, (unsigned long long)size);
    if (size != must) {
        fprintf(stderr, "after %llu edits it should have %llu\n", (unsigned long long)edits, (unsigned long long)must);
        exit(1);
    }
    printf("          as it must be after so many; going on from there\n");
}

void report_edits(run_report *report, flexfile *file, double took)
{
    report->edit_seconds += took;
    add_bytes(report, &report->edit_bytes, file);
}

void report_compare(run_report *report, const edit_plan *plan, const char *path, double took)
{
    size_t len, same = 0;
    char *result = text_read(path, &len);
    report->export_seconds = took;
    while (same < len && same < plan->expected_len && result[same] == plan->expected[same])
        same++;
    if (len != plan->expected_len || same != len) {
        fprintf(stderr, "%s: %zu bytes, expected %zu; the first difference is at %zu\n", path, len,
                plan->expected_len, same);
        exit(1);
    }
    printf("export    %.1f MB in %.2f s to %s\n", MB(len), took, path);
    printf("compare   all %zu bytes are the expected ones\n", len);
    free(result);
}

static void print_bytes(const char *what, const bytes_written *bytes)
{
    printf("%-9s %.1f MB written by the program -> data %.1f, tree %.1f, log %.1f, gc %.1f MB to disk\n", what,
           MB(bytes->user), MB(bytes->data), MB(bytes->tree), MB(bytes->log), MB(bytes->gc));
}

void report_table(const edit_plan *plan, const run_report *report, const plain_result *plain)
{
    const bytes_written *bytes = &report->edit_bytes;
    double flex_each = report->edit_seconds / (double)(report->edits_done ? report->edits_done : 1);
    double flex_bytes = (double)(bytes->data + bytes->tree + bytes->log + bytes->gc);
    double plain_each = plain->seconds / (double)(plain->edits ? plain->edits : 1);
    double plain_bytes = (double)plain->bytes_written / (double)(plain->edits ? plain->edits : 1);
    double all = (double)plan->edit_count;
    print_bytes("import", &report->import_bytes);
    print_bytes("edits", bytes);
    printf("space     %.1f MB on disk, %llu extents\n\n", MB(report->disk_bytes), (unsigned long long)report->extents);
    printf("%-34s %14s %26s\n", "", "FlexFile", "move and rewrite the rest");
    printf("%-34s %14llu %14zu, %s\n", "edits done", (unsigned long long)report->edits_done, plain->edits,
           plain->edits < plan->edit_count ? "a sample" : "all");
    printf("%-34s %14.3f %26.3f\n", "seconds", report->edit_seconds, plain->seconds);
    printf("%-34s %14.0f %26.0f\n", "edits per second", 1 / flex_each, 1 / plain_each);
    printf("%-34s %14.0f %26.0f\n", "bytes written per edit", flex_bytes / (double)report->edits_done, plain_bytes);
    printf("%-34s %14.3f %26.3f\n", "seconds for all edits", flex_each * all, plain_each * all);
    printf("%-34s %14.3f %26.3f\n", "GB written for all edits", flex_bytes / 1e9, plain_bytes * all / 1e9);
    if (plain->edits < plan->edit_count)
        printf("The last two figures on the right are EXTRAPOLATED from the sample: edits spread evenly over the text.\n");
    printf("The plain way was neither synced nor atomic. FlexFile: commits of %d edits, synced, one kill included.\n",
           REPORT_GROUP);
}
