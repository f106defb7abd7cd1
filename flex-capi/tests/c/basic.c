// One file: each flexfile_* function with its result checked, through a close and a second open.
#include "check.h"

static flexfile_extent extent(void) {
  flexfile_extent it;
  memset(&it, 0, sizeof it);
  it.struct_size = sizeof it;
  return it;
}

static void versions(void) {
  CHECK(flexfile_version_number() == FLEXFILE_VERSION_NUMBER);
  CHECK(flexfile_format_version() == FLEXFILE_FORMAT_VERSION);
  char text[32];
  snprintf(text, sizeof text, "%d.%d.%d", FLEXFILE_VERSION_MAJOR, FLEXFILE_VERSION_MINOR, FLEXFILE_VERSION_PATCH);
  CHECK(strcmp(text, flexfile_version_string()) == 0);
  CHECK(strcmp(flexfile_status_string(FLEXFILE_OK), "ok") == 0);
  CHECK(strcmp(flexfile_status_string(12345), "unknown status") == 0);
}

static int log_lines;

static void count_line(void *ctx, int32_t level, const char *text) {
  CHECK(level >= FLEXFILE_LOG_ERROR && level <= FLEXFILE_LOG_INFO && text != NULL && ctx == &log_lines);
  __atomic_fetch_add((int *)ctx, 1, __ATOMIC_RELAXED);
}

static flexfile *open_with_options(const char *path, uint32_t flags) {
  flexfile_options *options = NULL;
  OK(flexfile_options_new(&options));
  OK(flexfile_options_set_flags(options, flags));
  if ((flags & FLEXFILE_OPEN_NO_BACKGROUND) == 0) {
    OK(flexfile_options_set_durability(options, FLEXFILE_DURABILITY_INTERVAL, 50));
  }
  OK(flexfile_options_set_segment_size(options, 65536));
  OK(flexfile_options_set_log(options, count_line, &log_lines));
  flexfile *file = NULL;
  OK(flexfile_open(path, options, &file));
  flexfile_options_free(&options);
  CHECK(options == NULL && file != NULL);
  return file;
}

static void edits(flexfile *file) {
  CONTENT(file, "");
  OK(flexfile_write(file, 0, "world", 5));
  OK(flexfile_insert(file, 0, "hello ", 6));
  CONTENT(file, "hello world");
  OK(flexfile_update(file, 0, 5, "good morning", 12));
  CONTENT(file, "good morning world");
  OK(flexfile_collapse(file, 0, 5));
  CONTENT(file, "morning world");
  uint64_t offset = 0;
  OK(flexfile_append(file, "!?", 2, &offset));
  CHECK(offset == 13);
  OK(flexfile_append(file, NULL, 0, NULL));
  OK(flexfile_truncate(file, 14));
  CONTENT(file, "morning world!");
  OK(flexfile_truncate(file, 16));
  CONTENT(file, "morning world!\0\0");
  OK(flexfile_truncate(file, 14));

  struct iovec parts[3] = {{(void *)"a", 1}, {NULL, 0}, {(void *)"bc", 2}};
  OK(flexfile_insertv(file, 7, parts, 3));
  CONTENT(file, "morningabc world!");
  OK(flexfile_writev(file, 0, parts, 3));
  CONTENT(file, "abcningabc world!");

  char head[3], tail[100];
  struct iovec into[2] = {{head, sizeof head}, {tail, sizeof tail}};
  size_t len = 0;
  OK(flexfile_readv(file, 0, into, 2, &len));
  CHECK(len == 17 && memcmp(head, "abc", 3) == 0 && memcmp(tail, "ningabc world!", 14) == 0);

  OK(flexfile_punch_hole(file, 3, 4));
  CONTENT(file, "abc\0\0\0\0abc world!");
  OK(flexfile_fallocate(file, 10, 10));
  CONTENT(file, "abc\0\0\0\0abc world!\0\0\0");
  OK(flexfile_truncate(file, 17));
}

