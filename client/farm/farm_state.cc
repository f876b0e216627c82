#include "client/farm/farm_state.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file/file.h"

namespace kiln::client {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kOwnerOnly = 0600;
constexpr size_t kMaxBytes = 1 << 20;
constexpr int kFormat = 3;

constexpr std::array<std::pair<FarmProcess::Phase, std::string_view>, 4> kPhases = {{
    {FarmProcess::Phase::kStarting, "starting"},
    {FarmProcess::Phase::kServing, "serving"},
    {FarmProcess::Phase::kWaiting, "waiting to be started again"},
    {FarmProcess::Phase::kGivenUp, "given up"},
}};

Json JsonOf(const ProcessIdentity& process) {
  return {{"pid", process.pid}, {"start_ticks", process.start_ticks}, {"boot_id", process.boot_id}};
}

Json JsonOf(const FarmOptions& options) {
  return {{"folder", options.folder},      {"db", options.db},           {"host", options.host},
          {"workers", options.workers},    {"devices", options.devices}, {"gpus", options.gpus},
          {"authority", options.authority}};
}

Json JsonOf(const FarmProcess& process) {
  return {{"name", process.name},
          {"device", process.device},
          {"cores", process.cores},
          {"phase", PhaseName(process.phase)},
          {"process", JsonOf(process.process)},
          {"addresses", process.addresses},
          {"pages", process.pages},
          {"log", process.log},
          {"restarts", process.restarts},
          {"last_end", process.last_end}};
}

// Reads the members of a JSON object. The first member that is absent or of another type is the
// error; what was read until then is of no use.
class Members {
 public:
  explicit Members(const Json& object) : object_(object) {}

  void Get(const char* key, std::string& value) {
    const Json* found = Find(key, &Json::is_string, "a string");
    if (found != nullptr) value = found->get<std::string>();
  }
  void Get(const char* key, bool& value) {
    const Json* found = Find(key, &Json::is_boolean, "true or false");
    if (found != nullptr) value = found->get<bool>();
  }
  void Get(const char* key, double& value) {
    const Json* found = Find(key, &Json::is_number, "a number");
    if (found != nullptr) value = found->get<double>();
  }
  void Get(const char* key, int64_t& value) {
    const Json* found = Find(key, &Json::is_number_integer, "a whole number");
    if (found != nullptr) value = found->get<int64_t>();
  }
  void Get(const char* key, int& value) {
    int64_t number = 0;
    Get(key, number);
    if (number < 0 || number > std::numeric_limits<int>::max()) {
      Refuse(key, "a whole number from 0 to 2147483647");
    }
    value = static_cast<int>(number);
  }
  void Get(const char* key, std::vector<std::string>& values) {
    const Json* found = Find(key, &Json::is_array, "a list");
    if (found == nullptr) return;
    for (const Json& item : *found) {
      if (!item.is_string()) return Refuse(key, "a list of strings");
      values.push_back(item.get<std::string>());
    }
  }
  // Returns the object or list; an empty one after an error.
  const Json& Get(const char* key, bool (Json::*is)() const noexcept, const char* expected) {
    static const Json kNothing;
    const Json* found = Find(key, is, expected);
    return found == nullptr ? kNothing : *found;
  }

  void Refuse(const char* key, const char* expected) {
    if (status_.ok()) status_ = DataLoss("'{}' is not {}", key, expected);
  }
  void Include(const Status& status) {
    if (status_.ok()) status_ = status;
  }
  const Status& status() const { return status_; }

 private:
  const Json* Find(const char* key, bool (Json::*is)() const noexcept, const char* expected) {
    const auto at = object_.find(key);
    if (at != object_.end() && ((*at).*is)()) return &*at;
    Refuse(key, expected);
    return nullptr;
  }

