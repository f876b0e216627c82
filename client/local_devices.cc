#include "client/local_devices.h"

#include <charconv>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/str_split.h"
#include "base/process/subprocess.h"
#include "base/text/shell_word.h"
#include "rpc/device_choice.h"
#include "rpc/device_message.h"

namespace kiln::client {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

// Parses a line such as
// "cuda:GPU-1f0c\tcuda -arch=sm_90\tNVIDIA H200\tcompute_capability=90 ...\t0000:3b:00.0".
StatusOr<LocalDevice> ParseLine(const std::string& line) {
  const std::vector<std::string> fields = absl::StrSplit(line, '\t');
  if (fields.size() != 5) return Internal("cannot read '{}' in the list of devices", line);
  const std::string &device = fields[0], &target = fields[1], &name = fields[2];
  LocalDevice local{.device = device, .label = device, .name = name, .pci_address = fields[4]};
  v1::WorkerState& runner = local.runner;
  runner.set_kind(v1::RUNNER);
  runner.set_device(name);
  KILN_ASSIGN_OR_RETURN(const device::DeviceModel model, device::ParseDeviceModel(fields[3]));
  *runner.mutable_device_model() = DeviceMessage(model);
  runner.set_target(target);
  runner.add_keys(target.substr(0, target.find(' ')));
  const size_t colon = device.find(':');
  if (colon == std::string::npos) {
    runner.add_keys(device);
  } else {
    runner.add_keys(name);
    runner.add_keys(device.substr(colon + 1));
  }
  return local;
}

// Returns whether `text` is a number without a sign, which `number` becomes.
bool IsNumber(const std::string& text, int& number) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && at == end && number >= 0;
}

// Returns for instance "0 (NVIDIA H200, GPU-1f0c...), 1 (NVIDIA H200, GPU-2b1d...)".
std::string Listing(const std::vector<LocalDevice>& there) {
  std::string text;
  for (size_t i = 0; i < there.size(); ++i) {
    const v1::WorkerState& runner = there[i].runner;
    text += fmt::format("{}{} ({}, {})", i == 0 ? "" : ", ", i, there[i].name,
                        runner.keys(runner.keys_size() - 1));
  }
  return text;
}

// Returns the numbers of the devices that one word of the user names.
std::vector<size_t> Named(const std::string& word, const std::vector<LocalDevice>& there) {
  int index = 0;
  if (IsNumber(word, index)) {
    if (static_cast<size_t>(index) >= there.size()) return {};
    return {static_cast<size_t>(index)};
  }
  std::vector<size_t> named;
  for (size_t i = 0; i < there.size() && !word.empty(); ++i) {
    const v1::WorkerState& runner = there[i].runner;
    if (runner.keys(runner.keys_size() - 1).starts_with(word)) named.push_back(i);
  }
  return named;
}

}  // namespace

StatusOr<std::vector<LocalDevice>> ParseLocalDevices(const std::string& listing) {
  std::vector<LocalDevice> devices;
  std::istringstream lines(listing);
  for (std::string line; std::getline(lines, line);) {
    KILN_ASSIGN_OR_RETURN(devices.emplace_back(), ParseLine(line));
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    const std::string kind = devices[i].device.substr(0, devices[i].device.find(':'));
    devices[i].label = devices.size() == 1 ? kind : fmt::format("{}:{}", kind, i);
  }
  return devices;
}

StatusOr<std::vector<LocalDevice>> ListLocalDevices(const std::string& device) {
  SubprocessOptions options;
  KILN_ASSIGN_OR_RETURN(const std::string executable, CurrentExecutable());
  options.argv = {executable, "runner", "--device", device, "--list"};
  options.output = options.error = SubprocessOptions::Stream::kPipe;
  KILN_ASSIGN_OR_RETURN(const RunResult listed, RunToEnd(std::move(options), {}, kPatience));
  if (!listed.exit.ok()) {
    return FailedPrecondition("the devices of this machine cannot be listed: {}",
                              FirstLine(listed.error));
  }
  return ParseLocalDevices(listed.output);
}

StatusOr<v1::ListReply> LocalDevices(const std::string& device) {
  KILN_ASSIGN_OR_RETURN(const std::vector<LocalDevice> devices, ListLocalDevices(device));
  v1::ListReply reply;
  for (const LocalDevice& local : devices) *reply.add_workers() = local.runner;
  return reply;
}

StatusOr<std::vector<LocalDevice>> ChooseLocalDevices(const std::string& wanted,
                                                      std::vector<LocalDevice> there) {
  if (wanted == "all") return there;
  std::set<size_t> chosen;
  const std::vector<std::string> words = absl::StrSplit(wanted, ',');
  for (const std::string& word : words) {
    const std::vector<size_t> named = Named(word, there);
    if (named.size() != 1) {
      return InvalidArgument("'{}' of --devices {} stands for {} devices; there are: {}", word,
                             wanted, named.size(), Listing(there));
    }
    if (!chosen.insert(named.front()).second) {
      return InvalidArgument("--devices {} names device {} twice", wanted, named.front());
    }
  }
  std::vector<LocalDevice> devices;
  for (const size_t i : chosen) devices.push_back(std::move(there[i]));
  return devices;
}

StatusOr<std::string> ChooseLocalDevice(const std::string& wanted, const std::string& kind,
                                        const v1::ListReply& there) {
  int index = 0;
  if (!IsNumber(wanted, index) || index >= there.workers_size()) {
    return ChooseDevice(wanted, kind, there);
  }
  const v1::WorkerState& runner = there.workers(index);
  return runner.keys(runner.keys_size() - 1);
}

}  // namespace kiln::client
