// Collects features that a model needs and Kiln lacks while the model is read, and reports them in
// one message.
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
  // `what` names an operator, "NonMaxSuppression (ai.onnx 11)", an input or an initializer. Equal
  // entries are counted.
  void Add(std::string what, std::string where, std::string reason);
  bool empty() const { return entries_.empty(); }
  // Returns Unimplemented with a line for each entry in the order of their first occurrence, with
  // count and place, for the first kMaxLines entries.
  static constexpr size_t kMaxLines = 50;
  Status ToStatus() const;

 private:
  struct Entry {
    std::string what;
    // Place of the first occurrence.
    std::string where;
    std::string reason;
    int count = 1;
  };
  std::vector<Entry> entries_;
  // Entries by what and reason.
  std::map<std::pair<std::string, std::string>, size_t> index_;
};

// Returns why there is no rule for an operator, and what would help.
std::string WhyUnsupported(std::string_view domain, std::string_view op);

}  // namespace kiln::frontend
