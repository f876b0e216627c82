// A trained cost model as a file: the facts of its training, how well it ranks programs that it has
// not seen, and the model itself. Another machine needs only this file to rank with the model.
//
// Format, version 1:
//
//   kiln-cost-model 1 HEADER_BYTES MODEL_BYTES DIGEST\n   numbers in decimal
//   {"kind": "xgb", ...}\n                                HEADER_BYTES: a ModelInfo, one JSON line
//   ...                                                   MODEL_BYTES: CostModel::Save
//
// The digest is the XXH3 of the header and the model: it detects damage, not malice. Printing and
// parsing give the same value back. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "costmodel/rank_quality.h"

namespace kiln::costmodel {

inline constexpr size_t kMaxModelFileBytes = size_t{64} << 20;

// A computation on a device, with the programs that a model learned from or was tested on.
struct ModelTask {
  std::string workload_id = {};
  std::string workload_key = {};
  std::string target = {};
  std::string device = {};       // "" if not known, as for an imported line
  std::string description = {};  // for people; "" if not known
  int64_t programs = 0;          // number of measured programs
  int64_t failed = 0;            // number of these that failed
  double best_s = 0;             // the fastest of these; 0: all failed

  friend bool operator==(const ModelTask&, const ModelTask&) = default;
};

// How well a model ranks the programs of one task.
struct TaskQuality {
  ModelTask task = {};  // counts the programs that the model was tested on
  RankQuality quality = {};

  friend bool operator==(const TaskQuality&, const TaskQuality&) = default;
};

struct HeldOut {
  // Whether whole computations were held out: then the figures are for tasks that the model knows
  // nothing of. Otherwise records of each computation were held out, and the figures are for tasks
  // whose tuning goes on.
  bool by_computation = false;
  double share = 0;  // share of the records or computations
  // If there are few records, all of them were tested, in so many turns, each by a model that had
  // learned from the records of the other turns. The model of the file has learned from all
  // records. 0: the records that were held out were tested.
  int turns = 0;
  int k = 0;                            // for recall and peak
  std::vector<TaskQuality> tasks = {};  // tasks with at least kMinRanked programs that worked

  friend bool operator==(const HeldOut&, const HeldOut&) = default;
};
// An order of fewer programs says nothing.
inline constexpr int64_t kMinRanked = 5;

RankQuality MeanOf(std::span<const TaskQuality> tasks);

struct ModelInfo {
  std::string kind = "xgb";  // a name of make_cost_model.h
  // The trees correct the analytic model with these constants (device/calibration.h). "": the trees
  // stand alone.
  std::string calibration = {};
  int feature_version = 0;
  std::string columns = {};                       // ColumnsDigest
  std::map<std::string, double> parameters = {};  // parameters that differ from the kind's defaults
  uint64_t seed = 0;
  // Number of records that were read; `tasks` counts those learned from.
  int64_t records = 0;
  std::vector<ModelTask> tasks = {};      // learned from, the most programs first
  std::vector<std::string> sources = {};  // for people: "kiln.db", "resnet.json"
  int64_t trained_s = 0;                  // Unix time
  std::optional<HeldOut> held_out = {};   // none: nothing was held out

  int64_t programs() const;
  int64_t failed() const;
  friend bool operator==(const ModelInfo&, const ModelInfo&) = default;
};

struct ModelFile {
  ModelInfo info;
  std::string model;

  friend bool operator==(const ModelFile&, const ModelFile&) = default;
};

std::string PrintModelFile(const ModelFile& file);
// DataLoss if the bytes are no such file, or damaged. FailedPrecondition if the file has another
// version.
StatusOr<ModelFile> ParseModelFile(std::string_view bytes);

// The header alone: one line of JSON.
std::string PrintModelInfo(const ModelInfo& info);
StatusOr<ModelInfo> ParseModelInfo(std::string_view text);

// Returns 16 hex digits that depend on the names of the columns and on their order.
std::string ColumnsDigest(std::span<const std::string_view> columns);

// FailedPrecondition if the model was trained on other columns than these.
Status CheckColumns(const ModelInfo& info, int feature_version,
                    std::span<const std::string_view> columns);

}  // namespace kiln::costmodel
