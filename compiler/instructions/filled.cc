#include "compiler/instructions/filled.h"

#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"

namespace kiln::instructions {

std::string Filled(std::string_view definition, Replacements values) {
  return absl::StrReplaceAll(
      {definition.data(), definition.size()},
      std::vector<std::pair<std::string, std::string>>(values.begin(), values.end()));
}

}  // namespace kiln::instructions
