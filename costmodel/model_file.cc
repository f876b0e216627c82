#include "costmodel/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/hash/digest.h"

namespace kiln::costmodel {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMagic = "kiln-cost-model";
constexpr int kVersion = 1;
constexpr size_t kMaxFirstLineBytes = 128;

std::string DigestOf(std::string_view header, std::string_view model) {
  return fmt::format("{:016x}", Xxh3(model, Xxh3(header)));
}

// ---- to JSON --------------------------------------------------------------------------------

Json JsonOf(const ModelTask& task) {
  return {{"workload_id", task.workload_id}, {"workload_key", task.workload_key},
          {"target", task.target},           {"device", task.device},
          {"description", task.description}, {"programs", task.programs},
          {"failed", task.failed},           {"best_s", task.best_s}};
}

Json JsonOf(const TaskQuality& tested) {
  return {{"task", JsonOf(tested.task)},
          {"spearman", tested.quality.spearman},
          {"pairwise", tested.quality.pairwise},
          {"recall", tested.quality.recall},
          {"peak", tested.quality.peak}};
}

template <typename T>
Json JsonOf(const std::vector<T>& all) {
  Json list = Json::array();
  for (const T& one : all) list.push_back(JsonOf(one));
  return list;
}

Json JsonOf(const HeldOut& held_out) {
  Json json = {{"by", held_out.by_computation ? "computation" : "record"},
               {"share", held_out.share},
               {"k", held_out.k},
               {"tasks", JsonOf(held_out.tasks)}};
  if (held_out.turns > 0) json["turns"] = held_out.turns;
  return json;
}

// ---- from JSON ------------------------------------------------------------------------------

// Reads the value of a name, which must exist and have the kind that is asked for.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}

  const Json* Find(const char* name) {
    if (!json_.is_object()) return Wrong(name, "an object around it");
    const auto at = json_.find(name);
    return at == json_.end() ? Wrong(name, "that there is one") : &*at;
  }
  std::string Text(const char* name) {
    const Json* value = Find(name);
    if (value != nullptr && value->is_string()) return value->get<std::string>();
    Wrong(name, "a text");
    return {};
  }
  double Real(const char* name) {
    const Json* value = Find(name);
    if (value != nullptr && value->is_number()) return value->get<double>();
    Wrong(name, "a number");
    return 0;
  }
  int64_t Count(const char* name) {
    const Json* value = Find(name);
    if (value != nullptr && value->is_number_integer() &&
        (!value->is_number_unsigned() || value->get<uint64_t>() <= INT64_MAX) &&
        value->get<int64_t>() >= 0) {
      return value->get<int64_t>();
    }
    Wrong(name, "a whole number from 0 on");
    return 0;
  }
  const Json& List(const char* name) {
    static const Json& none = *new Json(Json::array());
    const Json* value = Find(name);
    if (value != nullptr && value->is_array()) return *value;
    Wrong(name, "a list");
    return none;
  }
  void Take(const Status& status) { status_ = status_.ok() ? status : status_; }

  const Json* Wrong(const char* name, const char* expected) {
    if (status_.ok()) status_ = DataLoss("\"{}\": expected {}", name, expected);
    return nullptr;
  }
  const Status& status() const { return status_; }

 private:
  const Json& json_;
  Status status_;
};

StatusOr<ModelTask> TaskOf(const Json& json) {
  Fields fields(json);
  ModelTask task;
  task.workload_id = fields.Text("workload_id");
  task.workload_key = fields.Text("workload_key");
  task.target = fields.Text("target");
  task.device = fields.Text("device");
  task.description = fields.Text("description");
  task.programs = fields.Count("programs");
  task.failed = fields.Count("failed");
  task.best_s = fields.Real("best_s");
  KILN_RETURN_IF_ERROR(fields.status());
  return task;
}

StatusOr<TaskQuality> ParseTaskQuality(const Json& json) {
  Fields fields(json);
  TaskQuality tested;
  if (const Json* task = fields.Find("task"); task != nullptr) {
    KILN_ASSIGN_OR_RETURN(tested.task, TaskOf(*task));
  }
  tested.quality = {.spearman = fields.Real("spearman"),
                    .pairwise = fields.Real("pairwise"),
                    .recall = fields.Real("recall"),
                    .peak = fields.Real("peak")};
  KILN_RETURN_IF_ERROR(fields.status());
  return tested;
}

StatusOr<HeldOut> HeldOutOf(const Json& json) {
  Fields fields(json);
  HeldOut held_out;
  const std::string by = fields.Text("by");
  if (by != "computation" && by != "record") fields.Wrong("by", "computation or record");
  held_out.by_computation = by == "computation";
  held_out.share = fields.Real("share");
  if (json.contains("turns"))
    held_out.turns = static_cast<int>(std::min<int64_t>(fields.Count("turns"), INT32_MAX));
  held_out.k = static_cast<int>(std::min<int64_t>(fields.Count("k"), INT32_MAX));
  for (const Json& one : fields.List("tasks")) {
    KILN_ASSIGN_OR_RETURN(held_out.tasks.emplace_back(), ParseTaskQuality(one));
  }
  KILN_RETURN_IF_ERROR(fields.status());
  return held_out;
}

