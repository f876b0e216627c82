// Compares the best programs of a job with those of an earlier release, for CI: what became faster
// or slower by more than its interval.
//
// A baseline is a file: a log of records, the output of `kiln tune --json`, or a compiled network.
// The first two have programs, which are measured again, in turns with the new ones; a compiled
// network has times alone.
//
// Values. Pure but for ReadBaseline and the injected measurement.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

struct BaselineTask {
  // The key of the computation; of two programs with one key the faster one counts.
  std::string workload_key;
  // Steps of the program; "": the file has none.
  std::string steps = {};
  // Seconds by the file.
  double cost_s = 0;
  // Half of the interval around it; 0: not known.
  double confidence_s = 0;
};

struct Baseline {
  std::string path;
  std::vector<BaselineTask> tasks = {};

  // Returns null if the baseline has no such task.
  const BaselineTask* Find(const std::string& workload_key) const;
};

// InvalidArgument, with what is expected, if the file is none of the three, or has no time at all.
StatusOr<Baseline> ReadBaseline(const std::string& path);

struct ComparedTask {
  enum class Verdict { kFaster, kSame, kSlower, kNotCompared };

  // "matmul 512,512,512".
  std::string name;
  Verdict verdict = Verdict::kNotCompared;
  // True: both programs were measured now, in turns. False: the times are those of the records.
  bool measured = false;
  // Seconds of the baseline and of the job; 0: not known.
  double before_s = 0;
  double after_s = 0;
  // after / before, and half of its interval.
  double ratio = 0;
  double confidence = 0;
  // Why it was not compared or not measured: a sentence, or "".
  std::string remark = {};
};

// Returns the seconds of one call of the program that the steps make of the computation.
using MeasureSteps =
    std::function<StatusOr<double>(const std::string& dag, const std::string& steps)>;

// Compares the best records of the job with the baseline, in the order of the tasks. `measure` is
// null where programs cannot be run, and `why` says why. Both programs of a task are measured
// `turns` times (3 or more), one after the other.
std::vector<ComparedTask> CompareWithBaseline(const Baseline& baseline, const v1::JobStatus& job,
                                              const std::vector<v1::Record>& best,
                                              const MeasureSteps& measure, const std::string& why,
                                              int turns);

bool AnySlower(const std::vector<ComparedTask>& tasks);

// Returns a table, and a line that says how many became faster and slower.
std::string ComparedTable(const std::vector<ComparedTask>& tasks, const std::string& path,
                          int columns);
// Returns an object in one line: {"event":"baseline","tasks":[...]}.
std::string ComparedJson(const std::vector<ComparedTask>& tasks, const std::string& path);

}  // namespace kiln::client
