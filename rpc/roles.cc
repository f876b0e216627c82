#include "rpc/roles.h"

#include <algorithm>

#include "base/text/utf8.h"

namespace kiln {
namespace {

constexpr std::string_view kPackage = "/kiln.v1.";
constexpr size_t kShown = 80;

// A row for a call that acts on nobody's own things.
constexpr CallRole Row(std::string_view method, Role least) { return {method, least, least}; }

// Results and models steer what all users get, so bringing them in from outside, deleting them and
// pinning them is an operator's matter. What only computes or only looks takes `read`.
constexpr CallRole kRows[] = {
    Row("/grpc.health.v1.Health/Watch", Role::kRead),
    Row("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Role::kRead),
    Row("/kiln.v1.Builder/Build", Role::kWork),
    Row("/kiln.v1.Runner/Measure", Role::kWork),
    Row("/kiln.v1.Scheduler/Best", Role::kRead),
    Row("/kiln.v1.Scheduler/BindKey", Role::kOperate),
    {"/kiln.v1.Scheduler/CancelJob", Role::kSubmit, Role::kOperate},
    Row("/kiln.v1.Scheduler/DeleteAutotvmRecords", Role::kOperate),
    Row("/kiln.v1.Scheduler/DeleteModel", Role::kOperate),
    Row("/kiln.v1.Scheduler/DeleteRecords", Role::kOperate),
    Row("/kiln.v1.Scheduler/GetJob", Role::kRead),
    Row("/kiln.v1.Scheduler/GetModel", Role::kRead),
    Row("/kiln.v1.Scheduler/GetRecord", Role::kRead),
    Row("/kiln.v1.Scheduler/ImportRecords", Role::kOperate),
    Row("/kiln.v1.Scheduler/ListAudit", Role::kOperate),
    Row("/kiln.v1.Scheduler/ListAutotvmRecords", Role::kRead),
    Row("/kiln.v1.Scheduler/ListJobs", Role::kRead),
    Row("/kiln.v1.Scheduler/ListModels", Role::kRead),
    Row("/kiln.v1.Scheduler/ListPinned", Role::kRead),
    Row("/kiln.v1.Scheduler/ListRecords", Role::kRead),
    Row("/kiln.v1.Scheduler/ListUsers", Role::kRead),
    Row("/kiln.v1.Scheduler/OpenDashboard", Role::kRead),
    {"/kiln.v1.Scheduler/PauseJob", Role::kSubmit, Role::kOperate},
    Row("/kiln.v1.Scheduler/Predict", Role::kRead),
    Row("/kiln.v1.Scheduler/PutModel", Role::kOperate),
    Row("/kiln.v1.Scheduler/QueryConfig", Role::kRead),
    Row("/kiln.v1.Scheduler/QuerySchedule", Role::kRead),
    {"/kiln.v1.Scheduler/ResumeJob", Role::kSubmit, Role::kOperate},
    // The process of the owner runs his code for the job; another process would decide for him.
    {"/kiln.v1.Scheduler/ServeCallbacks", Role::kSubmit, std::nullopt},
    Row("/kiln.v1.Scheduler/SetSchedule", Role::kOperate),
    Row("/kiln.v1.Scheduler/SetUser", Role::kAdmin),
    Row("/kiln.v1.Scheduler/SetWorkerMode", Role::kOperate),
    Row("/kiln.v1.Scheduler/Submit", Role::kSubmit),
    Row("/kiln.v1.Scheduler/TestModel", Role::kRead),
    {"/kiln.v1.Scheduler/TrainModel", Role::kSubmit, Role::kOperate},
    Row("/kiln.v1.Scheduler/WatchJob", Role::kRead),
    Row("/kiln.v1.Tracker/Acquire", Role::kWork),
    Row("/kiln.v1.Tracker/Announce", Role::kWork),
    Row("/kiln.v1.Tracker/List", Role::kRead),
    Row("/kiln.v1.Tracker/Release", Role::kWork),
    Row("/kiln.v1.Tracker/Renew", Role::kWork),
    Row("/kiln.v1.Tracker/SetWorkerMode", Role::kWork),
    Row("/kiln.v1.Versions/Get", Role::kRead),
};

const CallRole* FindRow(std::string_view method) {
  const auto* const row = std::ranges::lower_bound(kRows, method, {}, &CallRole::method);
  return row != std::end(kRows) && row->method == method ? row : nullptr;
}

Status Denied(const Identity& caller, Role needed, std::string_view action) {
  return MakeStatus(
      StatusCode::kPermissionDenied,
      "{} has the role {}, and {} asks for the role {}{} where the farm's authority is gives it",
      caller.name, RoleName(caller.role), action, RoleName(needed),
      needed == Role::kWork
          ? std::string(", which only daemons have; `kiln keys issue NAME --role work`")
          : fmt::format("; `kiln keys issue {} --role {} --replace`", caller.name,
                        RoleName(needed)));
}

}  // namespace

std::string CallName(std::string_view method) {
  if (!method.starts_with(kPackage)) return OneLine(method.substr(0, kShown));
  std::string name = OneLine(method.substr(kPackage.size(), kShown));
  std::ranges::replace(name, '/', '.');
  return name;
}

std::span<const CallRole> CallRoles() { return kRows; }

Status CheckRole(const Identity& caller, std::string_view method) {
  const CallRole* const row = FindRow(method);
  if (row == nullptr) {
    return Unimplemented(
        "this Kiln has no call {}: client and daemon are of different versions, or this is another "
        "daemon; compare `kiln --version` on both machines",
        CallName(method));
  }
  if (Permits(caller.role, row->least)) return OkStatus();
  return Denied(caller, row->least, CallName(method));
}

Status CheckOwner(const Identity& caller, std::string_view owner, std::string_view method,
                  std::string_view thing) {
  const CallRole* const row = FindRow(method);
  KILN_CHECK(row != nullptr, "no row for {}", method);
  if (caller.name == owner) return OkStatus();
  if (!row->least_for_others.has_value()) {
    return MakeStatus(StatusCode::kPermissionDenied,
                      "{} belongs to {}, and {} is for its owner alone; found {}", thing,
                      OneLine(owner.substr(0, kShown)), CallName(method), caller.name);
  }
  if (Permits(caller.role, *row->least_for_others)) return OkStatus();
  return Denied(
      caller, *row->least_for_others,
      fmt::format("{} for {} of {}", CallName(method), thing, OneLine(owner.substr(0, kShown))));
}

}  // namespace kiln
