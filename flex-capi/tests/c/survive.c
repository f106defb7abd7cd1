// What survives: everything synced, the death of the process; nothing wrong, damage on disk.
#include "check.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINES = 500, SYNCED = 300, LINE = 16 };

// Inserts lines at the front, syncs once, goes on, and dies without a close. Runs in a child.
static void write_and_die(const char *path) {
  flexfile *file = NULL;
  OK(flexfile_open(path, NULL, &file));
  for (int i = 0; i < LINES; i++) {
    char line[LINE + 1];
    snprintf(line, sizeof line, "line %010d\n", i);
    OK(flexfile_insert(file, 0, line, LINE));
    if (i + 1 == SYNCED) OK(flexfile_sync(file));
  }
  kill(getpid(), SIGKILL);
}

static void a_killed_process(const char *path) {
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(120);
    write_and_die(path);
    _exit(1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);

  flexfile *file = NULL;
  flexfile_buf buf = {0, 0, 0};
  OK(flexfile_open(path, NULL, &file));
  OK(flexfile_read_buf(file, 0, UINT64_MAX, &buf));
  // A prefix of the inserts, with all that were synced: whole lines, counting down to 0.
  CHECK(buf.len % LINE == 0 && buf.len / LINE >= SYNCED && buf.len / LINE <= LINES);
  size_t count = buf.len / LINE;
  for (size_t i = 0; i < count; i++) {
    char line[LINE + 1];
    snprintf(line, sizeof line, "line %010d\n", (int)(count - 1 - i));
    CHECK(memcmp(buf.data + i * LINE, line, LINE) == 0);
  }
  flexfile_buf_free(&buf);
  OK(flexfile_check(file, NULL, NULL, NULL, NULL));
  OK(flexfile_close(&file));
}

static void every_commit(const char *path) {
  flexfile_options *options = NULL;
  flexfile *file = NULL;
  flexspace_stats stats;
  stats.struct_size = sizeof stats;
  OK(flexfile_options_new(&options));
  OK(flexfile_options_set_durability(options, FLEXFILE_DURABILITY_EVERY_COMMIT, 0));
  OK(flexfile_open(path, options, &file));
  for (int i = 0; i < 3; i++) {
    OK(flexfile_append(file, "x", 1, NULL));
    OK(flexfile_get_stats(file, &stats));
    CHECK(stats.durable_sequence == stats.sequence);
  }
  OK(flexfile_close(&file));
  flexfile_options_free(&options);
}

static const char needle[] = "a needle that no other bytes of the space look like";

// Changes one byte of the needle in DATA.
static void damage(const char *data) {
  FILE *it = fopen(data, "r+b");
  CHECK(it != NULL);
  static char bytes[1 << 20];
  size_t len = fread(bytes, 1, sizeof bytes, it);
  char *found = memmem(bytes, len, needle, sizeof needle - 1);
  CHECK(found != NULL);
  CHECK(fseek(it, found - bytes, SEEK_SET) == 0 && fputc('A', it) == 'A' && fclose(it) == 0);
}

struct heard {
  uint64_t problems;
  int of_data;
};

static void hear(void *ctx, const char *file, uint64_t offset, const char *text) {
  struct heard *heard = ctx;
  heard->problems++;
  heard->of_data += strstr(file, "DATA") != NULL && offset < 1 << 20 && strlen(text) > 0;
}

static void a_damaged_byte(const char *directory) {
  const char *path = below(directory, "damaged");
  flexfile *file = NULL;
  OK(flexfile_open(path, NULL, &file));
  OK(flexfile_write(file, 0, needle, sizeof needle - 1));
  OK(flexfile_close(&file));
  damage(below(directory, "damaged/DATA"));

  OK(flexfile_open(path, NULL, &file));
  char bytes[sizeof needle];
  size_t len = 77;
  STATUS(flexfile_read(file, 0, bytes, sizeof bytes, &len), FLEXFILE_CORRUPTION);
  CHECK(len == 77 && strstr(flexfile_last_error_message(), "DATA") != NULL);
  flexspace_check_report report;
  report.struct_size = sizeof report;
  struct heard heard = {0, 0};
  STATUS(flexfile_check(file, NULL, hear, &heard, &report), FLEXFILE_PROBLEMS_FOUND);
  CHECK(report.problems >= 1 && heard.problems == report.problems && heard.of_data >= 1);
  CHECK(strstr(flexfile_last_error_message(), "DATA") != NULL);
  STATUS(flexfile_check(file, NULL, NULL, NULL, NULL), FLEXFILE_PROBLEMS_FOUND);
  OK(flexfile_close(&file));
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  a_killed_process(below(argv[1], "killed"));
  every_commit(below(argv[1], "every"));
  a_damaged_byte(argv[1]);
  return 0;
}
