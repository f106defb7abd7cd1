/* See flex_edit.h. Everything that the example does with FlexFile is in here. */
#define _POSIX_C_SOURCE 200809L
#include "flex_edit.h"
#include "seconds.h"
#include "text.h"

#include <flexfile.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GROUP = REPORT_GROUP, GROUPS_PER_SYNC = 20, CHUNK = 1 << 20 };
enum { IMPORTED = 1 }; /* the commit word: 0, or this + the number of edits that are done */

#define MUST(call) must((call), #call)

static void must(int32_t status, const char *call)
{
    if (status == FLEXFILE_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", call, flexfile_status_string(status), flexfile_last_error_message());
    exit(1);
}

static void import(flexspace *space, flexfile *file, const edit_plan *plan, run_report *report)
{
    flexspace_group *group;
    double start = seconds();
    MUST(flexfile_truncate(file, 0)); /* what an import that was killed may have left */
    for (size_t at = 0; at < plan->text_len; at += CHUNK)
        MUST(flexfile_append(file, plan->text + at, plan->text_len - at < CHUNK ? plan->text_len - at : CHUNK, NULL));
    MUST(flexspace_group_begin(space, &file, 1, &group));
    MUST(flexspace_group_set_commit_word(group, IMPORTED));
    MUST(flexspace_group_commit(&group));
    MUST(flexfile_sync(file));
    report_import(report, plan, file, seconds() - start);
}

/* One edit; *shift is what the edits before it added, and is brought up to date. */
static void apply(flexspace_group *group, flexfile *file, const plan_edit *edit, int64_t *shift)
{
    uint64_t at = (uint64_t)((int64_t)edit->at + *shift);
    if (edit->header)
        MUST(flexspace_group_insert(group, file, at, edit->header, edit->len));
    else
        MUST(flexspace_group_collapse(group, file, at, edit->len));
    *shift += edit->header ? (int64_t)edit->len : -(int64_t)edit->len;
}

/* The edits from `done` on. With `done` == `kill_at` the process dies, in the middle of a group. */
static void edit(flexspace *space, flexfile *file, const edit_plan *plan, size_t done, size_t kill_at, run_report *report)
{
    int64_t shift = plan_shift(plan, done);
    double start = seconds();
    for (size_t groups = 1; done < plan->edit_count; groups++) {
        size_t first = done, end = plan->edit_count - done < GROUP ? plan->edit_count : done + GROUP;
        flexspace_group *group;
        MUST(flexspace_group_begin(space, &file, 1, &group));
        for (; done < end; done++) {
            if (done == kill_at) {
                report_edits(report, file, seconds() - start);
                report_kill(first, done - first);
                kill(getpid(), SIGKILL);
            }
            apply(group, file, &plan->edits[done], &shift);
            report->edits_done++;
        }
        MUST(flexspace_group_set_commit_word(group, IMPORTED + done));
        MUST(flexspace_group_commit(&group));
        if (groups % GROUPS_PER_SYNC == 0)
            MUST(flexfile_sync(file));
    }
    MUST(flexfile_insert(file, 0, plan_first_line, strlen(plan_first_line)));
    MUST(flexfile_checkpoint(file)); /* so that the figures have the tree in them; sync would make it durable, too */
    report_edits(report, file, seconds() - start);
}

static void export_and_compare(flexfile *file, const edit_plan *plan, const char *path, run_report *report)
{
    char *chunk = text_need(malloc(CHUNK), path);
    FILE *out = text_need(fopen(path, "wb"), path);
    uint64_t at = 0;
    size_t len;
    double start = seconds();
    do {
        MUST(flexfile_read(file, at, chunk, CHUNK, &len));
        at += fwrite(chunk, 1, len, out);
    } while (len == CHUNK);
    if (fclose(out) != 0)
        text_need(NULL, path);
    free(chunk);
    report_compare(report, plan, path, seconds() - start);
}

void flex_session(const edit_plan *plan, const char *space_path, const char *result_path, size_t kill_at,
                  run_report *report)
{
    flexfile *file;
    flexspace *space;
    uint64_t word, size;
    double start = seconds();
    MUST(flexfile_open(space_path, NULL, &file));
    MUST(flexfile_space(file, &space));
    MUST(flexspace_commit_word(space, &word));
    MUST(flexfile_size(file, &size));
    if (word < IMPORTED)
        import(space, file, plan, report);
    else
        report_found(plan, report, word - IMPORTED, size, seconds() - start);
    edit(space, file, plan, word < IMPORTED ? 0 : (size_t)(word - IMPORTED), kill_at, report);
    export_and_compare(file, plan, result_path, report);
    MUST(flexfile_check(file, NULL, NULL, NULL, NULL)); /* every checksum and cross-reference in the space */
    MUST(flexspace_close(&space));
    MUST(flexfile_close(&file));
}
