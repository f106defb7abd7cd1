// Misuse answers with a code and changes nothing: NULLs, double closes, dead spaces, bad numbers, foreign directories,
// second opens, forks.
#include "check.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BAD(call) STATUS(call, FLEXFILE_INVALID_ARGUMENT)

static void nulls_of_a_file(flexfile *file) {
  char bytes[4];
  size_t len = 77;
  uint64_t value = 77;
  uint16_t tag = 77;
  flexfile_extent extent = {sizeof extent, 0, 0, 0, 0, 0};
  flexfile_cursor *cursor = NULL;
  flexfile_snapshot *snapshot = NULL;
  flexspace *space = NULL;
  flexfile_buf buf = {0, 0, 0};
  struct iovec iov[1] = {{NULL, 1}};

  BAD(flexfile_size(NULL, &value));
  BAD(flexfile_size(file, NULL));
  BAD(flexfile_id(NULL, &value));
  BAD(flexfile_extent_count(NULL, &value));
  BAD(flexfile_space(NULL, &space));
  BAD(flexfile_space(file, NULL));
  BAD(flexfile_read(NULL, 0, bytes, 4, &len));
  BAD(flexfile_read(file, 0, NULL, 4, &len));
  BAD(flexfile_read(file, 0, bytes, 4, NULL));
  BAD(flexfile_read_buf(file, 0, 4, NULL));
  BAD(flexfile_readv(file, 0, NULL, 1, &len));
  BAD(flexfile_readv(file, 0, iov, 1, &len));
  BAD(flexfile_write(NULL, 0, "x", 1));
  BAD(flexfile_write(file, 0, NULL, 1));
  BAD(flexfile_writev(file, 0, iov, 1));
  BAD(flexfile_insert(file, 0, NULL, 1));
  BAD(flexfile_insertv(file, 0, NULL, 3));
  BAD(flexfile_update(file, 0, 0, NULL, 1));
  BAD(flexfile_append(file, NULL, 1, &value));
  BAD(flexfile_collapse(NULL, 0, 1));
  BAD(flexfile_truncate(NULL, 0));
  BAD(flexfile_read_extent(file, 0, bytes, 4, NULL, &len));
  BAD(flexfile_read_extent(file, 0, bytes, 4, &extent, NULL));
  BAD(flexfile_read_extent_buf(file, 0, &buf, NULL));
  BAD(flexfile_get_tag(file, 0, NULL));
  BAD(flexfile_next_tagged(file, 0, NULL, &tag));
  BAD(flexfile_next_data(file, 0, NULL));
  BAD(flexfile_cursor_new(file, 0, NULL));
  BAD(flexfile_cursor_new(NULL, 0, &cursor));
  BAD(flexfile_cursor_next(NULL));
  BAD(flexfile_cursor_get(NULL, &extent));
  BAD(flexfile_snapshot_new(file, NULL));
  BAD(flexfile_snapshot_read(NULL, 0, bytes, 4, &len));
  BAD(flexfile_snapshot_cursor_new(snapshot, 0, &cursor));
  BAD(flexfile_gc(NULL, &value, &value));
  BAD(flexfile_get_stats(file, NULL));
  BAD(flexfile_last_error_into(NULL, 9, &len));
  BAD(flexfile_last_error_into(NULL, 0, NULL));
  CHECK(len == 77 && value == 77 && tag == 77 && space == NULL && cursor == NULL && buf.data == NULL);
  CONTENT(file, "content");

  // No bytes are no misuse.
  OK(flexfile_write(file, 0, NULL, 0));
  OK(flexfile_insert(file, 0, NULL, 0));
  OK(flexfile_writev(file, 0, NULL, 0));
  OK(flexfile_read(file, 0, NULL, 0, &len));
  CHECK(len == 0);
  CONTENT(file, "content");
}

