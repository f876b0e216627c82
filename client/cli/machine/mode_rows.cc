#include "client/cli/machine/mode_rows.h"

#include "rpc/asked_by.h"
#include "rpc/worker_modes.h"

namespace kiln::client {
namespace {

constexpr char kItself[] = "itself";

// Tells whether the worker's mode is the one that an operator asked for.
bool IsByOperator(const v1::WorkerState& worker) {
  if (worker.mode() != worker.asked_mode()) return false;
  return worker.mode() != v1::WORKER_SERVES ||
         (worker.mode_reason().empty() && !worker.asked_by().empty());
}

// Returns the beginning of the drift that goes on.
std::optional<int64_t> DriftsSince(const v1::WorkerState& worker) {
  for (const v1::DriftSpan& drift : worker.drifts()) {
    if (drift.to_s() == 0) return static_cast<int64_t>(drift.from_s());
  }
  return std::nullopt;
}

// Returns the text without the words that the column of the mode has.
std::string ReasonOf(const v1::WorkerState& worker) {
  constexpr std::string_view kBefore = "quarantined: ";
  std::string reason = worker.mode_reason();
  if (reason.starts_with(kBefore)) reason.erase(0, kBefore.size());
  return reason;
}

void FillByOperator(const v1::WorkerState& worker, ModeRow& row) {
  AskedBy asked = ParseAskedBy(worker.asked_by());
  if (asked.at.has_value()) row.since_s = absl::ToUnixSeconds(*asked.at);
  row.by = asked.name.empty() ? "an operator" : std::move(asked.name);
  row.why = std::move(asked.why);
}

}  // namespace

std::string_view ModeWord(const v1::WorkerState& worker, uint32_t busy_slots) {
  if (worker.mode() == v1::WORKER_DRAINS && busy_slots == 0) return "drained";
  return ModeName(worker.mode());
}

std::vector<ModeRow> ModeRows(const v1::ListReply& workers) {
  std::vector<ModeRow> rows;
  for (int i = 0; i < workers.workers_size(); ++i) {
    const v1::WorkerState& worker = workers.workers(i);
    const bool by_operator = IsByOperator(worker);
    if (worker.mode() == v1::WORKER_SERVES && worker.mode_reason().empty() && !by_operator) {
      continue;
    }
    const uint32_t busy = i < workers.busy_slots_size() ? workers.busy_slots(i) : 0;
    ModeRow row{.address = worker.address(), .mode = ModeWord(worker, busy)};
    if (by_operator) {
      FillByOperator(worker, row);
    } else {
      row.by = kItself;
      row.why = ReasonOf(worker);
      if (worker.mode() == v1::WORKER_QUARANTINED) row.since_s = DriftsSince(worker);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace kiln::client
