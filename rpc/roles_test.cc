#include "rpc/roles.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "base/status_testing.h"
#include "proto/builder.pb.h"
#include "proto/runner.pb.h"
#include "proto/scheduler.pb.h"
#include "proto/tracker.pb.h"
#include "proto/version.pb.h"

namespace kiln {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kSubmit[] = "/kiln.v1.Scheduler/Submit";
constexpr char kCancel[] = "/kiln.v1.Scheduler/CancelJob";
constexpr char kServe[] = "/kiln.v1.Scheduler/ServeCallbacks";

Identity Holder(Role role, const std::string& name = "alice") { return {name, role, "", {}}; }

// Returns the methods of all services in proto/, as they stand at the head of a call.
std::set<std::string> MethodsOfProtos() {
  // Their descriptors are in the pool once the code of the messages is in the program.
  v1::BuildRequest().GetDescriptor();
  v1::MeasureRequest().GetDescriptor();
  v1::SubmitRequest().GetDescriptor();
  v1::AnnounceRequest().GetDescriptor();
  v1::VersionRequest().GetDescriptor();
  std::set<std::string> methods;
  for (const auto& entry : std::filesystem::directory_iterator("proto")) {
    if (entry.path().extension() != ".proto") continue;
    const FileDescriptor* const file =
        DescriptorPool::generated_pool()->FindFileByName(entry.path().string());
    EXPECT_NE(file, nullptr) << entry.path() << ": add its library to the test";
    for (int i = 0; file != nullptr && i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        methods.insert(fmt::format("/{}/{}", file->service(i)->full_name(),
                                   file->service(i)->method(j)->name()));
      }
    }
  }
  return methods;
}

TEST(RolesTest, EveryRpcHasARowAndEveryRowAnRpc) {
  std::set<std::string> rows;
  for (const CallRole& row : CallRoles()) {
    EXPECT_TRUE(rows.emplace(row.method).second) << row.method << " has two rows";
  }
  std::set<std::string> calls = MethodsOfProtos();
  EXPECT_GT(calls.size(), 30u);
  // The services that come with gRPC. Health/Check asks for nobody (base/server/grpc_server.h).
  calls.insert("/grpc.health.v1.Health/Watch");
  calls.insert("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  EXPECT_EQ(rows, calls);
  EXPECT_TRUE(std::ranges::is_sorted(CallRoles(), {}, &CallRole::method));
}

using Roles = std::set<Role>;
const Roles kEverybody = {Role::kRead, Role::kSubmit, Role::kWork, Role::kOperate, Role::kAdmin};
const Roles kUsers = {Role::kSubmit, Role::kOperate, Role::kAdmin};
const Roles kDaemons = {Role::kWork};
const Roles kOperators = {Role::kOperate, Role::kAdmin};
const Roles kAdmins = {Role::kAdmin};

// The roles that may make each call, written out apart from the table and from the order of roles,
// so that a change of either is a change here.
const std::map<std::string_view, Roles> kMayCall = {
    {"/grpc.health.v1.Health/Watch", kEverybody},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", kEverybody},
    {"/kiln.v1.Builder/Build", kDaemons},
    {"/kiln.v1.Runner/Measure", kDaemons},
    {"/kiln.v1.Scheduler/Best", kEverybody},
    {"/kiln.v1.Scheduler/BindKey", kOperators},
    {"/kiln.v1.Scheduler/CancelJob", kUsers},
    {"/kiln.v1.Scheduler/DeleteAutotvmRecords", kOperators},
    {"/kiln.v1.Scheduler/DeleteModel", kOperators},
    {"/kiln.v1.Scheduler/DeleteRecords", kOperators},
    {"/kiln.v1.Scheduler/GetJob", kEverybody},
    {"/kiln.v1.Scheduler/GetModel", kEverybody},
    {"/kiln.v1.Scheduler/GetRecord", kEverybody},
    {"/kiln.v1.Scheduler/ImportRecords", kOperators},
    {"/kiln.v1.Scheduler/ListAudit", kOperators},
    {"/kiln.v1.Scheduler/ListAutotvmRecords", kEverybody},
    {"/kiln.v1.Scheduler/ListJobs", kEverybody},
    {"/kiln.v1.Scheduler/ListModels", kEverybody},
    {"/kiln.v1.Scheduler/ListPinned", kEverybody},
    {"/kiln.v1.Scheduler/ListRecords", kEverybody},
    {"/kiln.v1.Scheduler/ListUsers", kEverybody},
    {"/kiln.v1.Scheduler/OpenDashboard", kEverybody},
    {"/kiln.v1.Scheduler/PauseJob", kUsers},
    {"/kiln.v1.Scheduler/Predict", kEverybody},
    {"/kiln.v1.Scheduler/PutModel", kOperators},
    {"/kiln.v1.Scheduler/QueryConfig", kEverybody},
    {"/kiln.v1.Scheduler/QuerySchedule", kEverybody},
    {"/kiln.v1.Scheduler/ResumeJob", kUsers},
    {"/kiln.v1.Scheduler/ServeCallbacks", kUsers},
    {"/kiln.v1.Scheduler/SetSchedule", kOperators},
    {"/kiln.v1.Scheduler/SetUser", kAdmins},
    {"/kiln.v1.Scheduler/SetWorkerMode", kOperators},
    {"/kiln.v1.Scheduler/Submit", kUsers},
    {"/kiln.v1.Scheduler/TestModel", kEverybody},
    {"/kiln.v1.Scheduler/TrainModel", kUsers},
    {"/kiln.v1.Scheduler/WatchJob", kEverybody},
    {"/kiln.v1.Tracker/Acquire", kDaemons},
    {"/kiln.v1.Tracker/Announce", kDaemons},
    {"/kiln.v1.Tracker/List", kEverybody},
    {"/kiln.v1.Tracker/Release", kDaemons},
    {"/kiln.v1.Tracker/Renew", kDaemons},
    {"/kiln.v1.Tracker/SetWorkerMode", kDaemons},
    {"/kiln.v1.Versions/Get", kEverybody},
};

// The role that a refusal names: the least of those who may.
std::string_view LeastOf(const Roles& may) {
  if (may == kUsers) return "submit";
  if (may == kDaemons) return "work";
  return may == kOperators ? "operate" : "admin";
}

TEST(RolesTest, EveryRoleAtEveryCall) {
  for (const CallRole& row : CallRoles()) {
    EXPECT_TRUE(kMayCall.contains(row.method)) << row.method << ": say here who may call it";
  }
  EXPECT_EQ(kMayCall.size(), CallRoles().size());
  for (const auto& [method, may] : kMayCall) {
    for (const Role role : kRoles) {
      const Status status = CheckRole(Holder(role), method);
      if (may.contains(role)) {
        EXPECT_TRUE(status.ok()) << method << " " << RoleName(role);
        continue;
      }
      EXPECT_THAT(
          status,
          StatusIs(StatusCode::kPermissionDenied,
                   AllOf(HasSubstr(fmt::format("alice has the role {}, and", RoleName(role))),
                         HasSubstr(fmt::format("asks for the role {}", LeastOf(may))),
                         HasSubstr("`kiln keys issue "), HasSubstr("--role "))))
          << method << " " << RoleName(role);
    }
  }
}

// The farm's inside belongs to daemons: no person announces a worker, holds a lease, or sends
// programs to builders and runners.
TEST(RolesTest, OnlyDaemonsDoTheWorkOfDaemons) {
  for (const char* method :
       {"/kiln.v1.Tracker/Announce", "/kiln.v1.Tracker/Acquire", "/kiln.v1.Tracker/Renew",
        "/kiln.v1.Tracker/Release", "/kiln.v1.Builder/Build", "/kiln.v1.Runner/Measure"}) {
    for (const Role role : kRoles) {
      EXPECT_EQ(CheckRole(Holder(role), method).ok(), role == Role::kWork) << method;
    }
  }
  // A daemon submits and changes nothing at the scheduler.
  for (const CallRole& row : CallRoles()) {
    if (!row.method.starts_with("/kiln.v1.Scheduler/") || row.least == Role::kRead) continue;
    EXPECT_FALSE(CheckRole(Holder(Role::kWork), row.method).ok()) << row.method;
  }
  EXPECT_THAT(CheckRole(Holder(Role::kAdmin), "/kiln.v1.Tracker/Announce"),
              StatusIs(StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("which only daemons have"),
                             HasSubstr("`kiln keys issue NAME --role work"))));
}

