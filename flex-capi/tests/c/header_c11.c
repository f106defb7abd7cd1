// The header compiles as C11 with all warnings as errors, included twice, with nothing before it.
#include "flexfile.h"
#include "flexfile.h"

#if FLEXFILE_VERSION_NUMBER < 1000 || FLEXFILE_FORMAT_VERSION < 1
#error "the version macros work in #if"
#endif

_Static_assert(FLEXFILE_OK == 0 && FLEXFILE_NOT_FOUND > 0 && FLEXFILE_IO < 0, "signs");
_Static_assert(FLEXFILE_VERSION_NUMBER ==
                   FLEXFILE_VERSION_MAJOR * 1000000 + FLEXFILE_VERSION_MINOR * 1000 + FLEXFILE_VERSION_PATCH,
               "number");
_Static_assert(sizeof(flexfile_extent) == sizeof(size_t) + 24, "no padding that differs between compilers");
_Static_assert(offsetof(flexspace_stats, struct_size) == 0, "struct_size first");
_Static_assert(offsetof(flexspace_check_report, struct_size) == 0, "struct_size first");
_Static_assert(offsetof(flexspace_file_entry, struct_size) == 0, "struct_size first");
_Static_assert(offsetof(flexfile_extent, struct_size) == 0, "struct_size first");

int32_t uses(flexfile *file, flexspace *space);
int32_t uses(flexfile *file, flexspace *space) {
  flexfile_buf buf = {0, 0, 0};
  flexfile *files[] = {file, file};
  flexspace_group *group = NULL;
  struct iovec iov[1] = {{0, 0}};
  size_t len;
  int32_t status = flexspace_group_begin(space, files, 2, &group);
  status |= flexfile_readv(file, 0, iov, 1, &len) | flexfile_insert(file, 0, "text", 4);
  status |= flexfile_read_buf(file, 0, UINT64_MAX, &buf);
  flexfile_buf_free(&buf);
  return status;
}
