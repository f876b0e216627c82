// What a model needs and Kiln does not have: collected while the model is read, told in one
// message.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace kiln::frontend {

class UnsupportedList {
 public:
  // `what`: "NonMaxSuppression (ai.onnx 11)", an input, an initializer. Equal ones are counted.
  void Add(std::string what, std::string where, std::string reason);
  bool empty() const { return entries_.empty(); }
  // Unimplemented, in the order in which they were met: a line each, with how often and where, for
  // the first kMaxLines.
  static constexpr size_t kMaxLines = 50;
  Status ToStatus() const;

 private:
  struct Entry {
    std::string what;
    std::string where;  // the first of them
    std::string reason;
    int count = 1;
  };
  std::vector<Entry> entries_;
  std::map<std::pair<std::string, std::string>, size_t> index_;  // by what and reason
};

// Why there is no rule for an operator, and what would help.
std::string WhyUnsupported(std::string_view domain, std::string_view op);

}  // namespace kiln::frontend
