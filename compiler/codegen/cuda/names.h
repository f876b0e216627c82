// Identifiers of CUDA C for the names of a program.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace kiln::codegen {

// Gives each identifier once, and no keyword, function or type that the text uses itself:
// "i.0" -> "i_0", and "i_0_1" when that is taken.
//
// A value: a copy goes on where the original was. Cost: logarithmic in the names given.
class CudaNames {
 public:
  CudaNames();
  std::string Unique(std::string_view name);

 private:
  std::set<std::string, std::less<>> used_;
};

}  // namespace kiln::codegen
