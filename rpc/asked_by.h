// The text that says which operator asked for a worker's mode, when and why: "ada at
// 2026-11-29T14:02:11Z: the driver is updated". The fields `user` of SetWorkerModeRequest and
// `asked_by` of WorkerState have it. It is a text, and not several fields, because workers and
// trackers only repeat it and put it into the sentence for people.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace kiln {

// Most bytes of each part, so that the text fits its fields.
inline constexpr size_t kMostAskerBytes = 96;
inline constexpr size_t kMostWhyBytes = 128;

struct AskedBy {
  // The operator's name, which has no ": ".
  std::string name = {};
  std::optional<absl::Time> at = std::nullopt;
  // "" = he gave no reason.
  std::string why = {};

  bool operator==(const AskedBy&) const = default;
};

// Prints the parts that are set. The time has whole seconds.
std::string PrintAskedBy(const AskedBy& asked);
// Reads any text: without a time and a reason in it, it is a name.
AskedBy ParseAskedBy(std::string_view text);

}  // namespace kiln
