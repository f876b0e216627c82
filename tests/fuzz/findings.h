// What a fuzzer found: inputs that crashed a program, hung it, or made it grow, and counts that are
// wrong. Each is kept as a file, with the words to run it again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::fuzz {

inline constexpr double kMostSeconds = 10;               // of one input
inline constexpr int64_t kMostBytes = int64_t{1} << 30;  // of memory, because of one input

class Findings {
 public:
  // Inputs of findings are written into `folder`.
  explicit Findings(std::string folder) : folder_(std::move(folder)) {}

  // `what`: "crash", "hang", "growth", "counts".
  void Add(std::string_view what, uint64_t seed, std::string_view how, std::string_view input);
  const std::vector<std::string>& all() const { return all_; }

 private:
  const std::string folder_;
  std::vector<std::string> all_;
};

}  // namespace kiln::fuzz
