#include "rpc/roles.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
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

TEST(RolesTest, EveryRoleAtEveryCall) {
  int refused = 0;
  for (const CallRole& row : CallRoles()) {
    for (const Role role : kRoles) {
      const Status status = CheckRole(Holder(role), row.method);
      EXPECT_EQ(status.ok(), Permits(role, row.least)) << row.method << " " << RoleName(role);
      if (status.ok()) continue;
      ++refused;
      EXPECT_THAT(
          status,
          StatusIs(StatusCode::kPermissionDenied,
                   AllOf(HasSubstr(fmt::format("alice has the role {}, and", RoleName(role))),
                         HasSubstr(fmt::format("asks for the role {}", RoleName(row.least))),
                         HasSubstr("`kiln keys issue "), HasSubstr("--role "))));
    }
  }
  EXPECT_GT(refused, 50);
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
