#include "client/default_target.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <optional>
#include <set>

#include "base/text/utf8.h"
#include "client/client.h"
#include "client/service_call.h"
#include "proto/tracker.grpc.pb.h"
#include "rpc/channel.h"
#include "runtime/cuda_driver.h"
#include "runtime/cuda_gpus.h"

namespace kiln::client {
namespace {

constexpr std::chrono::seconds kListTimeout{10};

// Names of devices by kind of target.
using DevicesByKind = std::map<std::string, std::set<std::string>>;

DevicesByKind RunnersOf(const v1::ListReply& workers) {
  DevicesByKind devices;
  for (const v1::WorkerState& worker : workers.workers()) {
    if (worker.kind() != v1::RUNNER) continue;
    const std::string target = OneLine(worker.target());
    devices[target.substr(0, target.find(' '))].insert(OneLine(worker.device()));
  }
  return devices;
}

std::string Joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

StatusOr<DefaultTarget> TargetOfWorkers(const v1::ListReply& workers) {
  const DevicesByKind devices = RunnersOf(workers);
  if (devices.empty()) {
    return FailedPrecondition(
        "the scheduler has no device to take the target from: give --target (llvm, "
        "cuda -arch=sm_90), or start a kiln runner");
  }
  if (devices.size() == 1) {
    const auto& [target, names] = *devices.begin();
    return DefaultTarget{target, "the scheduler has " + Joined(names)};
  }
  std::string kinds;
  for (const auto& [target, names] : devices)
    kinds += fmt::format("\n  --target {}  {}", target, Joined(names));
  return FailedPrecondition(
      "the scheduler has devices of several kinds, choose one with --target:{}", kinds);
}

StatusOr<v1::ListReply> WorkersOf(const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto client, session.Connect());
  KILN_ASSIGN_OR_RETURN(const FarmAccess access, session.Access());
  const auto stub = v1::Tracker::NewStub(MakeChannel(client->address(), access));
  return Call(*stub, &v1::Tracker::Stub::List, v1::ListRequest(), kListTimeout);
}

target::Target CompletedByWorkers(const target::Target& target, const v1::ListReply& workers) {
  if (!target.Option(target.kind->processor_option).empty()) return target;
  std::optional<target::Target> one;
  for (const v1::WorkerState& worker : workers.workers()) {
    if (worker.kind() != v1::RUNNER) continue;
    const auto announced = target::ParseTarget(worker.target());
    if (!announced.ok() || announced->kind != target.kind) continue;
    if (one.has_value() && *one != *announced) return target;
    one = *announced;
  }
  if (!one.has_value()) return target;
  for (const auto& [name, value] : target.options) one->options[name] = value;
  return *std::move(one);
}

StatusOr<DefaultTarget> FindDefaultTarget(const Session& session) {
  if (session.scheduler.empty()) {
    const auto driver = runtime::LoadCudaDriver();
    const auto gpus = driver.ok() ? runtime::ListCudaGpus(**driver) : driver.status();
    if (gpus.ok() && !gpus->empty())
      return DefaultTarget{"cuda",
                           fmt::format("this machine has the GPU {}", OneLine((*gpus)[0].name))};
    return DefaultTarget{"llvm", "this machine has no GPU"};
  }
  // A scheduler that does not answer has an error message of its own.
  KILN_RETURN_IF_ERROR(session.Connect().status());
  const StatusOr<v1::ListReply> workers = WorkersOf(session);
  if (workers.status().code() == StatusCode::kUnimplemented) {
    return FailedPrecondition(
        "the scheduler at {} is of a version that does not say which devices it has: say the "
        "target with --target (llvm, cuda -arch=sm_90)",
        session.scheduler);
  }
  KILN_RETURN_IF_ERROR(Annotate(workers.status(), "no --target is given, and its default"));
  return TargetOfWorkers(*workers);
}

}  // namespace kiln::client