StatusOr<ModelInfo> InfoOf(const Json& json) {
  Fields fields(json);
  ModelInfo info;
  info.kind = fields.Text("kind");
  info.calibration = fields.Text("calibration");
  info.feature_version =
      static_cast<int>(std::min<int64_t>(fields.Count("feature_version"), INT32_MAX));
  info.columns = fields.Text("columns");
  const Json* seed = fields.Find("seed");
  if (seed != nullptr && seed->is_number_unsigned()) {
    info.seed = seed->get<uint64_t>();
  } else {
    fields.Wrong("seed", "a whole number from 0 on");
  }
  info.records = fields.Count("records");
  info.trained_s = fields.Count("trained_s");
  for (const Json& source : fields.List("sources")) {
    if (!source.is_string()) return DataLoss("\"sources\": expected texts");
    info.sources.push_back(source.get<std::string>());
  }
  const Json* parameters = fields.Find("parameters");
  if (parameters != nullptr && !parameters->is_object())
    return DataLoss("\"parameters\": expected an object");
  if (parameters != nullptr) {
    for (const auto& [name, value] : parameters->items()) {
      if (!value.is_number()) return DataLoss("parameter \"{}\": expected a number", name);
      info.parameters[name] = value.get<double>();
    }
  }
  for (const Json& one : fields.List("tasks")) {
    KILN_ASSIGN_OR_RETURN(info.tasks.emplace_back(), TaskOf(one));
  }
  const Json* held_out = fields.Find("held_out");
  if (held_out != nullptr && !held_out->is_null()) {
    KILN_ASSIGN_OR_RETURN(info.held_out, HeldOutOf(*held_out));
  }
  KILN_RETURN_IF_ERROR(fields.status());
  return info;
}

// ---- the first line -------------------------------------------------------------------------

std::vector<std::string_view> WordsOf(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

std::optional<uint64_t> NumberOf(std::string_view word) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size() ? std::optional(number)
                                                                  : std::nullopt;
}

}  // namespace

RankQuality MeanOf(std::span<const TaskQuality> tasks) {
  std::vector<RankQuality> all;
  for (const TaskQuality& task : tasks) all.push_back(task.quality);
  return MeanOf(all);
}

int64_t ModelInfo::programs() const {
  int64_t sum = 0;
  for (const ModelTask& task : tasks) sum += task.programs;
  return sum;
}

int64_t ModelInfo::failed() const {
  int64_t sum = 0;
  for (const ModelTask& task : tasks) sum += task.failed;
  return sum;
}

std::string PrintModelInfo(const ModelInfo& info) {
  Json json = {{"kind", info.kind},
               {"calibration", info.calibration},
               {"feature_version", info.feature_version},
               {"columns", info.columns},
               {"parameters", Json::object()},
               {"seed", info.seed},
               {"records", info.records},
               {"trained_s", info.trained_s},
               {"sources", info.sources},
               {"tasks", JsonOf(info.tasks)},
               {"held_out", nullptr}};
  for (const auto& [name, value] : info.parameters) json["parameters"][name] = value;
  if (info.held_out.has_value()) json["held_out"] = JsonOf(*info.held_out);
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

StatusOr<ModelInfo> ParseModelInfo(std::string_view text) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return DataLoss("what it says of the model is no JSON");
  auto info = InfoOf(json);
  if (!info.ok()) return Annotate(info.status(), "what it says of the model");
  return info;
}

std::string PrintModelFile(const ModelFile& file) {
  const std::string header = PrintModelInfo(file.info) + "\n";
  return fmt::format("{} {} {} {} {}\n{}{}", kMagic, kVersion, header.size(), file.model.size(),
                     DigestOf(header, file.model), header, file.model);
}

StatusOr<ModelFile> ParseModelFile(std::string_view bytes) {
  const size_t line = bytes.substr(0, kMaxFirstLineBytes).find('\n');
  const std::vector<std::string_view> words =
      WordsOf(bytes.substr(0, line == std::string_view::npos ? 0 : line));
  if (words.size() < 2 || words[0] != kMagic) {
    return DataLoss("these {} bytes are no cost model: expected what `kiln model train` writes",
                    bytes.size());
  }
  if (NumberOf(words[1]) != uint64_t{kVersion}) {
    return FailedPrecondition(
        "a cost model of format {}, expected {}: it was made by another version of Kiln; train it "
        "anew",
        words[1], kVersion);
  }
  const auto header_bytes = words.size() == 5 ? NumberOf(words[2]) : std::nullopt;
  const auto model_bytes = words.size() == 5 ? NumberOf(words[3]) : std::nullopt;
  if (!header_bytes.has_value() || !model_bytes.has_value())
    return DataLoss("the first line of the cost model is damaged");
  bytes.remove_prefix(line + 1);
  if (*header_bytes > bytes.size() || *model_bytes != bytes.size() - *header_bytes) {
    return DataLoss("the cost model is damaged: {} bytes follow its first line, expected {} and {}",
                    bytes.size(), *header_bytes, *model_bytes);
  }
  const std::string_view header = bytes.substr(0, *header_bytes);
  const std::string_view model = bytes.substr(*header_bytes);
  if (DigestOf(header, model) != words[4])
    return DataLoss("the cost model is damaged: its checksum differs");
  ModelFile file;
  KILN_ASSIGN_OR_RETURN(file.info, ParseModelInfo(header));
  file.model = model;
  return file;
}

std::string ColumnsDigest(std::span<const std::string_view> columns) {
  uint64_t digest = 0;
  for (const std::string_view column : columns) digest = Xxh3(column, digest);
  return fmt::format("{:016x}", digest);
}

Status CheckColumns(const ModelInfo& info, int feature_version,
                    std::span<const std::string_view> columns) {
  if (info.feature_version == feature_version && info.columns == ColumnsDigest(columns))
    return OkStatus();
  if (info.feature_version != feature_version) {
    return FailedPrecondition(
        "the cost model was trained on features of version {}, those of this Kiln are version {}: "
        "train it anew",
        info.feature_version, feature_version);
  }
  return FailedPrecondition(
      "the cost model was trained on other feature columns than the {} of this Kiln: train it anew",
      columns.size());
}

}  // namespace kiln::costmodel
