// The results of a fuzzer's inputs: how many of each kind were taken and refused, and the findings,
// which are inputs that crashed a program, hung it, made it grow, or left wrong counts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln::fuzz {

// Most bytes of memory that one input may cost.
inline constexpr int64_t kMaxBytes = int64_t{1} << 30;
// Most CPU time of one program run.
inline constexpr double kMaxCpu_s = 10;

class Report {
 public:
  // Findings' inputs are written into `folder`. `again` has the words that run the input of a
  // number again, up to that number.
  Report(std::string folder, std::string again)
      : folder_(std::move(folder)), again_(std::move(again)) {}

  // Everything until the next Begin belongs to input `number`.
  void Begin(int64_t number) { number_ = number; }
  void Count(const std::string& kind, bool taken, double seconds, int64_t bytes = 0);

  // Returns the path at which Find would keep the input.
  std::string PathFor(std::string_view what) const;
  // `what` is "crash", "hang", "growth" or "counts"; `how` has one or more lines.
  void Find(std::string_view what, std::string_view how, std::string_view input);

  int64_t inputs() const;
  int64_t findings() const { return findings_; }
  // Returns a row for each kind: taken, refused, the longest and the largest.
  std::string Table() const;

 private:
  struct Row {
    int64_t taken = 0, refused = 0, bytes = 0;
    double seconds = 0;
  };

  const std::string folder_, again_;
  int64_t number_ = 0, findings_ = 0;
  std::map<std::string, Row> rows_;
};

}  // namespace kiln::fuzz