static void buffers(flexfile *file) {
  flexfile_buf buf = {0, 0, 0};
  OK(flexfile_read_buf(file, 0, 3, &buf));
  CHECK(buf.len == 3 && memcmp(buf.data, "abc", 3) == 0);
  OK(flexfile_read_buf(file, 7, UINT64_MAX, &buf));
  CHECK(buf.len == 10 && memcmp(buf.data, "abc world!", 10) == 0);
  OK(flexfile_read_buf(file, 17, 5, &buf));
  CHECK(buf.len == 0);
  OK(flexfile_buf_reserve(&buf, 1000));
  CHECK(buf.capacity >= 1000 && buf.len == 0);
  flexfile_buf_free(&buf);
  CHECK(buf.data == NULL && buf.len == 0 && buf.capacity == 0);
  flexfile_buf_free(&buf);
}

static void extents(flexfile *file) {
  char bytes[64];
  size_t len = 99;
  flexfile_extent it = extent();
  uint64_t count = 0, offset = 0;
  OK(flexfile_extent_count(file, &count));
  CHECK(count >= 3);

  OK(flexfile_read_extent(file, 5, bytes, sizeof bytes, &it, &len));
  CHECK(it.offset == 3 && it.length == 4 && it.flags == FLEXFILE_EXTENT_HOLE && it.tag == 0 && len == 4);
  CHECK(memcmp(bytes, "\0\0\0\0", 4) == 0 && it.struct_size == sizeof it);
  OK(flexfile_read_extent(file, 1, bytes, 2, &it, &len));
  CHECK(it.offset == 0 && it.length == 3 && it.flags == 0 && len == 2 && memcmp(bytes, "ab", 2) == 0);

  flexfile_buf buf = {0, 0, 0};
  OK(flexfile_read_extent_buf(file, 2, &buf, &it));
  CHECK(it.length == 3 && buf.len == 3 && memcmp(buf.data, "abc", 3) == 0);
  OK(flexfile_read_extent_buf(file, 3, &buf, &it));
  CHECK(it.flags == FLEXFILE_EXTENT_HOLE && buf.len == 0);

  OK(flexfile_next_hole(file, 0, &offset));
  CHECK(offset == 3);
  OK(flexfile_next_data(file, offset, &offset));
  CHECK(offset == 7);
  OK(flexfile_next_hole(file, offset, &offset));
  CHECK(offset == 17);
  STATUS(flexfile_next_data(file, 17, &offset), FLEXFILE_NOT_FOUND);
  STATUS(flexfile_next_hole(file, 17, &offset), FLEXFILE_NOT_FOUND);
  CHECK(offset == 17);

  // A cursor over the same extents, forwards, backwards, and by offset.
  flexfile_cursor *cursor = NULL;
  OK(flexfile_cursor_new(file, 0, &cursor));
  uint64_t sum = 0, seen = 0;
  while (flexfile_cursor_get(cursor, &it) == FLEXFILE_OK) {
    CHECK(it.offset == sum);
    sum += it.length;
    seen++;
    OK(flexfile_cursor_next(cursor));
  }
  CHECK(sum == 17 && seen == count);
  STATUS(flexfile_cursor_read(cursor, bytes, sizeof bytes, &len), FLEXFILE_NOT_FOUND);
  OK(flexfile_cursor_seek(cursor, 8));
  OK(flexfile_cursor_prev(cursor));
  OK(flexfile_cursor_get(cursor, &it));
  CHECK(it.offset == 3 && it.flags == FLEXFILE_EXTENT_HOLE);
  OK(flexfile_cursor_prev(cursor));
  OK(flexfile_cursor_read(cursor, bytes, sizeof bytes, &len));
  CHECK(len == 3 && memcmp(bytes, "abc", 3) == 0);
  OK(flexfile_cursor_read_buf(cursor, &buf));
  CHECK(buf.len == 3 && memcmp(buf.data, "abc", 3) == 0);
  OK(flexfile_cursor_prev(cursor));
  STATUS(flexfile_cursor_get(cursor, &it), FLEXFILE_NOT_FOUND);
  flexfile_cursor_free(&cursor);
  CHECK(cursor == NULL);
  flexfile_buf_free(&buf);
}

