// The header compiles as C++17 with all warnings as errors, and its functions have C linkage.
#include "flexfile.h"
#include "flexfile.h"

#include <memory>
#include <string_view>
#include <type_traits>

static_assert(FLEXFILE_OK == 0 && FLEXFILE_NOT_FOUND > 0 && FLEXFILE_IO < 0);
static_assert(std::is_standard_layout_v<flexspace_stats> && std::is_trivially_copyable_v<flexfile_extent>);

namespace {
struct Closer {
  void operator()(flexfile *file) const { flexfile_close(&file); }
};
}  // namespace

int32_t uses(const char *path, std::string_view text);
int32_t uses(const char *path, std::string_view text) {
  flexfile *file = nullptr;
  if (const int32_t status = flexfile_open(path, nullptr, &file); status != FLEXFILE_OK) return status;
  const std::unique_ptr<flexfile, Closer> owner(file);
  flexfile_buf buf{};
  const int32_t status = flexfile_append(file, text.data(), text.size(), nullptr);
  flexfile_buf_free(&buf);
  return status;
}
