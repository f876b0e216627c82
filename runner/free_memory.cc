#include "runner/free_memory.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

#include "base/file/file.h"

namespace kiln::runner {
namespace {

// Limit on the size of the files that are read here.
constexpr int64_t kMaxBytes = 1 << 20;
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// Returns the number at the start of the text; none: the text begins with no number ("max").
std::optional<int64_t> Number(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<int64_t> NumberIn(const std::string& path) {
  const auto text = ReadFile(path, kMaxBytes);
  return text.ok() ? Number(*text) : std::nullopt;
}

// Returns the number behind a word.
std::optional<int64_t> NumberAfter(const std::string& path, std::string_view word) {
  const auto text = ReadFile(path, kMaxBytes);
  if (!text.ok()) return std::nullopt;
  const size_t at = text->find(word);
  if (at == std::string::npos) return std::nullopt;
  return Number(std::string_view(*text).substr(at + word.size()));
}

int64_t FreeIn(const std::string& group, const std::string& limit, const std::string& used) {
  const auto most = NumberIn(group + limit), now = NumberIn(group + used);
  if (!most.has_value() || !now.has_value()) return kNoLimit;
  const int64_t cache = NumberAfter(group + "memory.stat", "inactive_file ").value_or(0);
  return std::max<int64_t>(0, *most - (*now - std::min(cache, *now)));
}

}  // namespace

int64_t FreeMemoryBytes(const std::string& root) {
  const auto available_kib = NumberAfter(root + "/proc/meminfo", "MemAvailable:");
  const int64_t machine = available_kib.has_value() ? 1024 * *available_kib : kNoLimit;
  const int64_t group = FreeIn(root + "/sys/fs/cgroup/", "memory.max", "memory.current");
  const int64_t old_group =
      FreeIn(root + "/sys/fs/cgroup/memory/", "memory.limit_in_bytes", "memory.usage_in_bytes");
  return std::min({machine, group, old_group});
}

}  // namespace kiln::runner
