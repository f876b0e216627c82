#include "store/shipped_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/hash/digest.h"

namespace kiln::store {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kMagic = "kiln-records ";
constexpr int kFormat = 1;

// Returns the text with replacement characters for bytes that are no UTF-8.
std::string Print(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json JsonOf(const ShippedRecord& shipped) {
  const Record& record = shipped.record;
  Json json = {{"what", shipped.description},
               {"id", record.workload_id},
               {"key", record.workload_key},
               {"dag", record.dag},
               {"target", record.target},
               {"hardware", record.hardware},
               {"steps", record.steps},
               {"cost_s", Cost(record)},
               {"readings", record.remeasurements},
               {"measured_as", record.measured_as},
               {"flop", record.flop_count},
               {"device", record.device},
               {"time", record.timestamp_s},
               {"generator", shipped.generator}};
  if (record.confidence_s.has_value()) json["confidence_s"] = *record.confidence_s;
  if (record.layout_rewrite_option != 0) json["layout"] = record.layout_rewrite_option;
  if (!shipped.nvrtc.empty()) json["nvrtc"] = shipped.nvrtc;
  return json;
}

// Reads the fields of an object. A field that is absent leaves its variable as it is.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}

  void Text(const char* name, std::string& value) {
    if (const Json* const field = Find(name)) {
      field->is_string() ? void(value = field->get<std::string>()) : Refuse(name, "a text");
    }
  }
  void Number(const char* name, double& value) {
    if (const Json* const field = Find(name)) {
      field->is_number() ? void(value = field->get<double>()) : Refuse(name, "a number");
    }
  }
  template <typename Integer>
  void Whole(const char* name, Integer& value) {
    if (const Json* const field = Find(name)) {
      field->is_number_integer() ? void(value = field->get<Integer>()) : Refuse(name, "an integer");
    }
  }
  void Hardware(const char* name, HardwareRow& row) {
    const Json* const field = Find(name);
    if (field == nullptr) return;
    bool fits = field->is_array() && field->size() == row.size();
    for (size_t i = 0; fits && i < row.size(); ++i) {
      fits = (*field)[i].is_number_integer();
      if (fits) row[i] = (*field)[i].get<int64_t>();
    }
    if (!fits) Refuse(name, fmt::format("{} integers", row.size()));
  }
  const Status& status() const { return status_; }

 private:
  const Json* Find(const char* name) const {
    const auto found = json_.find(name);
    return found == json_.end() ? nullptr : &*found;
  }
  void Refuse(const char* name, std::string_view expected) {
    if (status_.ok()) status_ = InvalidArgument("\"{}\": expected {}", name, expected);
  }

  const Json& json_;
  Status status_ = OkStatus();
};

StatusOr<ShippedRecord> RecordOf(std::string_view line, uint32_t place) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return InvalidArgument("expected a JSON object");
  ShippedRecord shipped;
  Record& record = shipped.record;
  double cost_s = 0, confidence_s = -1;
  Fields fields(json);
  fields.Text("what", shipped.description);
  fields.Text("id", record.workload_id);
  fields.Text("key", record.workload_key);
  fields.Text("dag", record.dag);
  fields.Text("target", record.target);
  fields.Hardware("hardware", record.hardware);
  fields.Text("steps", record.steps);
  fields.Number("cost_s", cost_s);
  fields.Number("confidence_s", confidence_s);
  fields.Whole("readings", record.remeasurements);
  fields.Text("measured_as", record.measured_as);
  fields.Number("flop", record.flop_count);
  fields.Text("device", record.device);
  fields.Whole("time", record.timestamp_s);
  fields.Whole("layout", record.layout_rewrite_option);
  fields.Whole("generator", shipped.generator);
  fields.Text("nvrtc", shipped.nvrtc);
  KILN_RETURN_IF_ERROR(fields.status());
  record.job_id = kShippedJob;
  record.trial = record.task_index = place;
  record.costs_s = {cost_s};
  if (record.remeasurements > 0) record.remeasured_costs_s = {cost_s};
  if (confidence_s >= 0) record.confidence_s = confidence_s;
  if (record.dag.empty()) return InvalidArgument("\"dag\": expected a computation");
  KILN_RETURN_IF_ERROR(ValidateRecord(record));
  return shipped;
}

Status Damaged(std::string_view why) {
  return InvalidArgument(
      "the file of records is damaged: {}. Get it again, or make it with kiln records ship", why);
}

// Returns the bytes after the first line, once the line has been checked.
StatusOr<std::string_view> TextOf(std::string_view bytes) {
  if (!IsShippedFile(bytes)) {
    return InvalidArgument("expected a file of kiln records ship, which begins with '{}{} '",
                           kMagic, kFormat);
  }
  constexpr size_t kMostDigits = 100;
  const size_t end = bytes.substr(0, kMagic.size() + kMostDigits).find('\n');
  if (end == std::string_view::npos) return Damaged("its first line has no end");
  const std::string_view line = bytes.substr(kMagic.size(), end - kMagic.size());
  const size_t space = line.find(' ');
  int format = 0;
  const std::string_view number = line.substr(0, space);
  const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), format);
  if (space == std::string_view::npos || error != std::errc() ||
      rest != number.data() + number.size()) {
    return Damaged("its first line has no version");
  }
  if (format != kFormat) {
    return FailedPrecondition(
        "the file of records has version {} of the format, and this Kiln reads version {}: use the "
        "Kiln that made the file, or a newer one",
        format, kFormat);
  }
  const std::string_view text = bytes.substr(end + 1);
  if (Sha256Hex(text) != line.substr(space + 1)) return Damaged("its digest is another one");
  return text;
}

}  // namespace

bool IsShippedFile(std::string_view beginning) { return beginning.starts_with(kMagic); }

std::string WriteShippedFile(std::span<const ShippedRecord> records) {
  std::string text;
  for (const ShippedRecord& record : records) text += Print(JsonOf(record)) + "\n";
  return fmt::format("{}{} {}\n", kMagic, kFormat, Sha256Hex(text)) + text;
}

StatusOr<std::vector<ShippedRecord>> ReadShippedFile(std::string_view bytes) {
  std::vector<ShippedRecord> records;
  if (bytes.empty()) return records;
  KILN_ASSIGN_OR_RETURN(const std::string_view text, TextOf(bytes));
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    auto record = RecordOf(line, static_cast<uint32_t>(records.size()));
    KILN_RETURN_IF_ERROR(
        Annotate(record.status(), fmt::format("record {} of the file", records.size())));
    records.push_back(*std::move(record));
  }
  return records;
}

}  // namespace kiln::store