  const Json& object_;
  Status status_;
};

Status Parse(const Json& json, ProcessIdentity& process) {
  Members members(json);
  members.Get("pid", process.pid);
  members.Get("start_ticks", process.start_ticks);
  members.Get("boot_id", process.boot_id);
  return members.status();
}

Status Parse(const Json& json, FarmOptions& options) {
  Members members(json);
  members.Get("folder", options.folder);
  members.Get("db", options.db);
  members.Get("host", options.host);
  members.Get("workers", options.workers);
  members.Get("devices", options.devices);
  members.Get("gpus", options.gpus);
  members.Get("authority", options.authority);
  return members.status();
}

Status Parse(const Json& json, FarmProcess& process) {
  Members members(json);
  members.Get("name", process.name);
  members.Get("device", process.device);
  members.Get("cores", process.cores);
  std::string phase;
  members.Get("phase", phase);
  const auto* const row =
      std::ranges::find(kPhases, phase, &std::pair<FarmProcess::Phase, std::string_view>::second);
  if (row == kPhases.end()) {
    members.Refuse("phase", "a phase of a process");
  } else {
    process.phase = row->first;
  }
  members.Include(Parse(members.Get("process", &Json::is_object, "an object"), process.process));
  members.Get("addresses", process.addresses);
  members.Get("pages", process.pages);
  members.Get("log", process.log);
  members.Get("restarts", process.restarts);
  members.Get("last_end", process.last_end);
  return members.status();
}

}  // namespace

std::string FarmState::AddressOf(std::string_view name) const {
  const auto at = std::ranges::find(processes, name, &FarmProcess::name);
  return at == processes.end() || at->addresses.empty() ? "" : at->addresses.front();
}

std::string_view PhaseName(FarmProcess::Phase phase) {
  return std::ranges::find(kPhases, phase, &std::pair<FarmProcess::Phase, std::string_view>::first)
      ->second;
}

std::string FarmStateText(const FarmState& state) {
  Json processes = Json::array();
  for (const FarmProcess& process : state.processes) processes.push_back(JsonOf(process));
  const Json json = {{"format", kFormat},
                     {"options", JsonOf(state.options)},
                     {"machine", state.machine},
                     {"supervisor", JsonOf(state.supervisor)},
                     {"user_keys", state.user_keys},
                     {"started_s", state.started_s},
                     {"up", state.up},
                     {"processes", processes},
                     {"notes", state.notes}};
  // A path may be no UTF-8, which JSON cannot hold.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

StatusOr<FarmState> ParseFarmState(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return DataLoss("it is no JSON object");
  FarmState state;
  Members members(json);
  int format = 0;
  members.Get("format", format);
  if (format != kFormat) members.Refuse("format", "3");
  members.Include(Parse(members.Get("options", &Json::is_object, "an object"), state.options));
  members.Get("machine", state.machine);
  members.Include(
      Parse(members.Get("supervisor", &Json::is_object, "an object"), state.supervisor));
  members.Get("user_keys", state.user_keys);
  members.Get("started_s", state.started_s);
  members.Get("up", state.up);
  for (const Json& process : members.Get("processes", &Json::is_array, "a list")) {
    if (!process.is_object()) {
      members.Refuse("processes", "a list of objects");
      break;
    }
    members.Include(Parse(process, state.processes.emplace_back()));
  }
  members.Get("notes", state.notes);
  KILN_RETURN_IF_ERROR(members.status());
  return state;
}

Status WriteFarmState(const std::string& path, const FarmState& state) {
  return WriteFileAtomically(path, FarmStateText(state), kOwnerOnly);
}

StatusOr<FarmState> ReadFarmState(const std::string& path) {
  if (!FileExists(path)) return NotFound("there is no {}", path);
  KILN_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxBytes));
  auto state = ParseFarmState(text);
  if (state.ok()) return state;
  return DataLoss(
      "{} does not describe a farm: {}; another version of Kiln may have written it; "
      "if none of its processes run, delete it",
      path, Message(state.status()));
}

}  // namespace kiln::client