static void tags(flexfile *file) {
  uint16_t tag = 9;
  uint64_t offset = 99;
  OK(flexfile_get_tag(file, 8, &tag));
  CHECK(tag == 0);
  STATUS(flexfile_next_tagged(file, 0, &offset, &tag), FLEXFILE_NOT_FOUND);
  STATUS(flexfile_prev_tagged(file, 16, &offset, &tag), FLEXFILE_NOT_FOUND);
  CHECK(offset == 99 && tag == 0);
  OK(flexfile_set_tag(file, 8, 7));
  OK(flexfile_get_tag(file, 8, &tag));
  CHECK(tag == 7);
  // It moves with its byte.
  OK(flexfile_insert(file, 0, "xy", 2));
  OK(flexfile_next_tagged(file, 0, &offset, &tag));
  CHECK(offset == 10 && tag == 7);
  OK(flexfile_prev_tagged(file, 16, &offset, NULL));
  CHECK(offset == 10);
  OK(flexfile_collapse(file, 0, 2));
  OK(flexfile_set_tag(file, 8, 0));
  OK(flexfile_get_tag(file, 8, &tag));
  CHECK(tag == 0);
}

static void snapshots(flexfile *file) {
  flexfile_snapshot *snapshot = NULL;
  OK(flexfile_set_tag(file, 7, 3));
  OK(flexfile_snapshot_new(file, &snapshot));
  OK(flexfile_update(file, 0, 17, "other", 5));

  char bytes[64];
  size_t len = 0;
  uint64_t value = 0;
  uint16_t tag = 0;
  flexfile_extent it = extent();
  OK(flexfile_snapshot_size(snapshot, &value));
  CHECK(value == 17);
  OK(flexfile_snapshot_read(snapshot, 0, bytes, sizeof bytes, &len));
  CHECK(len == 17 && memcmp(bytes, "abc\0\0\0\0abc world!", 17) == 0);
  struct iovec into[2] = {{bytes, 2}, {bytes + 10, 3}};
  OK(flexfile_snapshot_readv(snapshot, 7, into, 2, &len));
  CHECK(len == 5 && memcmp(bytes, "ab", 2) == 0 && memcmp(bytes + 10, "c w", 3) == 0);
  flexfile_buf buf = {0, 0, 0};
  OK(flexfile_snapshot_read_buf(snapshot, 11, UINT64_MAX, &buf));
  CHECK(buf.len == 6 && memcmp(buf.data, "world!", 6) == 0);
  OK(flexfile_snapshot_read_extent(snapshot, 6, bytes, sizeof bytes, &it, &len));
  CHECK(it.offset == 3 && it.length == 4 && len == 4);
  OK(flexfile_snapshot_read_extent_buf(snapshot, 7, &buf, &it));
  CHECK(it.offset == 7 && it.tag == 3 && buf.len == it.length && buf.len >= 1 && buf.data[0] == 'a');
  OK(flexfile_snapshot_next_data(snapshot, 3, &value));
  CHECK(value == 7);
  OK(flexfile_snapshot_next_hole(snapshot, 0, &value));
  CHECK(value == 3);
  OK(flexfile_snapshot_get_tag(snapshot, 7, &tag));
  CHECK(tag == 3);
  OK(flexfile_snapshot_next_tagged(snapshot, 0, &value, &tag));
  CHECK(value == 7);
  OK(flexfile_snapshot_prev_tagged(snapshot, 16, &value, &tag));
  CHECK(value == 7);
  OK(flexfile_snapshot_extent_count(snapshot, &value));
  CHECK(value >= 3);
  OK(flexfile_snapshot_sequence(snapshot, &value));
  CHECK(value > 0);

  // A cursor outlives the snapshot that it was made on.
  flexfile_cursor *cursor = NULL;
  OK(flexfile_snapshot_cursor_new(snapshot, 4, &cursor));
  flexfile_snapshot_free(&snapshot);
  CHECK(snapshot == NULL);
  OK(flexfile_cursor_get(cursor, &it));
  CHECK(it.offset == 3);
  flexfile_cursor_free(&cursor);
  flexfile_buf_free(&buf);
  CONTENT(file, "other");
}

