// Several files in one space: names, snapshots, groups, the commit word; through a close and a second open.
#include "check.h"

static flexspace_file_entry entry(void) {
  flexspace_file_entry it;
  memset(&it, 0, sizeof it);
  it.struct_size = sizeof it;
  return it;
}

static void names(flexspace *space) {
  flexfile *a = NULL, *again = NULL, *b = NULL;
  OK(flexspace_create_file(space, "a", &a));
  OK(flexfile_append(a, "one", 3, NULL));
  STATUS(flexspace_create_file(space, "a", &again), FLEXFILE_ALREADY_EXISTS);
  STATUS(flexspace_open_file(space, "b", &again), FLEXFILE_NOT_FOUND);
  CHECK(again == NULL);
  OK(flexspace_open_file(space, "a", &again));
  CONTENT(again, "one");
  OK(flexspace_create_file(space, "b", &b));
  OK(flexfile_append(b, "twelve", 6, NULL));

  STATUS(flexspace_rename_file(space, "a", "b"), FLEXFILE_ALREADY_EXISTS);
  STATUS(flexspace_rename_file(space, "x", "y"), FLEXFILE_NOT_FOUND);
  OK(flexspace_rename_file(space, "a", "c"));
  CONTENT(a, "one");

  flexspace_file_list *list = NULL;
  OK(flexspace_list_files(space, &list));
  CHECK(flexspace_file_list_count(list) == 2);
  int seen_b = 0, seen_c = 0;
  for (size_t i = 0; i < 2; i++) {
    flexspace_file_entry it = entry();
    OK(flexspace_file_list_get(list, i, &it));
    CHECK(it.name_len == 1 && it.extents >= 1 && it.id != 0);
    seen_b += strcmp(it.name, "b") == 0 && it.size == 6;
    seen_c += strcmp(it.name, "c") == 0 && it.size == 3;
  }
  CHECK(seen_b == 1 && seen_c == 1);
  flexspace_file_entry past = entry();
  STATUS(flexspace_file_list_get(list, 2, &past), FLEXFILE_NOT_FOUND);
  flexspace_file_list_free(&list);
  CHECK(list == NULL);

  OK(flexspace_remove_file(space, "c"));
  STATUS(flexspace_remove_file(space, "c"), FLEXFILE_NOT_FOUND);
  uint64_t size;
  STATUS(flexfile_size(a, &size), FLEXFILE_NOT_FOUND);
  STATUS(flexfile_write(again, 0, "x", 1), FLEXFILE_NOT_FOUND);
  OK(flexfile_close(&a));
  OK(flexfile_close(&again));
  OK(flexfile_close(&b));
}

static void snapshots(flexspace *space) {
  flexfile *b = NULL;
  OK(flexspace_open_file(space, "b", &b));
  flexspace_snapshot *snapshot = NULL;
  OK(flexspace_snapshot_new(space, &snapshot));
  OK(flexfile_update(b, 0, 6, "13", 2));
  OK(flexspace_rename_file(space, "b", "moved"));
  OK(flexspace_remove_file(space, "moved"));
  OK(flexspace_checkpoint(space));
  OK(flexspace_gc(space, NULL, NULL));

  uint64_t sequence = 0, size = 0;
  OK(flexspace_snapshot_sequence(snapshot, &sequence));
  CHECK(sequence > 0);
  flexspace_file_list *list = NULL;
  flexspace_file_entry it = entry();
  OK(flexspace_snapshot_list_files(snapshot, &list));
  CHECK(flexspace_file_list_count(list) == 1);
  OK(flexspace_file_list_get(list, 0, &it));
  CHECK(strcmp(it.name, "b") == 0 && it.size == 6);
  flexspace_file_list_free(&list);

  flexfile_snapshot *old = NULL;
  STATUS(flexspace_snapshot_open_file(snapshot, "moved", &old), FLEXFILE_NOT_FOUND);
  OK(flexspace_snapshot_open_file(snapshot, "b", &old));
  flexspace_snapshot_free(&snapshot);
  CHECK(snapshot == NULL);
  char bytes[8];
  size_t len = 0;
  OK(flexfile_snapshot_read(old, 0, bytes, sizeof bytes, &len));
  CHECK(len == 6 && memcmp(bytes, "twelve", 6) == 0);
  OK(flexfile_snapshot_size(old, &size));
  CHECK(size == 6);
  flexfile_snapshot_free(&old);
  OK(flexfile_close(&b));
}

