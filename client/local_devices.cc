#include "client/local_devices.h"

#include <charconv>
#include <sstream>

#include "base/process/subprocess.h"
#include "base/text/shell_word.h"
#include "rpc/device_choice.h"
#include "rpc/device_message.h"

namespace kiln::client {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

// Parses a line such as
// "cuda:GPU-1f0c\tcuda -arch=sm_90\tNVIDIA H200\tcompute_capability=90 ... name=NVIDIA H200".
StatusOr<v1::WorkerState> ParseLine(const std::string& line) {
  std::istringstream in(line);
  std::string device, target, name, model;
  if (!std::getline(in, device, '\t') || !std::getline(in, target, '\t') ||
      !std::getline(in, name, '\t') || !std::getline(in, model)) {
    return Internal("cannot read '{}' in the list of devices", line);
  }
  v1::WorkerState runner;
  runner.set_kind(v1::RUNNER);
  runner.set_device(name);
  KILN_ASSIGN_OR_RETURN(const device::DeviceModel parsed, device::ParseDeviceModel(model));
  *runner.mutable_device_model() = DeviceMessage(parsed);
  runner.set_target(target);
  runner.add_keys(target.substr(0, target.find(' ')));
  const size_t colon = device.find(':');
  if (colon == std::string::npos) {
    runner.add_keys(device);
  } else {
    runner.add_keys(name);
    runner.add_keys(device.substr(colon + 1));
  }
  return runner;
}

}  // namespace

StatusOr<v1::ListReply> LocalDevices(const std::string& device) {
  SubprocessOptions options;
  KILN_ASSIGN_OR_RETURN(const std::string executable, CurrentExecutable());
  options.argv = {executable, "runner", "--device", device, "--list"};
  options.output = options.error = SubprocessOptions::Stream::kPipe;
  KILN_ASSIGN_OR_RETURN(const RunResult listed, RunToEnd(std::move(options), {}, kPatience));
  if (!listed.exit.ok()) {
    return FailedPrecondition("the devices of this machine cannot be listed: {}",
                              FirstLine(listed.error));
  }
  v1::ListReply reply;
  std::istringstream lines(listed.output);
  for (std::string line; std::getline(lines, line);) {
    KILN_ASSIGN_OR_RETURN(*reply.add_workers(), ParseLine(line));
  }
  return reply;
}

StatusOr<std::string> ChooseLocalDevice(const std::string& wanted, const std::string& kind,
                                        const v1::ListReply& there) {
  int index = 0;
  const char* end = wanted.data() + wanted.size();
  const auto [at, error] = std::from_chars(wanted.data(), end, index);
  const bool is_index = error == std::errc() && at == end;
  if (!is_index || index < 0 || index >= there.workers_size()) {
    return ChooseDevice(wanted, kind, there);
  }
  const v1::WorkerState& runner = there.workers(index);
  return runner.keys(runner.keys_size() - 1);
}

}  // namespace kiln::client