static int32_t go_on(void *ctx, uint64_t done, uint64_t total) {
  CHECK(done <= total);
  ++*(int *)ctx;
  return 0;
}

static int32_t stop(void *ctx, uint64_t done, uint64_t total) {
  (void)ctx, (void)done, (void)total;
  return 1;
}

static void no_problem(void *ctx, const char *file, uint64_t offset, const char *text) {
  (void)ctx;
  fprintf(stderr, "%s at %llu: %s\n", file, (unsigned long long)offset, text);
  exit(1);
}

static void upkeep(flexfile *file) {
  uint64_t bytes = 99, segments = 99;
  for (int i = 0; i < 200; i++) OK(flexfile_insert(file, (uint64_t)i, "0123456789abcdef", 16));
  OK(flexfile_defrag(file, 0, 3205, &bytes));
  OK(flexfile_defrag(file, 0, 3205, NULL));
  OK(flexfile_insert_hole(file, 5, (uint64_t)1 << 40));
  OK(flexfile_collapse(file, 5, (uint64_t)1 << 40));
  OK(flexfile_flush(file));
  OK(flexfile_sync(file));
  OK(flexfile_checkpoint(file));
  OK(flexfile_gc(file, &segments, &bytes));
  OK(flexfile_gc(file, NULL, NULL));

  flexspace_check_report report;
  memset(&report, 0, sizeof report);
  report.struct_size = sizeof report;
  int calls = 0;
  OK(flexfile_check(file, go_on, no_problem, &calls, &report));
  CHECK(report.files == 1 && report.extents > 0 && report.bytes_verified >= 3205 && report.problems == 0);
  CHECK(calls > 0);
  OK(flexfile_check(file, NULL, NULL, NULL, NULL));
  STATUS(flexfile_check(file, stop, NULL, NULL, NULL), FLEXFILE_CANCELLED);

  flexspace_stats stats;
  memset(&stats, 0xff, sizeof stats);
  stats.struct_size = sizeof stats;
  OK(flexfile_get_stats(file, &stats));
  CHECK(stats.files == 1 && stats.live_bytes == 3205 && stats.poisoned == 0 && stats.snapshots == 0);
  CHECK(stats.user_bytes_written >= 3205 && stats.data_bytes_written >= 3205 && stats.disk_bytes > 0);
  CHECK(stats.sequence == stats.durable_sequence && stats.syncs > 0 && stats.checkpoints > 0);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  const char *path = below(argv[1], "one");
  versions();

  flexfile *file = open_with_options(path, FLEXFILE_OPEN_EXCLUSIVE);
  uint64_t id = 0, same = 0;
  OK(flexfile_id(file, &id));
  edits(file);
  buffers(file);
  extents(file);
  tags(file);
  snapshots(file);
  upkeep(file);
  flexspace *space = NULL;
  OK(flexfile_space(file, &space));
  OK(flexspace_sync(space));
  OK(flexspace_close(&space));
  OK(flexfile_truncate(file, 5));
  OK(flexfile_write(file, 0, "after", 5));
  OK(flexfile_close(&file));
  CHECK(file == NULL);

  file = open_with_options(path, FLEXFILE_OPEN_EXISTING | FLEXFILE_OPEN_NO_BACKGROUND);
  CONTENT(file, "after");
  OK(flexfile_id(file, &same));
  CHECK(same == id);
  OK(flexfile_close(&file));
  file = open_with_options(path, FLEXFILE_OPEN_READ_ONLY);
  CONTENT(file, "after");
  OK(flexfile_close(&file));
  return 0;
}
