// The JSON of the pages' answers: values, and their text.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace kiln::scheduler {

// Keeps the order of the fields. A number that is not finite is printed as null.
using Json = nlohmann::ordered_json;

// Returns the text on one line. Bytes that are not UTF-8 are replaced.
inline std::string TextOf(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Longest text of a stranger within an answer, such as the message of a failed trial.
inline constexpr size_t kMostTextBytes = 4'000;

// Returns the text without what goes beyond kMostTextBytes.
std::string Bounded(std::string_view text);

}  // namespace kiln::scheduler