static void nulls_of_a_space(const char *path) {
  flexspace *space = NULL;
  flexfile *file = NULL;
  uint64_t value = 77;
  BAD(flexspace_open(NULL, NULL, &space));
  BAD(flexspace_open("", NULL, &space));
  BAD(flexspace_open(path, NULL, NULL));
  BAD(flexfile_open(NULL, NULL, &file));
  OK(flexspace_open(path, NULL, &space));
  BAD(flexspace_create_file(space, NULL, &file));
  BAD(flexspace_create_file(space, "a", NULL));
  BAD(flexspace_create_file(space, "", &file));
  char name[257];
  memset(name, 'n', sizeof name);
  name[256] = 0;
  BAD(flexspace_create_file(space, name, &file));
  name[255] = 0;
  OK(flexspace_create_file(space, name, &file));
  BAD(flexspace_open_file(NULL, "a", &file));
  BAD(flexspace_rename_file(space, NULL, "b"));
  BAD(flexspace_rename_file(space, name, ""));
  BAD(flexspace_remove_file(space, NULL));
  BAD(flexspace_list_files(space, NULL));
  BAD(flexspace_snapshot_new(space, NULL));
  BAD(flexspace_commit_word(space, NULL));
  BAD(flexspace_commit_word(NULL, &value));
  flexspace_group *group = NULL;
  flexfile *files[2] = {file, NULL};
  BAD(flexspace_group_begin(space, files, 2, &group));
  BAD(flexspace_group_begin(space, NULL, 2, &group));
  BAD(flexspace_group_begin(space, files, 1, NULL));
  BAD(flexspace_group_write(NULL, file, 0, "x", 1));
  CHECK(flexspace_file_list_count(NULL) == 0);
  CHECK(value == 77 && group == NULL);
  OK(flexfile_close(&file));
  OK(flexspace_close(&space));

  // Ending nothing does nothing.
  OK(flexspace_close(&space));
  OK(flexspace_close(NULL));
  OK(flexfile_close(&file));
  OK(flexfile_close(NULL));
  OK(flexspace_group_commit(&group));
  OK(flexspace_group_commit(NULL));
  flexspace_group_free(NULL);
  flexfile_options_free(NULL);
  flexfile_cursor_free(NULL);
  flexfile_snapshot_free(NULL);
  flexspace_snapshot_free(NULL);
  flexspace_file_list_free(NULL);
  flexfile_buf_free(NULL);
}

static void numbers(flexfile *file) {
  flexfile_options *options = NULL;
  OK(flexfile_options_new(&options));
  BAD(flexfile_options_set_flags(options, 16));
  BAD(flexfile_options_set_flags(options, 0x80000000u));
  BAD(flexfile_options_set_flags(options, FLEXFILE_OPEN_EXCLUSIVE | FLEXFILE_OPEN_EXISTING));
  BAD(flexfile_options_set_durability(options, 3, 0));
  BAD(flexfile_options_set_durability(options, -1, 0));
  BAD(flexfile_options_set_durability(options, FLEXFILE_DURABILITY_INTERVAL, 0));
  BAD(flexfile_options_set_durability(options, FLEXFILE_DURABILITY_MANUAL, 5));
  BAD(flexfile_options_set_segment_size(options, 65537));
  BAD(flexfile_options_set_segment_size(options, 32768));
  BAD(flexfile_options_set_segment_size(options, 0));
  BAD(flexfile_options_set_flags(NULL, 0));
  BAD(flexfile_options_set_log(NULL, NULL, NULL));
  BAD(flexfile_options_new(NULL));
  flexfile_options_free(&options);
  flexfile_options_free(&options);

  // struct_size: never set, too small, absurd; larger than this version's is fine and zeroed behind.
  flexspace_stats stats[2];
  memset(stats, 0, sizeof stats);
  BAD(flexfile_get_stats(file, stats));
  stats[0].struct_size = sizeof(size_t);
  BAD(flexfile_get_stats(file, stats));
  stats[0].struct_size = (size_t)-1;
  BAD(flexfile_get_stats(file, stats));
  memset(stats, 0xff, sizeof stats);
  stats[0].struct_size = sizeof stats[0] + 16;
  OK(flexfile_get_stats(file, stats));
  CHECK(stats[0].struct_size == sizeof stats[0] + 16 && stats[1].struct_size == 0 && stats[1].files == 0);
  CHECK(stats[1].extents == UINT64_MAX);
}

