// Selects the best records of a log: those that are worth handing to somebody else.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/autotvm_record.h"
#include "store/measure_log.h"
#include "store/record.h"

namespace kiln::store {

// Returns the keys under which a target is looked up, without repetition: those of its -keys=, its
// -device=, and the default ones of its kind (cuda: cuda, gpu; llvm: cpu; any other: its name).
std::vector<std::string> TargetKeys(std::string_view target);

// Returns the value of the target's -model=; "" if it has none or the model is "unknown".
std::string TargetModel(std::string_view target);

// Keeps the best record without error of each group. Records of a group have the same key of
// TargetKeys(target), workload hash, workload arguments, computation and layout rewrite option:
// costs of different layout options cannot be compared. The record is chosen as a query chooses one
// (record_order.h); of records without ids the first one. A record that is best under several keys
// is kept once. The result is ordered by target key, hash and arguments in the order of their first
// appearance. Records are added one at a time, and only the best ones so far and the finalists are
// held. Not thread-safe, like the other distillers.
class RecordDistiller {
 public:
  RecordDistiller();
  ~RecordDistiller();

  // ResourceExhausted if the best records together take more than LogDistiller::kMaxBytes.
  Status Add(const Record& record);
  // Returns the best records. Call it once.
  std::vector<Record> Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};
std::vector<Record> Distill(std::span<const Record> records);

// Does the same for the lines of a log, whatever their version. A line has no interval: the
// smallest mean cost counts, then the first line.
class LogDistiller {
 public:
  LogDistiller();
  ~LogDistiller();

  // ResourceExhausted if the best lines together take more than `most_bytes`.
  Status Add(MeasureLogLine line, size_t most_bytes = kMaxBytes);
  // Returns the best lines. Call it once.
  std::vector<MeasureLogLine> Finish();

  static constexpr size_t kMaxBytes = size_t{512} << 20;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Distills autotvm's records like its `autotvm.record --mode pick`: for every (key or model of the
// target, template, arguments) it keeps the record without error that has the smallest mean cost,
// or the first of those. A record that is best under several keys is kept once. The result has the
// order of the input.
class AutotvmDistiller {
 public:
  AutotvmDistiller();
  ~AutotvmDistiller();

  // ResourceExhausted if the best records together take more than LogDistiller::kMaxBytes.
  Status Add(const AutotvmRecord& record);
  // Returns the best records. Call it once.
  std::vector<AutotvmRecord> Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kiln::store
