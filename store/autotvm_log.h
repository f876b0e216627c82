// Lines of autotvm's logs (its JSON protocol, version 0.2), in and out:
//
//   {"input": ["cuda -keys=cuda,gpu", "dense_small_batch.cuda", [["TENSOR", [1, 768], "float32"],
//   null], {}], "config": {"index": 10, "code_hash": null, "entity": [["tile_k", "sp", [-1, 48]]]},
//   "result": [[5.019791787918519e-06], 0, 1.466942548751831, 1609326547.64094], "version": 0.2,
//   "tvm_version": "0.8.dev0"}
//
// One JSON object per line; lines that start with '#' are comments. The format is that of
// tvm/autotvm/record.py (TVM 0.8 to 0.19). The printed text is that of Python's json module: a line
// that autotvm wrote comes back byte for byte, any other line value for value.
//
// Pure functions. Errors: InvalidArgument with the column.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/autotvm_record.h"

namespace kiln::store {

// The kind of a log line, recognised by its keys alone.
enum class LogLineKind {
  // A line of auto_scheduler (measure_log.h), or no log line at all.
  kMeasureRecord,
  kAutotvm,
  // Version 0.1 of autotvm's log, which autotvm itself ignores.
  kAutotvmOld,
  // A line of autotvm's pickle protocol: Python objects in base64.
  kAutotvmPickle,
};
LogLineKind KindOfLogLine(std::string_view line);

// Parses one line that is no comment. Keys may stand in any order. A line with an unknown key is
// refused, since the record has no place to keep the key.
StatusOr<AutotvmRecord> ParseAutotvmLine(std::string_view line);

// Prints the record without a line feed.
std::string PrintAutotvmLine(const AutotvmRecord& record);

// The value of one knob of a configuration.
struct AutotvmEntity {
  enum class Kind { kSplit, kReorder, kAnnotate, kOther };
  std::string knob;
  Kind kind = Kind::kOther;
  // Sizes of kSplit, -1 first; the permutation of kReorder.
  std::vector<int64_t> numbers;
  // Used by kAnnotate only.
  std::vector<std::string> annotations;
  // Used by kOther only: JSON.
  std::string value;

  bool operator==(const AutotvmEntity&) const = default;
};
StatusOr<std::vector<AutotvmEntity>> ParseAutotvmEntities(std::string_view json);

}  // namespace kiln::store
