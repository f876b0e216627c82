// Measure-record lines: the log format of TVM's auto_scheduler, versions v0.1 to v0.6, in and out.
//
//   {"i": [[workload_key, target, hardware, host, layout, input_names], [[], steps]], "r": [costs,
//   error, all, time], "v": "v0.6"}
//
// One JSON object per line; lines that start with '#' or a space are comments. What is printed is
// what TVM prints, byte for byte, and what its reader accepts (any other key is fatal to it). That
// makes the format lossy: doubles have six significant digits, and message, device and early stop
// have no place in it. The lossless form of our records is the database itself (docs/records.md).
//
// parse(print(x)) == x when x came from Parse and its doubles have at most six significant digits.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/record.h"

namespace kiln::store {

// What a failed trial has for a cost in a log.
inline constexpr double kErrorCost = 1e10;

struct MeasureLogLine {
  std::string workload_key;
  std::string target;
  // Each is there only if those before it are. Lines of v0.1 and v0.2 have none, v0.3 the first,
  // v0.4 one or two, v0.5 three, v0.6 all four.
  std::optional<HardwareRow> hardware;
  std::optional<std::string> target_host;
  std::optional<int64_t> layout_rewrite_option;
  std::optional<std::vector<std::string>> task_input_names;
  std::string steps_json;  // the array of steps, on one line: `, ` between items
  std::vector<double> costs_s;
  int error_no = 0;       // 0..8
  double all_cost_s = 0;  // build + run wall time
  int64_t timestamp_s = 0;
  std::string version;  // as found, not checked; "" when the line has none

  bool operator==(const MeasureLogLine&) const = default;
};

// Comments, and empty lines, which TVM's reader would refuse.
bool IsMeasureLogComment(std::string_view line);

// One line that is no comment. Keys in any order, any white space between items.
StatusOr<MeasureLogLine> ParseMeasureLogLine(std::string_view line);

// Without the line feed.
std::string PrintMeasureLogLine(const MeasureLogLine& line);

struct MeasureLog {
  std::vector<MeasureLogLine> lines;
  std::vector<std::string>
      errors;  // "line 12: ...": the lines that were refused; the others are all there
};

MeasureLog ParseMeasureLog(std::string_view text);

// The line of a record, as v0.6. Costs are [1e+10] on error. Refused when its steps are no array of
// steps.
StatusOr<MeasureLogLine> LineOfRecord(const Record& record);

// The record of a line: no DAG, no FLOPs, no device; costs dropped on error; all_cost_s in run_s.
// Refused when a success has no positive cost.
StatusOr<Record> RecordOfLine(MeasureLogLine line, std::string_view job_id, uint32_t trial);

}  // namespace kiln::store
