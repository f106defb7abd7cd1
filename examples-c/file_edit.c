/* Edits a large text in place, hundreds of thousands of times, and is killed once on the way.
 *
 * usage: file_edit DIR TEXT [INDEX]      (make run; the space, the result and the plain file go to DIR)
 *
 * The text goes into a FlexFile. Then every source file in it gets a header line, every blank line is removed, and
 * one line is inserted at offset 0: one insert or collapse each, some hundred per atomic commit. Each commit leaves in
 * the commit word how far it came, so that after the kill a new process goes on where the durable state is.
 * The exit status is 0 only if the result is, byte for byte, what one pass over the text in memory gives.
 */
#define _DEFAULT_SOURCE
#include "flex_edit.h"
#include "plain_edit.h"
#include "seconds.h"
#include "text.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs a session in a process of its own; returns what waitpid says about its end. */
static int run_session(const edit_plan *plan, const char *dir, size_t kill_at, run_report *report)
{
    char space_path[4096], result_path[4096];
    snprintf(space_path, sizeof space_path, "%s/space", dir);
    snprintf(result_path, sizeof result_path, "%s/result.txt", dir);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        flex_session(plan, space_path, result_path, kill_at, report);
        fflush(stdout);
        _exit(0);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child)
        text_need(NULL, "editing process");
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: file_edit DIR TEXT [INDEX]\n");
        return 2;
    }
    char plain_path[4096];
    snprintf(plain_path, sizeof plain_path, "%s/plain.txt", argv[1]);
    double start = seconds();
    edit_plan *plan = plan_load(argv[2], argc == 4 ? argv[3] : NULL);
    report_plan(plan, argv[2], seconds() - start);
    run_report *report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED)
        text_need(NULL, "mmap");

    size_t half = plan->edit_count / 2; /* in the middle of a group, too, where there are some */
    if (plan->edit_count > 2 * REPORT_GROUP)
        half += REPORT_GROUP / 2 - half % REPORT_GROUP;
    int status = run_session(plan, argv[1], half, report);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
        fprintf(stderr, "the first process should have died by SIGKILL\n");
        return 1;
    }
    status = run_session(plan, argv[1], SIZE_MAX, report);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return 1;
    plain_result plain = plain_sample(plan, plain_path, 200);
    report_table(plan, report, &plain);
    plan_free(plan);
    return 0;
}