static void offsets(flexfile *file) {
  char bytes[8];
  size_t len = 77;
  uint64_t value = 77;
  flexfile_extent extent = {sizeof extent, 0, 0, 0, 0, 0};
  OK(flexfile_read(file, 7, bytes, 8, &len));
  CHECK(len == 0);
  OK(flexfile_read(file, UINT64_MAX, bytes, 8, &len));
  CHECK(len == 0);
  STATUS(flexfile_insert(file, 8, "x", 1), FLEXFILE_OUT_OF_RANGE);
  STATUS(flexfile_insert_hole(file, 8, 1), FLEXFILE_OUT_OF_RANGE);
  STATUS(flexfile_collapse(file, 6, 2), FLEXFILE_OUT_OF_RANGE);
  STATUS(flexfile_collapse(file, 8, 1), FLEXFILE_OUT_OF_RANGE);
  STATUS(flexfile_update(file, 6, 2, "x", 1), FLEXFILE_OUT_OF_RANGE);
  STATUS(flexfile_set_tag(file, 7, 1), FLEXFILE_OUT_OF_RANGE);
  STATUS(flexfile_read_extent(file, 7, bytes, 8, &extent, &len), FLEXFILE_OUT_OF_RANGE);

  // Sums that overflow, files beyond the limit.
  FAILS(flexfile_collapse(file, 1, UINT64_MAX));
  FAILS(flexfile_update(file, 1, UINT64_MAX, "x", 1));
  FAILS(flexfile_write(file, UINT64_MAX, "x", 1));
  FAILS(flexfile_write(file, INT64_MAX, "x", 1));
  FAILS(flexfile_insert_hole(file, 0, UINT64_MAX));
  FAILS(flexfile_insert_hole(file, 0, INT64_MAX));
  FAILS(flexfile_truncate(file, UINT64_MAX));
  FAILS(flexfile_fallocate(file, UINT64_MAX, UINT64_MAX));
  FAILS(flexfile_punch_hole(file, 1, UINT64_MAX));
  STATUS(flexfile_write(file, 0, "x", (size_t)-1), FLEXFILE_TOO_BIG);
  STATUS(flexfile_insert(file, 0, "x", (size_t)-1), FLEXFILE_TOO_BIG);
  STATUS(flexfile_read(file, 0, bytes, (size_t)-1, &len), FLEXFILE_TOO_BIG);
  struct iovec huge[2] = {{bytes, 4}, {bytes, (size_t)-4}};
  STATUS(flexfile_writev(file, 0, huge, 2), FLEXFILE_TOO_BIG);
  STATUS(flexfile_readv(file, 0, huge, 1025, &len), FLEXFILE_TOO_BIG);
  struct iovec overlap[2] = {{bytes, 4}, {bytes + 3, 4}};
  BAD(flexfile_readv(file, 0, overlap, 2, &len));
  OK(flexfile_size(file, &value));
  CHECK(value == 7);
  CONTENT(file, "content");
}

