#include "store/measure_log.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/arrays/packed_key.h"
#include "base/json/json_cursor.h"

namespace kiln::store {
namespace {

// TVM's lines have 8 parameters, and so has each row of a database (sqlite_store.cc). A further
// parameter of Kiln must stay out of the lines and be 0 in older rows.
static_assert(kNumHardwareParams == 8);

Status ParseHardware(JsonCursor& json, MeasureLogLine& line) {
  HardwareRow& hardware = line.hardware.emplace();
  constexpr std::string_view kWhat = "the 8 hardware parameters";
  KILN_RETURN_IF_ERROR(json.Expect('[', kWhat));
  for (size_t i = 0; i < hardware.size(); ++i) {
    if (i > 0) KILN_RETURN_IF_ERROR(json.Expect(',', kWhat));
    KILN_ASSIGN_OR_RETURN(hardware[i], json.Int("a hardware parameter"));
  }
  return json.Expect(']', "after 8 hardware parameters");
}

Status ParseInputNames(JsonCursor& json, MeasureLogLine& line) {
  std::vector<std::string>& names = line.task_input_names.emplace();
  return json.Array("the task input names", [&]() -> Status {
    KILN_ASSIGN_OR_RETURN(names.emplace_back(), json.String("a task input name in quotes"));
    return OkStatus();
  });
}

// Parses the fields after the target. Fields that are missing at the end stay unset.
Status ParseOptionalTaskFields(JsonCursor& json, MeasureLogLine& line) {
  for (int field = 0; field < 4; ++field) {
    KILN_ASSIGN_OR_RETURN(const bool more, json.Next(']'));
    if (!more) return OkStatus();
    switch (field) {
      case 0:
        KILN_RETURN_IF_ERROR(ParseHardware(json, line));
        break;
      case 1: {
        KILN_ASSIGN_OR_RETURN(line.target_host, json.String("the target host in quotes"));
        break;
      }
      case 2: {
        KILN_ASSIGN_OR_RETURN(line.layout_rewrite_option, json.Int("the layout rewrite option"));
        break;
      }
      case 3:
        KILN_RETURN_IF_ERROR(ParseInputNames(json, line));
        break;
    }
  }
  return json.Expect(']', "a task has at most 6 items");
}

Status ParseTask(JsonCursor& json, MeasureLogLine& line) {
  KILN_RETURN_IF_ERROR(json.Expect('[', "the task array"));
  KILN_ASSIGN_OR_RETURN(line.workload_key, json.String("the workload key in quotes"));
  KILN_RETURN_IF_ERROR(json.Expect(',', "then the target"));
  KILN_ASSIGN_OR_RETURN(line.target, json.String("the target in quotes"));
  return ParseOptionalTaskFields(json, line);
}

// Checks only that a step has the form of a step. The meaning of its fields is not known here.
Status AppendStep(JsonCursor& json, std::string& steps) {
  KILN_RETURN_IF_ERROR(json.Expect('[', "a step"));
  if (json.Peek() != '"') return json.Error("the tag of the step in quotes");
  steps += '[';
  KILN_RETURN_IF_ERROR(json.AppendValue("the tag of the step in quotes", steps));
  KILN_ASSIGN_OR_RETURN(bool field, json.Next(']'));
  while (field) {
    steps += ", ";
    KILN_RETURN_IF_ERROR(json.AppendValue("a field", steps));
    KILN_ASSIGN_OR_RETURN(field, json.Next(']'));
  }
  steps += ']';
  return OkStatus();
}

StatusOr<std::string> ParseSteps(JsonCursor& json) {
  KILN_RETURN_IF_ERROR(json.Expect('[', "the steps"));
  std::string steps = "[";
  bool more = !json.Take(']');
  for (int step = 0; more; ++step) {
    if (step > 0) steps += ", ";
    if (const Status appended = AppendStep(json, steps); !appended.ok()) {
      return Annotate(appended, fmt::format("step {} of the steps", step));
    }
    KILN_ASSIGN_OR_RETURN(more, json.Next(']'));
  }
  return steps + "]";
}

Status ParseState(JsonCursor& json, MeasureLogLine& line) {
  KILN_RETURN_IF_ERROR(json.Expect('[', "the state array"));
  KILN_RETURN_IF_ERROR(json.Expect('[', "the stages, always []"));
  KILN_RETURN_IF_ERROR(json.Expect(']', "the stages, always []"));
  KILN_RETURN_IF_ERROR(json.Expect(',', "then the steps"));
  KILN_ASSIGN_OR_RETURN(line.steps_json, ParseSteps(json));
  return json.Expect(']', "a state has 2 items");
}

Status ParseInput(JsonCursor& json, MeasureLogLine& line) {
  KILN_RETURN_IF_ERROR(json.Expect('[', "the input array"));
  KILN_RETURN_IF_ERROR(ParseTask(json, line));
  KILN_RETURN_IF_ERROR(json.Expect(',', "then the state"));
  KILN_RETURN_IF_ERROR(ParseState(json, line));
  return json.Expect(']', "an input has 2 items");
}

Status ParseCosts(JsonCursor& json, MeasureLogLine& line) {
  return json.Array("the costs", [&]() -> Status {
    KILN_ASSIGN_OR_RETURN(line.costs_s.emplace_back(), json.Double("a cost in seconds"));
    return OkStatus();
  });
}

Status ParseResult(JsonCursor& json, MeasureLogLine& line) {
  KILN_RETURN_IF_ERROR(json.Expect('[', "the result array"));
  KILN_RETURN_IF_ERROR(ParseCosts(json, line));
  KILN_RETURN_IF_ERROR(json.Expect(',', "then the error number"));
  KILN_ASSIGN_OR_RETURN(const int64_t error_no, json.Int("the error number"));
  if (error_no < 0 || error_no >= kNumErrorKinds) {
    return InvalidArgument("error number {}, expected 0 to {}", error_no, kNumErrorKinds - 1);
  }
  line.error_no = static_cast<int>(error_no);
  KILN_RETURN_IF_ERROR(json.Expect(',', "then the time that build and run took"));
  KILN_ASSIGN_OR_RETURN(line.all_cost_s, json.Double("the time that build and run took"));
  KILN_RETURN_IF_ERROR(json.Expect(',', "then the timestamp"));
  KILN_ASSIGN_OR_RETURN(line.timestamp_s, json.Int("the timestamp"));
  return json.Expect(']', "a result has 4 items");
}

Status ParseField(JsonCursor& json, char key, MeasureLogLine& line) {
  if (key == 'i') return ParseInput(json, line);
  if (key == 'r') return ParseResult(json, line);
  KILN_ASSIGN_OR_RETURN(line.version, json.String("the version in quotes"));
  return OkStatus();
}

Status UnknownKey(std::string_view key) {
  if (key == "input" || key == "config") {
    return InvalidArgument(
        "key \"{}\" is of an autotvm log; expected a measure record with the keys \"i\", \"r\" and "
        "\"v\"",
        key);
  }
  return InvalidArgument("key \"{}\" is unknown, expected \"i\", \"r\" or \"v\"", key);
}

std::string PrintDoubles(const std::vector<double>& values) {
  return fmt::format("[{:g}]", fmt::join(values, ", "));
}

std::string PrintTask(const MeasureLogLine& line) {
  std::string task = fmt::format("[{}, {}", JsonQuote(line.workload_key), JsonQuote(line.target));
  // A field can only be printed after the fields before it.
  if (line.hardware) {
    task += fmt::format(", [{}]", fmt::join(*line.hardware, ", "));
    if (line.target_host) {
      task += ", " + JsonQuote(*line.target_host);
      if (line.layout_rewrite_option) {
        task += fmt::format(", {}", *line.layout_rewrite_option);
        if (line.task_input_names) {
          std::vector<std::string> quoted;
          for (const std::string& name : *line.task_input_names) quoted.push_back(JsonQuote(name));
          task += fmt::format(", [{}]", fmt::join(quoted, ", "));
        }
      }
    }
  }
  return task + "]";
}

}  // namespace

bool IsMeasureLogComment(std::string_view line) {
  return line.empty() || line.front() == '#' || line.front() == ' ' ||
         line.find_first_not_of("\t\r") == std::string_view::npos;
}

StatusOr<MeasureLogLine> ParseMeasureLogLine(std::string_view text) {
  JsonCursor json(text);
  MeasureLogLine line;
  std::string seen;
  KILN_RETURN_IF_ERROR(json.Expect('{', "a measure record"));
  bool more = !json.Take('}');
  while (more) {
    KILN_ASSIGN_OR_RETURN(const std::string key, json.String("a key in quotes"));
    if (key != "i" && key != "r" && key != "v") return UnknownKey(key);
    if (seen.find(key) != std::string::npos) return InvalidArgument("key \"{}\" stands twice", key);
    seen += key;
    KILN_RETURN_IF_ERROR(json.Expect(':', "after a key"));
    KILN_RETURN_IF_ERROR(Annotate(ParseField(json, key[0], line), fmt::format("\"{}\"", key)));
    KILN_ASSIGN_OR_RETURN(more, json.Next('}'));
  }
  KILN_RETURN_IF_ERROR(json.ExpectEnd());
  for (char key : {'i', 'r'}) {
    if (seen.find(key) == std::string::npos) {
      return InvalidArgument("key \"{}\" is missing, expected \"i\", \"r\" and \"v\"", key);
    }
  }
  return line;
}

std::string PrintMeasureLogLine(const MeasureLogLine& line) {
  return fmt::format("{{\"i\": [{}, [[], {}]], \"r\": [{}, {}, {:g}, {}], \"v\": {}}}",
                     PrintTask(line), line.steps_json, PrintDoubles(line.costs_s), line.error_no,
                     line.all_cost_s, line.timestamp_s, JsonQuote(line.version));
}

MeasureLog ParseMeasureLog(std::string_view text) {
  MeasureLog log;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (IsMeasureLogComment(line)) continue;
    StatusOr<MeasureLogLine> parsed = ParseMeasureLogLine(line);
    if (parsed.ok()) {
      log.lines.push_back(*std::move(parsed));
    } else {
      log.errors.push_back(fmt::format("line {}: {}", number, Message(parsed.status())));
    }
  }
  return log;
}