TEST(RolesTest, WhatHasNoRowIsClosed) {
  for (const std::string& method :
       {std::string(), std::string("/"), std::string("/kiln.v1.Scheduler/Submi"),
        std::string("/kiln.v1.Scheduler/Submit2"), std::string("/kiln.v2.Scheduler/Submit"),
        std::string("Submit\n"), std::string(100'000, '/')}) {
    const Status status = CheckRole(Holder(Role::kAdmin), method);
    EXPECT_THAT(status, StatusIs(StatusCode::kUnimplemented,
                                 AllOf(HasSubstr("has no call"), Not(HasSubstr("\n")))));
    EXPECT_LT(Message(status).size(), 400u);
  }
}

TEST(RolesTest, JobsBelongToTheirUsers) {
  EXPECT_OK(CheckOwner(Holder(Role::kSubmit), "alice", kCancel, "job 1f"));
  EXPECT_THAT(CheckOwner(Holder(Role::kSubmit), "bob", kCancel, "job 1f"),
              StatusIs(StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("alice has the role submit, and Scheduler.CancelJob for "
                                       "job 1f of bob asks for the role operate"),
                             HasSubstr("`kiln keys issue alice --role operate --replace`"))));
  EXPECT_OK(CheckOwner(Holder(Role::kOperate), "bob", kCancel, "job 1f"));
  EXPECT_THAT(CheckOwner(Holder(Role::kAdmin), "bob", kServe, "job 1f"),
              StatusIs(StatusCode::kPermissionDenied,
                       HasSubstr("job 1f belongs to bob, and Scheduler.ServeCallbacks is for its "
                                 "owner alone; found alice")));
  EXPECT_OK(CheckOwner(Holder(Role::kSubmit), "alice", kServe, "job 1f"));
  // A call that acts on nobody's things asks for no more than its role.
  EXPECT_OK(CheckOwner(Holder(Role::kSubmit), "bob", kSubmit, "job 1f"));
}

// The page has a row for each role that a call asks for, with all of its calls.
TEST(RolesTest, ThePageHasTheTable) {
  ASSERT_OK_AND_ASSIGN(const std::string page, ReadFile("docs/keys.md"));
  for (const Role role : kRoles) {
    std::string calls;
    for (const CallRole& row : CallRoles()) {
      constexpr std::string_view kPackage = "/kiln.v1.";
      if (row.least != role || !row.method.starts_with(kPackage)) continue;
      std::string name(row.method.substr(kPackage.size()));
      std::ranges::replace(name, '/', '.');
      calls += fmt::format("{}{}", calls.empty() ? "" : ", ", name);
    }
    EXPECT_THAT(page, HasSubstr(fmt::format("| `{}` | {} |", RoleName(role),
                                            calls.empty() ? "no call yet" : calls)));
  }
}

}  // namespace
}  // namespace kiln
