// Identifiers of CUDA C for the names of a program.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace kiln::codegen {

// Gives each identifier once, and no keyword, function or type that the text uses itself:
// "i.0" -> "i_0", and "i_0_1" when that is taken.
//
// Cost of a name: constant, whatever was given before.
class CudaNames {
 public:
  // How many names were given until then.
  using Mark = size_t;

  CudaNames();
  CudaNames(const CudaNames&) = delete;
  CudaNames& operator=(const CudaNames&) = delete;
  std::string Unique(std::string_view name);

  // The names that are given between Here and ForgetSince are free again.
  Mark Here() const { return given_.size(); }
  void ForgetSince(Mark mark);

 private:
  struct Given {
    std::string name, base;
    int number;  // of the base, which the name ends with; 0: the name is the base
  };

  // Of each name that is taken: the first number that may be free behind it.
  absl::flat_hash_map<std::string, int> next_;
  std::vector<Given> given_;
};

}  // namespace kiln::codegen
