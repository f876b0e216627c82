#include "store/autotvm_log.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "base/json/json_cursor.h"
#include "store/record.h"

namespace kiln::store {
namespace {

// Keys in the order in which lines are written.
constexpr std::array<std::string_view, 5> kKeys = {"input", "config", "result", "version",
                                                   "tvm_version"};
constexpr size_t kRequiredKeys = 4;
constexpr double kOldVersion = 0.1;

// Prints a float like Python: with the fewest digits that read back the same, and never as an
// integer.
std::string PythonFloat(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

StatusOr<std::string> ParseValueOf(JsonCursor& json, char open, std::string_view what) {
  if (json.Peek() != open) return json.Error(fmt::format("'{}' ({})", open, what));
  return json.Value(what);
}

Status ParseInput(JsonCursor& json, AutotvmRecord& record) {
  KILN_RETURN_IF_ERROR(json.Expect('[', "the input array"));
  KILN_ASSIGN_OR_RETURN(record.target, json.String("the target in quotes"));
  KILN_RETURN_IF_ERROR(json.Expect(',', "then the task's name"));
  KILN_ASSIGN_OR_RETURN(record.task, json.String("the task's name in quotes"));
  KILN_RETURN_IF_ERROR(json.Expect(',', "then the arguments"));
  KILN_ASSIGN_OR_RETURN(record.args, ParseValueOf(json, '[', "the arguments"));
  KILN_RETURN_IF_ERROR(json.Expect(',', "then the keyword arguments"));
  KILN_ASSIGN_OR_RETURN(record.kwargs, ParseValueOf(json, '{', "the keyword arguments"));
  return json.Expect(']', "an input has 4 items");
}

Status ParseConfigField(JsonCursor& json, std::string_view key, AutotvmRecord& record) {
  if (key == "index") {
    KILN_ASSIGN_OR_RETURN(record.config_index, json.Int("the index of the configuration"));
    return OkStatus();
  }
  if (key == "code_hash") {
    if (json.TakeWord("null")) return OkStatus();
    KILN_ASSIGN_OR_RETURN(record.code_hash, json.String("the hash of the code, or null"));
    return OkStatus();
  }
  KILN_ASSIGN_OR_RETURN(record.entities, ParseValueOf(json, '[', "the entities"));
  return ParseAutotvmEntities(record.entities).status();
}

// Calls `field` for each key of an object. The first `required` of `keys` must be present, the
// others may be; no key stands twice, and other keys are refused.
template <typename Field>
Status ParseObject(JsonCursor& json, std::string_view what, std::span<const std::string_view> keys,
                   size_t required, const Field& field) {
  KILN_RETURN_IF_ERROR(json.Expect('{', what));
  std::vector<bool> seen(keys.size());
  bool more = !json.Take('}');
  while (more) {
    KILN_ASSIGN_OR_RETURN(const std::string key, json.String("a key in quotes"));
    const auto at = std::find(keys.begin(), keys.end(), key);
    if (at == keys.end()) {
      return InvalidArgument("key \"{}\" is unknown, expected {}", key, fmt::join(keys, ", "));
    }
    const auto index = static_cast<size_t>(at - keys.begin());
    if (seen[index]) return InvalidArgument("key \"{}\" stands twice", key);
    seen[index] = true;
    KILN_RETURN_IF_ERROR(json.Expect(':', "after a key"));
    KILN_RETURN_IF_ERROR(Annotate(field(key), fmt::format("\"{}\"", key)));
    KILN_ASSIGN_OR_RETURN(more, json.Next('}'));
  }
  for (size_t i = 0; i < required; ++i) {
    if (!seen[i]) return InvalidArgument("key \"{}\" is missing", keys[i]);
  }
  return OkStatus();
}

Status ParseConfig(JsonCursor& json, AutotvmRecord& record) {
  constexpr std::array<std::string_view, 3> kConfigKeys = {"index", "code_hash", "entity"};
  return ParseObject(json, "the configuration", kConfigKeys, kConfigKeys.size(),
                     [&](std::string_view key) { return ParseConfigField(json, key, record); });
}

Status ParseResult(JsonCursor& json, AutotvmRecord& record) {
  KILN_RETURN_IF_ERROR(json.Expect('[', "the result array"));
  KILN_RETURN_IF_ERROR(json.Array("the costs", [&]() -> Status {
    KILN_ASSIGN_OR_RETURN(record.costs_s.emplace_back(), json.Double("a cost in seconds"));
    return OkStatus();
  }));
  KILN_RETURN_IF_ERROR(json.Expect(',', "then the error number"));
  KILN_ASSIGN_OR_RETURN(const int64_t error, json.Int("the error number"));
  if (error < 0 || error >= kNumErrorKinds) {
    return InvalidArgument("error number {}, expected 0 to {}", error, kNumErrorKinds - 1);
  }
  record.error = static_cast<int>(error);
  KILN_RETURN_IF_ERROR(json.Expect(',', "then the time that build and run took"));
  KILN_ASSIGN_OR_RETURN(record.all_cost_s, json.Double("the time that build and run took"));
  KILN_RETURN_IF_ERROR(json.Expect(',', "then the timestamp"));
  KILN_ASSIGN_OR_RETURN(record.timestamp_s, json.Double("the timestamp"));
  return json.Expect(']', "a result has 4 items");
}

Status ParseField(JsonCursor& json, std::string_view key, AutotvmRecord& record) {
  if (key == "input") return ParseInput(json, record);
  if (key == "config") return ParseConfig(json, record);
  if (key == "result") return ParseResult(json, record);
  if (key == "version") {
    KILN_ASSIGN_OR_RETURN(record.version, json.Double("the version"));
    return OkStatus();
  }
  KILN_ASSIGN_OR_RETURN(record.tvm_version, json.String("the version of TVM in quotes"));
  return OkStatus();
}

StatusOr<AutotvmEntity::Kind> ParseEntityKind(JsonCursor& json) {
  // Names in the order of the enumerators.
  constexpr std::array<std::string_view, 4> kKinds = {R"("sp")", R"("re")", R"("an")", R"("ot")"};
  KILN_ASSIGN_OR_RETURN(const std::string kind, json.Value("the kind of the knob in quotes"));
  const auto at = std::find(kKinds.begin(), kKinds.end(), kind);
  if (at != kKinds.end()) return static_cast<AutotvmEntity::Kind>(at - kKinds.begin());
  return InvalidArgument("a knob of kind {}, expected {}", kind, fmt::join(kKinds, ", "));
}

Status ParseEntityValue(JsonCursor& json, AutotvmEntity& entity) {
  switch (entity.kind) {
    case AutotvmEntity::Kind::kSplit:
    case AutotvmEntity::Kind::kReorder:
      return json.Array("the numbers of a knob", [&]() -> Status {
        KILN_ASSIGN_OR_RETURN(entity.numbers.emplace_back(), json.Int("a number of a knob"));
        return OkStatus();
      });
    case AutotvmEntity::Kind::kAnnotate:
      return json.Array("the annotations of a knob", [&]() -> Status {
        // Positions of caches are numbers, other annotations are texts.
        const bool is_text = json.Peek() == '"';
        KILN_ASSIGN_OR_RETURN(entity.annotations.emplace_back(),
                              is_text ? json.String("an annotation") : json.Value("an annotation"));
        return OkStatus();
      });
    case AutotvmEntity::Kind::kOther: {
      KILN_ASSIGN_OR_RETURN(entity.value, json.Value("the value of a knob"));
      return OkStatus();
    }
  }
  return Internal("a knob of kind {}", static_cast<int>(entity.kind));
}

// Calls `visit` with each key of an object and its value, up to the first place that is no valid
// JSON.
template <typename Visit>
void VisitKeys(std::string_view line, const Visit& visit) {
  JsonCursor json(line);
  if (!json.Take('{')) return;
  while (true) {
    const StatusOr<std::string> key = json.String("a key");
    if (!key.ok() || !json.Take(':')) return;
    const StatusOr<std::string> value = json.Value("a value");
    visit(*key, value.ok() ? *value : std::string());
    if (!value.ok() || !json.Take(',')) return;
  }
}

// Returns whether the line has autotvm's pickle format: the target, then task, configuration and
// result in base64, then versions, with tabs between them.
bool IsPickle(std::string_view line) {
  constexpr auto is_base64 = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/' || c == '=';
  };
  for (int item = 0; item < 4; ++item) {
    const size_t tab = line.find('\t');
    if (tab == 0 || tab == std::string_view::npos) return false;
    if (item > 0 && !std::ranges::all_of(line.substr(0, tab), is_base64)) return false;
    line.remove_prefix(tab + 1);
  }
  return true;
}

LogLineKind KindByAllKeys(std::string_view line) {
  LogLineKind kind = LogLineKind::kMeasureRecord;
  VisitKeys(line, [&](const std::string& key, const std::string& value) {
    if (key == "v" && value == fmt::format("{}", kOldVersion)) kind = LogLineKind::kAutotvmOld;
  });
  return kind;
}

}  // namespace

LogLineKind KindOfLogLine(std::string_view line) {
  JsonCursor json(line);
  if (!json.Take('{')) {
    return IsPickle(line) ? LogLineKind::kAutotvmPickle : LogLineKind::kMeasureRecord;
  }
  const StatusOr<std::string> key = json.String("a key");
  if (!key.ok() || !json.Take(':')) return LogLineKind::kMeasureRecord;
  if (std::find(kKeys.begin(), kKeys.end(), *key) != kKeys.end()) return LogLineKind::kAutotvm;
  // A measure record begins with the array of its task. Only lines that do not are read as a whole.
  if (*key == "i" && json.Take('[') && json.Take('[')) return LogLineKind::kMeasureRecord;
  return KindByAllKeys(line);
}

StatusOr<AutotvmRecord> ParseAutotvmLine(std::string_view line) {
  JsonCursor json(line);
  AutotvmRecord record;
  KILN_RETURN_IF_ERROR(
      ParseObject(json, "an autotvm record", kKeys, kRequiredKeys,
                  [&](std::string_view key) { return ParseField(json, key, record); }));
  KILN_RETURN_IF_ERROR(json.ExpectEnd());
  return record;
}

std::string PrintAutotvmLine(const AutotvmRecord& record) {
  std::vector<std::string> costs;
  for (const double cost_s : record.costs_s) costs.push_back(PythonFloat(cost_s));
  std::string line = fmt::format(
      R"({{"input": [{}, {}, {}, {}], "config": {{"index": {}, "code_hash": {}, "entity": {}}}, )"
      R"("result": [[{}], {}, {}, {}], "version": {})",
      JsonQuote(record.target), JsonQuote(record.task), record.args, record.kwargs,
      record.config_index, record.code_hash.has_value() ? JsonQuote(*record.code_hash) : "null",
      record.entities, fmt::join(costs, ", "), record.error, PythonFloat(record.all_cost_s),
      PythonFloat(record.timestamp_s), PythonFloat(record.version));
  if (record.tvm_version.has_value()) {
    line += fmt::format(R"(, "tvm_version": {})", JsonQuote(*record.tvm_version));
  }
  return line + "}";
}

StatusOr<std::vector<AutotvmEntity>> ParseAutotvmEntities(std::string_view text) {
  JsonCursor json(text);
  std::vector<AutotvmEntity> entities;
  KILN_RETURN_IF_ERROR(json.Array("the entities", [&]() -> Status {
    AutotvmEntity& entity = entities.emplace_back();
    KILN_RETURN_IF_ERROR(json.Expect('[', "a knob"));
    KILN_ASSIGN_OR_RETURN(entity.knob, json.String("the knob's name in quotes"));
    KILN_RETURN_IF_ERROR(json.Expect(',', "then its kind"));
    KILN_ASSIGN_OR_RETURN(entity.kind, ParseEntityKind(json));
    KILN_RETURN_IF_ERROR(json.Expect(',', "then its value"));
    KILN_RETURN_IF_ERROR(ParseEntityValue(json, entity));
    return json.Expect(']', "a knob has 3 items");
  }));
  KILN_RETURN_IF_ERROR(json.ExpectEnd());
  return entities;
}

}  // namespace kiln::store
