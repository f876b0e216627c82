#include "client/jobs/parameters.h"

#include <charconv>

namespace kiln::client {

StatusOr<std::map<std::string, double>> ParseParameters(const std::vector<std::string>& texts) {
  std::map<std::string, double> parameters;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    const char* const end = text.data() + text.size();
    double value = 0;
    const auto [at, error] = std::from_chars(
        text.data() + (equals == std::string::npos ? text.size() : equals + 1), end, value);
    if (equals == std::string::npos || equals == 0 || error != std::errc() || at != end) {
      return InvalidArgument("'{}' is no parameter: expected NAME=NUMBER, for instance max_depth=8",
                             text);
    }
    parameters[text.substr(0, equals)] = value;
  }
  return parameters;
}

}  // namespace kiln::client
