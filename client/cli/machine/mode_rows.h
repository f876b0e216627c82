// The rows of `kiln workers` about modes: which worker does not serve or serves in part, since
// when, by whom and why. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/tracker.pb.h"

namespace kiln::client {

// Returns "serves", "cordoned", "drains", "drained", "paused" or "quarantined". A worker that
// drains is drained when none of its slots is busy.
std::string_view ModeWord(const v1::WorkerState& worker, uint32_t busy_slots);

struct ModeRow {
  std::string address = {};
  std::string_view mode = {};
  // Unix time; none: it is not known.
  std::optional<int64_t> since_s = std::nullopt;
  // Name of an operator, or "itself".
  std::string by = {};
  // "" = no reason was given.
  std::string why = {};

  bool operator==(const ModeRow&) const = default;
};

// Returns a row for each worker that does not serve, that serves in part, or whose mode an operator
// has set.
std::vector<ModeRow> ModeRows(const v1::ListReply& workers);

}  // namespace kiln::client
