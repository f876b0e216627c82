// What a model needs and Kiln does not have: collected while the model is read, told in one
// message.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace kiln::frontend {

class UnsupportedList {
 public:
  // `what`: "NonMaxSuppression (ai.onnx 11)", an input, an initializer. Equal ones are counted.
  void Add(std::string what, std::string where, std::string reason);
  bool empty() const { return entries_.empty(); }
  // Unimplemented, in the order in which they were met: a line each, with how often and where.
  Status ToStatus() const;

 private:
  struct Entry {
    std::string what;
    std::string where;  // the first of them
    std::string reason;
    int count = 1;
  };
  std::vector<Entry> entries_;
};

}  // namespace kiln::frontend