static void groups(flexspace *space) {
  flexfile *from = NULL, *to = NULL, *other = NULL;
  OK(flexspace_create_file(space, "from", &from));
  OK(flexspace_create_file(space, "to", &to));
  OK(flexspace_create_file(space, "other", &other));
  OK(flexfile_append(from, "0123456789", 10, NULL));

  flexfile *files[2] = {to, from};
  flexspace_group *group = NULL;
  uint64_t size = 0, word = 99;
  uint16_t tag = 0;
  char bytes[16];
  size_t len = 0;

  // Undone.
  OK(flexspace_group_begin(space, files, 2, &group));
  OK(flexspace_group_truncate(group, from, 0));
  OK(flexspace_group_set_commit_word(group, 1));
  flexspace_group_free(&group);
  CHECK(group == NULL);
  CONTENT(from, "0123456789");
  OK(flexspace_commit_word(space, &word));
  CHECK(word == 0);

  // Committed: the group sees its changes, others do only after the commit.
  OK(flexspace_group_begin(space, files, 2, &group));
  OK(flexspace_group_read(group, from, 3, bytes, 4, &len));
  CHECK(len == 4 && memcmp(bytes, "3456", 4) == 0);
  OK(flexspace_group_collapse(group, from, 3, 4));
  OK(flexspace_group_insert(group, to, 0, bytes, 4));
  OK(flexspace_group_write(group, to, 0, "X", 1));
  OK(flexspace_group_update(group, to, 1, 1, "yy", 2));
  OK(flexspace_group_insert_hole(group, to, 5, 3));
  OK(flexspace_group_truncate(group, to, 7));
  OK(flexspace_group_set_tag(group, to, 3, 5));
  OK(flexspace_group_size(group, to, &size));
  CHECK(size == 7);
  OK(flexspace_group_read(group, to, 0, bytes, sizeof bytes, &len));
  CHECK(len == 7 && memcmp(bytes, "Xyy56\0\0", 7) == 0);
  STATUS(flexspace_group_insert(group, to, 8, "z", 1), FLEXFILE_OUT_OF_RANGE);
  STATUS(flexspace_group_size(group, other, &size), FLEXFILE_INVALID_ARGUMENT);
  STATUS(flexspace_group_write(group, other, 0, "z", 1), FLEXFILE_INVALID_ARGUMENT);
  CONTENT(to, "");
  CONTENT(from, "0123456789");
  OK(flexspace_group_set_commit_word(group, 42));
  OK(flexspace_group_commit(&group));
  CHECK(group == NULL);
  CONTENT(to, "Xyy56\0\0");
  CONTENT(from, "012789");
  OK(flexfile_get_tag(to, 3, &tag));
  CHECK(tag == 5);
  OK(flexspace_commit_word(space, &word));
  CHECK(word == 42);

  files[1] = to;
  STATUS(flexspace_group_begin(space, files, 2, &group), FLEXFILE_INVALID_ARGUMENT);
  CHECK(group == NULL);
  OK(flexfile_close(&other));
  OK(flexfile_close(&from));
  OK(flexfile_close(&to));
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  const char *path = below(argv[1], "many");
  flexspace *space = NULL;
  OK(flexspace_open(path, NULL, &space));
  names(space);
  snapshots(space);
  groups(space);
  OK(flexspace_flush(space));
  OK(flexspace_sync(space));
  flexspace_check_report report;
  report.struct_size = sizeof report;
  OK(flexspace_check(space, NULL, NULL, NULL, &report));
  CHECK(report.files == 3 && report.problems == 0);
  OK(flexspace_close(&space));
  CHECK(space == NULL);

  OK(flexspace_open(path, NULL, &space));
  uint64_t word = 0;
  OK(flexspace_commit_word(space, &word));
  CHECK(word == 42);
  flexspace_stats stats;
  stats.struct_size = sizeof stats;
  OK(flexspace_get_stats(space, &stats));
  CHECK(stats.files == 3 && stats.commit_word == 42 && stats.live_bytes == 11);
  flexfile *to = NULL;
  OK(flexspace_open_file(space, "to", &to));
  CONTENT(to, "Xyy56\0\0");
  OK(flexspace_close(&space));
  OK(flexfile_close(&to));
  return 0;
}
