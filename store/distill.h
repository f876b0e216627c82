// The best records of a log: what is worth handing to somebody else.
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

// The keys under which a target is looked up: those of its -keys=, its -device=, and the default
// ones of its kind (cuda: cuda, gpu; llvm: cpu; any other: its name), without repetition.
std::vector<std::string> TargetKeys(std::string_view target);

// Its model: that of -model=, "" where it does not say or says that it is unknown.
std::string TargetModel(std::string_view target);

// For every (key of TargetKeys(target), workload hash, workload arguments, computation, layout
// rewrite option: costs of one are no comparison with those of another) the best record without
// error: complete before stopped early, then the smallest mean cost, then the one that comes first.
// A record that is best under several keys is there once. Order: by target key, hash and arguments
// in the order they first appear. Records come one at a time, and no more of them are held than are
// the best so far. For one thread, as the others here.
class RecordDistiller {
 public:
  RecordDistiller();
  ~RecordDistiller();

  // ResourceExhausted when the best take more than kMostBytes (LogDistiller) together.
  Status Add(const Record& record);
  // All of them. Call once.
  std::vector<Record> Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};
std::vector<Record> Distill(std::span<const Record> records);

// The same over the lines of a log, whatever their version.
class LogDistiller {
 public:
  LogDistiller();
  ~LogDistiller();

  // ResourceExhausted when the best take more than `most_bytes` together.
  Status Add(MeasureLogLine line, size_t most_bytes = kMostBytes);
  // All of them. Call once.
  std::vector<MeasureLogLine> Finish();

  static constexpr size_t kMostBytes = size_t{512} << 20;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Of autotvm's records, as its `autotvm.record --mode pick` has it: for every (key or model of the
// target, template, arguments) the one without error that has the smallest mean cost, or comes
// first. One that is best under several is there once. In the order in which they came.
class AutotvmDistiller {
 public:
  AutotvmDistiller();
  ~AutotvmDistiller();

  // ResourceExhausted as above.
  Status Add(const AutotvmRecord& record);
  // All of them. Call once.
  std::vector<AutotvmRecord> Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kiln::store
