// Threads: readers beside a writer see each change whole or not at all; a cursor in use answers BUSY or works.
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

enum { ROUNDS = 400, READERS = 3, LARGEST = 20000 };

static flexfile *file;
static atomic_int writing = 1;
static atomic_int reads_done;

// Replaces the whole content by as many bytes of one value, another number and value each time.
static void *writer(void *unused) {
  (void)unused;
  static char bytes[LARGEST];
  uint64_t old = 1;
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t len = 1 + (uint64_t)round * 7919 % (LARGEST - 1);
    memset(bytes, 'a' + (int)(len % 26), len);
    OK(flexfile_update(file, 0, old, bytes, len));
    old = len;
    if (round % 50 == 0) OK(flexfile_sync(file));
    if (round % 90 == 0) OK(flexfile_checkpoint(file));
  }
  atomic_store(&writing, 0);
  return NULL;
}

static void *reader(void *unused) {
  (void)unused;
  static _Thread_local char bytes[LARGEST + 1];
  flexfile_buf buf = {0, 0, 0};
  while (atomic_load(&writing)) {
    size_t len = 0;
    OK(flexfile_read(file, 0, bytes, sizeof bytes, &len));
    CHECK(len >= 1 && len < LARGEST);
    CHECK(bytes[0] == 'a' + (int)(len % 26));
    for (size_t i = 1; i < len; i++) CHECK(bytes[i] == bytes[0]);

    flexfile_snapshot *snapshot = NULL;
    OK(flexfile_snapshot_new(file, &snapshot));
    OK(flexfile_snapshot_read_buf(snapshot, 0, UINT64_MAX, &buf));
    CHECK(buf.len >= 1 && buf.data[0] == 'a' + buf.len % 26 && buf.data[buf.len - 1] == buf.data[0]);
    flexfile_snapshot_free(&snapshot);
    atomic_fetch_add(&reads_done, 1);
  }
  flexfile_buf_free(&buf);
  return NULL;
}

static void *walker(void *cursor) {
  for (int i = 0; i < 2000; i++) {
    int32_t status = flexfile_cursor_next(cursor);
    CHECK(status == FLEXFILE_OK || status == FLEXFILE_BUSY);
    status = flexfile_cursor_seek(cursor, 0);
    CHECK(status == FLEXFILE_OK || status == FLEXFILE_BUSY);
  }
  return NULL;
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  OK(flexfile_open(below(argv[1], "one"), NULL, &file));
  OK(flexfile_write(file, 0, "b", 1));
  pthread_t threads[READERS + 1];
  CHECK(pthread_create(&threads[0], NULL, writer, NULL) == 0);
  for (int i = 1; i <= READERS; i++) CHECK(pthread_create(&threads[i], NULL, reader, NULL) == 0);
  for (int i = 0; i <= READERS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(atomic_load(&reads_done) > 0);

  flexfile_cursor *cursor = NULL;
  OK(flexfile_cursor_new(file, 0, &cursor));
  for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, walker, cursor) == 0);
  for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  flexfile_cursor_free(&cursor);
  OK(flexfile_close(&file));
  return 0;
}