static void children_outlive_the_space(const char *path) {
  flexspace *space = NULL, *view = NULL;
  flexfile *file = NULL, *other = NULL;
  OK(flexspace_open(path, NULL, &space));
  OK(flexspace_create_file(space, "file", &file));
  OK(flexspace_create_file(space, "other", &other));
  OK(flexfile_write(file, 0, "content", 7));
  flexspace_snapshot *all = NULL;
  flexfile_snapshot *one = NULL, *late = NULL;
  flexfile_cursor *cursor = NULL;
  flexspace_group *group = NULL, *second = NULL;
  flexspace_file_list *list = NULL;
  OK(flexspace_snapshot_new(space, &all));
  OK(flexfile_snapshot_new(file, &one));
  OK(flexfile_cursor_new(file, 0, &cursor));
  OK(flexspace_group_begin(space, &other, 1, &group));
  OK(flexspace_group_write(group, other, 0, "x", 1));
  OK(flexspace_list_files(space, &list));
  OK(flexfile_space(file, &view));
  OK(flexspace_close(&space));

  char bytes[8];
  size_t len = 77;
  uint64_t value = 77;
  STATUS(flexfile_size(file, &value), FLEXFILE_CLOSED);
  STATUS(flexfile_read(file, 0, bytes, 8, &len), FLEXFILE_CLOSED);
  STATUS(flexfile_write(file, 0, "x", 1), FLEXFILE_CLOSED);
  STATUS(flexfile_sync(file), FLEXFILE_CLOSED);
  STATUS(flexfile_snapshot_new(file, &late), FLEXFILE_CLOSED);
  STATUS(flexfile_snapshot_read(one, 0, bytes, 8, &len), FLEXFILE_CLOSED);
  STATUS(flexspace_snapshot_open_file(all, "file", &late), FLEXFILE_CLOSED);
  STATUS(flexfile_cursor_read(cursor, bytes, 8, &len), FLEXFILE_CLOSED);
  STATUS(flexspace_group_write(group, other, 1, "x", 1), FLEXFILE_CLOSED);
  STATUS(flexspace_group_begin(view, &file, 1, &second), FLEXFILE_CLOSED);
  STATUS(flexspace_sync(view), FLEXFILE_CLOSED);
  CHECK(flexspace_file_list_count(list) == 2);
  CHECK(len == 77 && value == 77 && late == NULL && second == NULL);

  // Freed in an order that no owner tree would suggest.
  flexspace_snapshot_free(&all);
  OK(flexspace_close(&view));
  OK(flexfile_close(&file));
  flexfile_cursor_free(&cursor);
  STATUS(flexspace_group_commit(&group), FLEXFILE_CLOSED);
  CHECK(group == NULL);
  OK(flexfile_close(&other));
  flexfile_snapshot_free(&one);
  flexspace_file_list_free(&list);

  // The lock is gone, the group was not committed.
  OK(flexspace_open(path, NULL, &space));
  OK(flexspace_open_file(space, "other", &other));
  CONTENT(other, "");
  OK(flexfile_close(&other));
  OK(flexspace_close(&space));
}

static void foreign_directories(const char *directory) {
  flexfile *file = NULL;
  const char *foreign = below(directory, "foreign"), *inside = below(directory, "foreign/letter.txt");
  CHECK(mkdir(foreign, 0755) == 0);
  FILE *letter = fopen(inside, "w");
  CHECK(letter != NULL && fputs("dear", letter) >= 0 && fclose(letter) == 0);
  CHECK(flexfile_open(foreign, NULL, &file) < 0 && file == NULL);
  CHECK(flexfile_open(inside, NULL, &file) < 0 && file == NULL);
  struct stat about;
  CHECK(stat(inside, &about) == 0 && about.st_size == 4);
  CHECK(access(below(directory, "foreign/DATA"), F_OK) != 0);
  CHECK(unlink(inside) == 0 && rmdir(foreign) == 0);

  flexfile_options *options = NULL;
  OK(flexfile_options_new(&options));
  OK(flexfile_options_set_flags(options, FLEXFILE_OPEN_EXISTING));
  STATUS(flexfile_open(foreign, options, &file), FLEXFILE_NOT_FOUND);
  OK(flexfile_options_set_flags(options, FLEXFILE_OPEN_READ_ONLY));
  STATUS(flexfile_open(foreign, options, &file), FLEXFILE_NOT_FOUND);
  CHECK(file == NULL && access(foreign, F_OK) != 0);
  flexfile_options_free(&options);
}

