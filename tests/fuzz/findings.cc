#include "tests/fuzz/findings.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/file.h"

namespace kiln::fuzz {

void Findings::Add(std::string_view what, uint64_t seed, std::string_view how,
                   std::string_view input) {
  const std::string path = fmt::format("{}/{}-{}-{}", folder_, what, seed, all_.size());
  const Status kept = WriteFileAtomically(path, input);
  all_.push_back(fmt::format("{} of input {}: {}\n  the input is {}", what, seed, how,
                             kept.ok() ? path : std::string(Message(kept))));
  fmt::print("{}\n", all_.back());
  std::fflush(stdout);
}

}  // namespace kiln::fuzz
