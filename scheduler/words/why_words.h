// The words of `kiln why`, in one table: docs/operations.md has the same rows, and a test compares
// them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {

enum class WhyKind {
  kSucceeded,
  kFailed,
  kCancelled,
  kPaused,
  kProcess,
  kResults,
  kQueue,
  kNext,
  kNoDevice,
  kStopped,
  kQuarantined,
  kOutsideHours,
  kBusy,
  kDeviceLimit,
  kNoBuilder,
  kBuilders,
  kReference,
  kLastReadings,
  kFailing,
  kWaits,
  kShare,
  kRunning,
};

struct WhyWords {
  WhyKind kind;
  // Name in JSON and in docs: "no-device".
  std::string_view name;
  // The sentence, and what would help. {job} and other names in braces stand for values.
  std::string_view text;
  std::string_view remedy;
};

// A row for each kind, in the order of WhyKind.
std::span<const WhyWords> AllWhyWords();
const WhyWords& WordsOf(WhyKind kind);

// Names without their braces, and their values.
using WhyValues = std::vector<std::pair<std::string_view, std::string>>;
// Returns the text with each {name} replaced by its value.
std::string Filled(std::string_view text, const WhyValues& values);

}  // namespace kiln
