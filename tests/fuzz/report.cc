#include "tests/fuzz/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/file/file.h"

namespace kiln::fuzz {

void Report::Count(const std::string& kind, bool taken, double seconds, int64_t bytes) {
  Row& row = rows_[kind];
  ++(taken ? row.taken : row.refused);
  row.seconds = std::max(row.seconds, seconds);
  row.bytes = std::max(row.bytes, bytes);
}

std::string Report::PathFor(std::string_view what) const {
  return fmt::format("{}/{}-{}", folder_, what, number_);
}

void Report::Find(std::string_view what, std::string_view how, std::string_view input) {
  ++findings_;
  const std::string path = PathFor(what);
  const Status kept = WriteFileAtomically(path, input);
  fmt::print("{} of input {}: {}\n  its bytes: {}\n  again: {} --only {}\n", what, number_, how,
             kept.ok() ? path : std::string(Message(kept)), again_, number_);
  std::fflush(stdout);
}

int64_t Report::inputs() const {
  int64_t inputs = 0;
  for (const auto& [kind, row] : rows_) inputs += row.taken + row.refused;
  return inputs;
}

std::string Report::Table() const {
  std::string table = fmt::format("{:<34}{:>8}{:>8}{:>8}{:>10}{:>9}\n", "kind", "inputs", "taken",
                                  "refused", "longest s", "peak MiB");
  for (const auto& [kind, row] : rows_) {
    table += fmt::format("{:<34}{:>8}{:>8}{:>8}{:>10.2f}{:>9}\n", kind, row.taken + row.refused,
                         row.taken, row.refused, row.seconds, row.bytes >> 20);
  }
  return table;
}

}  // namespace kiln::fuzz
