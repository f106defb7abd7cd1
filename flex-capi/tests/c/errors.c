// The text of the last failure: what is in it, that success keeps it, and that each thread has its own.
#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>

static void *other_thread(void *unused) {
  (void)unused;
  CHECK(strcmp(flexfile_last_error_message(), "") == 0);
  CHECK(flexfile_last_error_errno() == 0);
  STATUS(flexfile_sync(NULL), FLEXFILE_INVALID_ARGUMENT);
  CHECK(strstr(flexfile_last_error_message(), "file is NULL") != NULL);
  return NULL;
}

static void a_missing_parent(const char *directory) {
  const char *path = below(directory, "nowhere/one");
  flexfile *file = NULL;
  CHECK(flexfile_open(path, NULL, &file) != FLEXFILE_OK && file == NULL);
  CHECK(strstr(flexfile_last_error_message(), "nowhere") != NULL);
  CHECK(flexfile_last_error_errno() == ENOENT);

  // Another thread neither sees it nor changes it, and success keeps it.
  char before[4096];
  size_t len = 99;
  OK(flexfile_last_error_into(before, sizeof before, &len));
  CHECK(len == strlen(before) && strcmp(before, flexfile_last_error_message()) == 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
  OK(flexfile_open(below(directory, "one"), NULL, &file));
  OK(flexfile_close(&file));
  CHECK(strcmp(before, flexfile_last_error_message()) == 0);

  // All or nothing.
  char small[4] = "abc";
  STATUS(flexfile_last_error_into(small, sizeof small, &len), FLEXFILE_BUFFER_TOO_SMALL);
  CHECK(strcmp(small, "abc") == 0 && len == strlen(before));
  CHECK(strcmp(before, flexfile_last_error_message()) == 0);
}

static void answers_have_texts_too(const char *directory) {
  flexspace *space = NULL;
  flexfile *file = NULL;
  OK(flexspace_open(below(directory, "many"), NULL, &space));
  STATUS(flexspace_open_file(space, "absent", &file), FLEXFILE_NOT_FOUND);
  CHECK(strstr(flexfile_last_error_message(), "absent") != NULL);
  OK(flexspace_create_file(space, "f", &file));
  STATUS(flexfile_insert(file, 5, "x", 1), FLEXFILE_OUT_OF_RANGE);
  CHECK(strlen(flexfile_last_error_message()) > 0);
  CHECK(strstr(flexfile_last_error_message(), "absent") == NULL);
  OK(flexfile_close(&file));
  OK(flexspace_close(&space));
}

#ifdef FLEXFILE_TEST_HOOKS
int32_t flexfile_test_panic(void);

static void a_panic_is_a_status(void) {
  STATUS(flexfile_test_panic(), FLEXFILE_PANIC);
  CHECK(strstr(flexfile_last_error_message(), "flexfile_test_panic") != NULL);
}
#else
static void a_panic_is_a_status(void) {}
#endif

int main(int argc, char **argv) {
  CHECK(argc == 2);
  CHECK(strcmp(flexfile_last_error_message(), "") == 0);
  a_missing_parent(argv[1]);
  answers_have_texts_too(argv[1]);
  a_panic_is_a_status();
  return 0;
}