static void read_only_and_exclusive(const char *path) {
  flexfile_options *options = NULL;
  flexfile *file = NULL, *second = NULL;
  OK(flexfile_options_new(&options));
  OK(flexfile_options_set_flags(options, FLEXFILE_OPEN_EXCLUSIVE));
  STATUS(flexfile_open(path, options, &file), FLEXFILE_ALREADY_EXISTS);
  OK(flexfile_options_set_flags(options, FLEXFILE_OPEN_READ_ONLY));
  OK(flexfile_open(path, options, &file));
  CONTENT(file, "content");
  STATUS(flexfile_write(file, 0, "x", 1), FLEXFILE_READ_ONLY);
  STATUS(flexfile_insert(file, 0, "x", 1), FLEXFILE_READ_ONLY);
  STATUS(flexfile_collapse(file, 0, 1), FLEXFILE_READ_ONLY);
  STATUS(flexfile_truncate(file, 0), FLEXFILE_READ_ONLY);
  STATUS(flexfile_set_tag(file, 0, 1), FLEXFILE_READ_ONLY);
  // Readers share, a writer stays out.
  OK(flexfile_open(path, options, &second));
  CONTENT(second, "content");
  OK(flexfile_close(&second));
  STATUS(flexfile_open(path, NULL, &second), FLEXFILE_BUSY);
  OK(flexfile_close(&file));
  flexfile_options_free(&options);
}

// Runs in a child, so that its process answers with an exit code and never returns into the parent's code.
static int in_child(int (*body)(flexfile *, const char *), flexfile *file, const char *path) {
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(60);
    _exit(body(file, path));
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int uses_inherited_handles(flexfile *file, const char *path) {
  (void)path;
  char bytes[8];
  size_t len = 0;
  uint64_t size = 0;
  flexfile_snapshot *snapshot = NULL;
  STATUS(flexfile_size(file, &size), FLEXFILE_FORKED);
  STATUS(flexfile_read(file, 0, bytes, 8, &len), FLEXFILE_FORKED);
  STATUS(flexfile_write(file, 0, "x", 1), FLEXFILE_FORKED);
  STATUS(flexfile_sync(file), FLEXFILE_FORKED);
  STATUS(flexfile_snapshot_new(file, &snapshot), FLEXFILE_FORKED);
  STATUS(flexfile_close(&file), FLEXFILE_FORKED);
  CHECK(file == NULL);
  return 0;
}

static int opens_again(flexfile *file, const char *path) {
  (void)file;
  flexfile *second = NULL;
  STATUS(flexfile_open(path, NULL, &second), FLEXFILE_BUSY);
  return 0;
}

static void forks_and_second_opens(flexfile *file, const char *path) {
  flexfile *second = NULL;
  STATUS(flexfile_open(path, NULL, &second), FLEXFILE_BUSY);
  CHECK(second == NULL);
  CHECK(in_child(opens_again, file, path) == 0);
  CHECK(in_child(uses_inherited_handles, file, path) == 0);
  // The child's close took nothing away from the parent.
  STATUS(flexfile_open(path, NULL, &second), FLEXFILE_BUSY);
  OK(flexfile_sync(file));
  CONTENT(file, "content");
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  const char *path = below(argv[1], "one");
  flexfile *file = NULL;
  OK(flexfile_open(path, NULL, &file));
  OK(flexfile_write(file, 0, "content", 7));
  nulls_of_a_file(file);
  numbers(file);
  offsets(file);
  forks_and_second_opens(file, path);
  OK(flexfile_close(&file));
  OK(flexfile_close(&file));
  read_only_and_exclusive(path);
  nulls_of_a_space(below(argv[1], "many"));
  children_outlive_the_space(below(argv[1], "children"));
  foreign_directories(argv[1]);
  return 0;
}
