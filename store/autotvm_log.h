// Lines of autotvm's logs (its JSON protocol, version 0.2), in and out:
//
//   {"input": ["cuda -keys=cuda,gpu", "dense_small_batch.cuda", [["TENSOR", [1, 768], "float32"],
//   null], {}], "config": {"index": 10, "code_hash": null, "entity": [["tile_k", "sp", [-1, 48]]]},
//   "result": [[5.019791787918519e-06], 0, 1.466942548751831, 1609326547.64094], "version": 0.2,
//   "tvm_version": "0.8.dev0"}
//
// One JSON object per line; lines that start with '#' are comments. The format is that of
// tvm/autotvm/record.py (TVM 0.8 to 0.19). What is printed is what Python's json module prints: a
// line that autotvm wrote comes back byte for byte, any other one value for value.
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

// What line of which log this is, by its keys alone.
enum class LogLineKind {
  kMeasureRecord,  // auto_scheduler's (measure_log.h), or no log line at all
  kAutotvm,
  kAutotvmOld,     // autotvm's version 0.1, which autotvm itself ignores
  kAutotvmPickle,  // autotvm's pickle protocol: Python objects in base64
};
LogLineKind KindOfLogLine(std::string_view line);

// One line that is no comment. Keys in any order. Another key is refused: it could not be given
// back.
StatusOr<AutotvmRecord> ParseAutotvmLine(std::string_view line);

// Without the line feed.
std::string PrintAutotvmLine(const AutotvmRecord& record);

// What one knob of a configuration is set to.
struct AutotvmEntity {
  enum class Kind { kSplit, kReorder, kAnnotate, kOther };
  std::string knob;
  Kind kind = Kind::kOther;
  std::vector<int64_t> numbers;          // kSplit: sizes, -1 first; kReorder: a permutation
  std::vector<std::string> annotations;  // kAnnotate
  std::string value;                     // kOther: JSON

  bool operator==(const AutotvmEntity&) const = default;
};
StatusOr<std::vector<AutotvmEntity>> ParseAutotvmEntities(std::string_view json);

}  // namespace kiln::store
