// The promise that every text form keeps: a value prints as a text that parses to the same value.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "base/status.h"

namespace kiln::fuzz {

// For values that are compared by their texts alone.
struct SameText {
  template <typename Value>
  bool operator()(const Value&, const Value&) const {
    return true;
  }
};

// Checks that `print(value)` is accepted by `parse`, that the parsed value is `equal` to the value,
// and that it prints as the same text. Returns the parsed value. `parse` returns a StatusOr of it.
template <typename Value, typename Print, typename Parse, typename Equal = std::equal_to<>>
auto CheckRoundTrip(const Value& value, const Print& print, const Parse& parse,
                    const Equal& equal = {}) {
  const std::string printed = print(value);
  auto parsed = parse(printed);
  KILN_CHECK(parsed.ok(), "{}\n{}", Message(parsed.status()), printed);
  const std::string again = print(*parsed);
  KILN_CHECK(again == printed, "{}\nas\n{}", printed, again);
  KILN_CHECK(equal(*parsed, value), "{}", printed);
  return *std::move(parsed);
}

}  // namespace kiln::fuzz
