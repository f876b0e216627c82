// Records of autotvm's measurements: one configuration of a template, measured once.
//
// A configuration means nothing without its template, which says which knobs there are and what
// they do. Therefore these records are kept apart from those of schedules (record.h) and are no
// candidates for them. Plain values; JSON texts are kept as they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace kiln::store {

struct AutotvmRecord {
  // Given by the store, ascending in the order of commit.
  int64_t id = 0;
  std::string target = {};
  // The template's name: "conv2d_NCHWc.x86".
  std::string task = {};
  // JSON arrays, [["TENSOR", [1, 768], "float32"], null, "float32"]; `kwargs` is an object: {}.
  std::string args = {}, kwargs = {};
  int64_t config_index = 0;
  // None stands for null.
  std::optional<std::string> code_hash = {};
  // JSON text, see ParseAutotvmEntities (autotvm_log.h).
  std::string entities = {};
  // The costs as they are logged: [1e9] on error.
  std::vector<double> costs_s = {};
  // 0 to 8, with the numbers of record.h.
  int error = 0;
  // Wall time of build and run.
  double all_cost_s = 0;
  // Unix time.
  double timestamp_s = 0;
  double version = 0;
  // None: the line has no such key.
  std::optional<std::string> tvm_version = {};

  bool operator==(const AutotvmRecord&) const = default;
};

// The mean of costs_s; infinite on error.
double MeanCost(const AutotvmRecord& record);

// Returns the workload of a record, "NAME ARGS". Records of one template with equal arguments have
// the same workload.
std::string AutotvmWorkload(const AutotvmRecord& record);

// Returns whether both records are of one measurement. Costs are not compared, since another copy
// of a log may have them rounded.
bool SameMeasurement(const AutotvmRecord& a, const AutotvmRecord& b);

// Returns an error for a record that no store keeps: no target, no task, an error kind out of
// range, a success without costs or with a cost that is not a positive finite number.
Status ValidateAutotvmRecord(const AutotvmRecord& record);

// A record matches if it meets all conditions that are set.
struct AutotvmFilter {
  // "" selects all tasks.
  std::string task = {};
  // Selects the targets that start with this text.
  std::string target = {};
  bool include_errors = false;
};

}  // namespace kiln::store
