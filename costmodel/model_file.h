// A trained cost model as a file: what it was trained on, how well it ranks what it has not seen,
// and the model itself. One file is all that another machine needs to rank with it.
//
// Format, version 1:
//
//   kiln-cost-model 1 HEADER_BYTES MODEL_BYTES DIGEST\n     numbers in decimal
//   {"kind": "xgb", ...}\n                                  HEADER_BYTES: a ModelInfo, one line of JSON
//   ...                                                     MODEL_BYTES: CostModel::Save
//
// The digest is the XXH3 of the header and the model: it tells damage, not malice. Printing and
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

inline constexpr size_t kMostModelFileBytes = size_t{64} << 20;

// A computation on a device, as far as a model learned from it or was tested on it.
struct ModelTask {
  std::string workload_id = {};
  std::string workload_key = {};
  std::string target = {};
  std::string device = {};       // "": not known, of an imported line
  std::string description = {};  // for people; "": not known
  int64_t programs = 0;          // measured
  int64_t failed = 0;            // of these
  double best_s = 0;             // the fastest of these; 0: all failed

  friend bool operator==(const ModelTask&, const ModelTask&) = default;
};

// How well a model ranks the programs of one task.
struct TaskQuality {
  ModelTask task = {};  // of the programs that it was tested on
  RankQuality quality = {};

  friend bool operator==(const TaskQuality&, const TaskQuality&) = default;
};

struct HeldOut {
  // Whole computations were held out: what the figures say of is tasks that the model knows nothing
  // of. Otherwise records of each computation: of tasks whose tuning goes on.
  bool by_computation = false;
  double share = 0;  // of the records or computations
  // Few records: all were tested, in so many turns, each by a model that had learned from those of
  // the other turns; the model of the file has learned from all. 0: what was held out was tested.
  int turns = 0;
  int k = 0;                            // of recall and peak
  std::vector<TaskQuality> tasks = {};  // those with at least kFewestRanked programs that worked

  friend bool operator==(const HeldOut&, const HeldOut&) = default;
};
// An order of fewer says nothing.
inline constexpr int64_t kFewestRanked = 5;

RankQuality MeanOf(std::span<const TaskQuality> tasks);

struct ModelInfo {
  std::string kind = "xgb";  // as make_cost_model.h calls it
  // The trees correct the analytic model with these constants (device/calibration.h); "": they stand
  // alone.
  std::string calibration = {};
  int feature_version = 0;
  std::string columns = {};                       // ColumnsDigest
  std::map<std::string, double> parameters = {};  // those that are not the kind's defaults
  uint64_t seed = 0;
  int64_t records = 0;                // that were looked at; those learned from are counted by task
  std::vector<ModelTask> tasks = {};  // learned from, the most programs first
  std::vector<std::string> sources = {};  // for people: "kiln.db", "resnet.json"
  int64_t trained_s = 0;                  // unix time
  std::optional<HeldOut> held_out = {};   // none: nothing was

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
// DataLoss: these bytes are no such file, or damaged; FailedPrecondition: of another version.
StatusOr<ModelFile> ParseModelFile(std::string_view bytes);

// The header alone: one line of JSON.
std::string PrintModelInfo(const ModelInfo& info);
StatusOr<ModelInfo> ParseModelInfo(std::string_view text);

// 16 hex digits that differ where the names of the columns or their order do.
std::string ColumnsDigest(std::span<const std::string_view> columns);

// FailedPrecondition: the model was trained on other columns than these.
Status CheckColumns(const ModelInfo& info, int feature_version,
                    std::span<const std::string_view> columns);

}  // namespace kiln::costmodel
