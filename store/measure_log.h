// Parses and prints measure records: lines of TVM's auto_scheduler logs, versions v0.1 to v0.6.
//
//   {"i": [[workload_key, target, hardware, host, layout, input_names], [[], steps]], "r": [costs,
//   error, all, time], "v": "v0.6"}
//
// One JSON object per line; lines that start with '#' or a space are comments. The printed text
// equals TVM's byte for byte, and TVM's reader accepts it (any other key is fatal to that reader).
// That makes the format lossy: doubles have six significant digits, and message, device and early
// stop have no place in it. The lossless form of our records is the database itself
// (docs/records.md).
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

// Cost of a failed trial in a log.
inline constexpr double kErrorCost = 1e10;

struct MeasureLogLine {
  std::string workload_key;
  std::string target;
  // A field is present only if the fields before it are. Lines of v0.1 and v0.2 have none of these
  // four, v0.3 has the first, v0.4 one or two, v0.5 three, v0.6 all four.
  std::optional<HardwareRow> hardware;
  std::optional<std::string> target_host;
  std::optional<int64_t> layout_rewrite_option;
  std::optional<std::vector<std::string>> task_input_names;
  // The array of steps on one line, `, ` between items.
  std::string steps_json;
  std::vector<double> costs_s;
  // 0 to 8.
  int error_no = 0;
  // Wall time of build and run.
  double all_cost_s = 0;
  int64_t timestamp_s = 0;
  // The version as found, not checked; "" if the line has none.
  std::string version;

  bool operator==(const MeasureLogLine&) const = default;
};

// Returns true for comments and for empty lines, which TVM's reader would refuse.
bool IsMeasureLogComment(std::string_view line);

// Parses one line that is no comment. Keys may stand in any order, with any white space between
// items.
StatusOr<MeasureLogLine> ParseMeasureLogLine(std::string_view line);

// Prints the line without a line feed.
std::string PrintMeasureLogLine(const MeasureLogLine& line);

struct MeasureLog {
  std::vector<MeasureLogLine> lines;
  // Refused lines: "line 12: ...". All other lines are in `lines`.
  std::vector<std::string> errors;
};

MeasureLog ParseMeasureLog(std::string_view text);

// Returns the line of a record as v0.6. Costs are [1e+10] on error, and the one Cost() of a record
// that was measured again. A record is refused if its steps are no array of steps.
StatusOr<MeasureLogLine> LineOfRecord(const Record& record);

// Returns the record of a line: no DAG, no FLOPs, no device; all_cost_s becomes run_s. Costs are
// dropped on error. A success without a positive cost is refused.
StatusOr<Record> RecordOfLine(MeasureLogLine line, std::string_view job_id, uint32_t trial);

}  // namespace kiln::store