namespace {

// A finalist has the one cost by which it is compared, so that who reads the log orders the records
// as the store does.
std::vector<double> CostsOf(const Record& record) {
  if (record.error != kNoError) return {kErrorCost};
  return record.remeasured_costs_s.empty() ? record.costs_s : std::vector<double>{Cost(record)};
}

}  // namespace

StatusOr<MeasureLogLine> LineOfRecord(const Record& record) {
  MeasureLogLine line;
  JsonCursor json(record.steps);
  StatusOr<std::string> steps = ParseSteps(json);
  const Status status = steps.ok() ? json.ExpectEnd() : steps.status();
  KILN_RETURN_IF_ERROR(Annotate(status, fmt::format("steps of record {}", record.id)));
  line.steps_json = *std::move(steps);
  // TVM's layout rewrite option tells that inputs are packed, Kiln's key does. All other options
  // and keys are those of the log's writer.
  const int64_t option = record.layout_rewrite_option;
  const std::string plain = PlainKey(record.workload_key);
  const bool is_packed = record.workload_key != plain && record.workload_key == PackedKey(plain) &&
                         (option == 0 || option == kPreTransformed);
  line.workload_key = is_packed ? plain : record.workload_key;
  line.target = record.target;
  line.hardware = record.hardware;
  line.target_host = record.target_host;
  line.layout_rewrite_option = is_packed ? kPreTransformed : option;
  line.task_input_names = record.input_names;
  line.costs_s = CostsOf(record);
  line.error_no = record.error;
  const double all_cost_s = record.build_s + record.run_s;
  // JSON has no infinite numbers and no NaN.
  line.all_cost_s = std::isfinite(all_cost_s) ? all_cost_s : 0;
  line.timestamp_s = record.timestamp_s;
  line.version = "v0.6";
  return line;
}

StatusOr<Record> RecordOfLine(MeasureLogLine line, std::string_view job_id, uint32_t trial) {
  Record record;
  record.job_id = job_id;
  record.trial = trial;
  record.workload_key = line.layout_rewrite_option == kPreTransformed
                            ? PackedKey(line.workload_key)
                            : std::move(line.workload_key);
  record.target = std::move(line.target);
  record.hardware = line.hardware.value_or(HardwareRow{});
  record.target_host = std::move(line.target_host).value_or("");
  record.layout_rewrite_option = line.layout_rewrite_option.value_or(0);
  record.input_names = std::move(line.task_input_names).value_or(std::vector<std::string>());
  record.steps = std::move(line.steps_json);
  record.error = line.error_no;
  if (record.error == kNoError) record.costs_s = std::move(line.costs_s);
  record.run_s = line.all_cost_s;
  record.timestamp_s = line.timestamp_s;
  KILN_RETURN_IF_ERROR(ValidateRecord(record));
  return record;
}

}  // namespace kiln::store
