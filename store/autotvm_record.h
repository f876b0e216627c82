// What the store keeps of autotvm's measurements: one configuration of a template, measured once.
//
// A configuration says nothing without the template that it is of: which knobs there are and what
// they do. So these records stand beside those of schedules (record.h) and are no candidates for
// them. Plain values; JSON texts are kept as they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace kiln::store {

struct AutotvmRecord {
  int64_t id = 0;  // given by the store, ascending in the order of commit
  std::string target = {};
  std::string task = {};  // the template's name: "conv2d_NCHWc.x86"
  // JSON arrays: [["TENSOR", [1, 768], "float32"], null, "float32"]; an object: {}.
  std::string args = {}, kwargs = {};
  int64_t config_index = 0;
  std::optional<std::string> code_hash = {};  // none: null
  std::string entities = {};                  // JSON, see ParseAutotvmEntities (autotvm_log.h)
  std::vector<double> costs_s = {};           // as logged: [1e9] on error
  int error = 0;                              // 0..8, numbers as in record.h
  double all_cost_s = 0;                      // wall time of build and run
  double timestamp_s = 0;                     // unix time
  double version = 0;
  std::optional<std::string> tvm_version = {};  // none: the line has none

  bool operator==(const AutotvmRecord&) const = default;
};

// The mean of costs_s; infinite on error.
double MeanCost(const AutotvmRecord& record);

// Of one workload are records of one template with equal arguments: "NAME ARGS".
std::string AutotvmWorkload(const AutotvmRecord& record);

// Are these one measurement? Costs do not count: of another copy of a log they may be rounded.
bool SameMeasurement(const AutotvmRecord& a, const AutotvmRecord& b);

// What a store refuses to keep: no target, no task, an error kind out of range, a success without
// costs or with one that is not a positive finite number.
Status ValidateAutotvmRecord(const AutotvmRecord& record);

// All set conditions must hold.
struct AutotvmFilter {
  std::string task = {};    // "" = all
  std::string target = {};  // only targets that start so
  bool include_errors = false;
};

}  // namespace kiln::store
