// What the C tests share: checks that say where and why, and end the program.
#ifndef FLEXFILE_TEST_CHECK_H
#define FLEXFILE_TEST_CHECK_H

#include "flexfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                      \
  do {                                                                                                        \
    if (!(condition)) {                                                                                       \
      fprintf(stderr, "%s:%d: not true: %s\n  last error: %s\n", __FILE__, __LINE__, #condition,             \
              flexfile_last_error_message());                                                                 \
      exit(1);                                                                                                \
    }                                                                                                         \
  } while (0)

#define STATUS(call, want)                                                                                    \
  do {                                                                                                        \
    int32_t got_ = (call);                                                                                    \
    if (got_ != (want)) {                                                                                     \
      fprintf(stderr, "%s:%d: %s\n  want %s, got %d (%s)\n  last error: %s\n", __FILE__, __LINE__, #call,    \
              #want, (int)got_, flexfile_status_string(got_), flexfile_last_error_message());                 \
      exit(1);                                                                                                \
    }                                                                                                         \
  } while (0)

#define OK(call) STATUS(call, FLEXFILE_OK)

// An error, whichever: where the header leaves the number open.
#define FAILS(call)                                                                                           \
  do {                                                                                                        \
    int32_t got_ = (call);                                                                                    \
    if (got_ >= 0) {                                                                                          \
      fprintf(stderr, "%s:%d: %s\n  want an error, got %d\n", __FILE__, __LINE__, #call, (int)got_);         \
      exit(1);                                                                                                \
    }                                                                                                         \
  } while (0)

// The file's whole content is this text.
#define CONTENT(file, text)                                                                                   \
  do {                                                                                                        \
    char content_[256];                                                                                       \
    size_t len_ = 0;                                                                                          \
    uint64_t size_ = 0;                                                                                       \
    OK(flexfile_size(file, &size_));                                                                          \
    OK(flexfile_read(file, 0, content_, sizeof content_, &len_));                                             \
    if (size_ != sizeof(text) - 1 || len_ != size_ || memcmp(content_, text, len_) != 0) {                    \
      fprintf(stderr, "%s:%d: want \"%s\", got \"%.*s\"\n", __FILE__, __LINE__, text, (int)len_, content_);   \
      exit(1);                                                                                                \
    }                                                                                                         \
  } while (0)

// A path below the directory that the test was given. Static storage for a few at a time.
static inline const char *below(const char *directory, const char *name) {
  static char paths[8][4096];
  static int next;
  char *path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", directory, name);
  return path;
}

#endif
