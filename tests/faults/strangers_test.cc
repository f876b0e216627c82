// The table of attacks on a farm with keys: whoever should not get in, at every call of every
// daemon, over real TLS.
#include <google/protobuf/descriptor.h>
#include <grpcpp/channel.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/keys/authority_folder.h"
#include "base/keys/key_folder.h"
#include "base/keys/live_keys.h"
#include "base/keys/role.h"
#include "base/server/grpc_status.h"
#include "proto/builder.grpc.pb.h"
#include "proto/runner.grpc.pb.h"
#include "proto/tracker.grpc.pb.h"
#include "proto/version.grpc.pb.h"
#include "rpc/admission_control_testing.h"
#include "rpc/channel.h"
#include "rpc/farm_access.h"
#include "rpc/roles.h"
#include "tests/faults/farm_testing.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kDays = 10;

// A service of a daemon.
struct Door {
  std::string address;
  const google::protobuf::ServiceDescriptor* service = nullptr;
};

class StrangersTest : public FarmTest {
 protected:
  // The farm is older than the certificates of its members, so that one of them can have ended.
  void SetUp() override {
    Issue("late", Role::kAdmin);
    clock_.Advance(absl::Hours(24 * 2 * kDays));
    Issue("box1", Role::kWork);
    StartFarm(Farm::Options{.device = "null", .keys_folder = farm_keys_.FolderOf("box1")});
    const auto add = [&](DaemonProcess& daemon, const google::protobuf::Descriptor& message) {
      doors_.push_back({daemon.address(), message.file()->service(0)});
    };
    add(farm_->tracker(), *v1::AnnounceRequest::descriptor());
    add(farm_->scheduler(), *v1::SubmitRequest::descriptor());
    add(farm_->scheduler(), *v1::VersionRequest::descriptor());
    add(farm_->builder(), *v1::BuildRequest::descriptor());
    add(farm_->runner(), *v1::MeasureRequest::descriptor());
  }

  void Issue(const std::string& name, Role role) {
    ASSERT_OK(farm_keys_.Issue({name, role}, kDays, false));
  }
  // The keys of a folder, whether they hold or not.
  static FarmAccess AccessOf(const std::string& folder) {
    return FarmAccess(*LiveKeys::Open(folder, Clock::Real()));
  }

  using Connect = std::function<std::shared_ptr<grpc::Channel>(const std::string& address)>;
  Connect As(const std::string& folder) {
    return [access = AccessOf(folder)](const std::string& address) {
      return MakeChannel(address, access);
    };
  }
  // Expects all calls of all doors to end so.
  void ExpectAll(const Connect& connect, const testing::Matcher<Status>& expected) {
    for (const Door& door : doors_) {
      for (const auto& [method, status] : CallAllMethods(connect(door.address), *door.service)) {
        EXPECT_THAT(status, expected) << method;
      }
    }
  }

  const TempDir folder_ = *TempDir::Make("strangers");
  FakeClock clock_{absl::Now() - absl::Hours(24 * 2 * kDays)};
  AuthorityFolder farm_keys_ = *AuthorityFolder::Init(folder_.Join("keys"), {&clock_, nullptr});
  std::vector<Door> doors_;
};

auto Unauthenticated(const std::string& found, const std::string& mends) {
  return StatusIs(StatusCode::kUnauthenticated, AllOf(HasSubstr(found), HasSubstr(mends)));
}

TEST_F(StrangersTest, NobodyEnters) {
  // Plain text.
  ExpectAll([](const std::string& address) { return MakeChannel(address); },
            StatusIs(StatusCode::kUnavailable, testing::_));
  // No certificate.
  ExpectAll(MakeStrangersChannel, Unauthenticated("asks for a certificate of its farm",
                                                  "`kiln keys issue NAME --role ROLE`"));
  // The admin of another farm, who knows the certificate of this farm's authority.
  ASSERT_OK_AND_ASSIGN(AuthorityFolder other,
                       AuthorityFolder::Init(folder_.Join("other"), {&Clock::Real(), nullptr}));
  ASSERT_OK(other.Issue({"eve", Role::kAdmin}, kDays, false));
  ASSERT_OK_AND_ASSIGN(KeyFolder mixed, ReadKeyFolder(other.FolderOf("eve")));
  ASSERT_OK_AND_ASSIGN(const KeyFolder ours, ReadKeyFolder(farm_keys_.FolderOf("box1")));
  mixed.authority = ours.authority;
  mixed.revoked = ours.revoked;
  ASSERT_OK(WriteKeyFolder(folder_.Join("mixed"), mixed));
  ExpectAll(As(folder_.Join("mixed")),
            Unauthenticated("the certificate of 'eve' was issued by 'Kiln farm ", "`kiln keys"));
  // An admin whose certificate has ended.
  ExpectAll(As(farm_keys_.FolderOf("late")),
            Unauthenticated("the certificate of late ended on", "`kiln keys renew late`"));
  // An admin whose certificate begins tomorrow: one of the clocks is off.
  clock_.Advance(absl::Hours(24));
  Issue("early", Role::kAdmin);
  ExpectAll(As(farm_keys_.FolderOf("early")),
            Unauthenticated("the certificate of early begins on", "`timedatectl set-ntp true`"));
  // A revoked admin.
  Issue("gone", Role::kAdmin);
  clock_.Advance(-absl::Hours(24));
  ASSERT_OK(farm_keys_.Revoke("gone"));
  Clock::Real().SleepFor(LiveKeys::kLookEvery);
  ExpectAll(As(farm_keys_.FolderOf("gone")),
            Unauthenticated("the certificate of gone with the serial number", "was revoked on"));
}

TEST_F(StrangersTest, EachRoleHasItsCallsAndNoOther) {
  std::map<std::string_view, CallRole> rows;
  for (const CallRole& row : CallRoles()) rows[row.method] = row;
  for (const Role role : kRoles) {
    const std::string name = fmt::format("m-{}", RoleName(role));
    Issue(name, role);
    const Connect connect = As(farm_keys_.FolderOf(name));
    for (const Door& door : doors_) {
      for (const auto& [method, status] : CallAllMethods(connect(door.address), *door.service)) {
        ASSERT_TRUE(rows.contains(method)) << method;
        const Role least = rows[method].least;
        if (Permits(role, least)) {
          EXPECT_NE(status.code(), StatusCode::kUnauthenticated) << method << ": " << status;
          EXPECT_NE(status.code(), StatusCode::kPermissionDenied) << method << ": " << status;
          continue;
        }
        EXPECT_THAT(
            status,
            StatusIs(StatusCode::kPermissionDenied,
                     AllOf(HasSubstr(fmt::format("{} has the role {}", name, RoleName(role))),
                           HasSubstr(RoleName(least)), HasSubstr("`kiln keys issue"))))
            << method;
      }
    }
  }
}

// Keys bring threads along, and a signal to the process may come to any of them.
TEST_F(StrangersTest, DaemonsWithKeysStopInOrder) {
  for (DaemonProcess* const daemon :
       {&farm_->runner(), &farm_->builder(), &farm_->scheduler(), &farm_->tracker()}) {
    ASSERT_OK_AND_ASSIGN(const ExitStatus exit, daemon->Stop());
    EXPECT_TRUE(exit.ok()) << exit.ToString() << "\n" << daemon->Log();
    EXPECT_THAT(daemon->Log(), HasSubstr("stopping on signal 15"));
  }
}

TEST_F(StrangersTest, MembersKeepToSizesAndNames) {
  Issue("alice", Role::kSubmit);
  const FarmAccess access = AccessOf(farm_keys_.FolderOf("alice"));
  // More than a tracker reads.
  v1::ListReply workers;
  grpc::ClientContext list;
  v1::ListRequest large;
  large.GetReflection()->MutableUnknownFields(&large)->AddLengthDelimited(
      1000, std::string(8 << 20, 'x'));
  EXPECT_EQ(v1::Tracker::NewStub(MakeChannel(farm_->tracker().address(), access))
                ->List(&list, large, &workers)
                .error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  // A path in place of a name.
  const auto submit = [&](const std::string& user) {
    v1::SubmitRequest request;
    *request.mutable_spec() = MatmulJob(1);
    request.mutable_spec()->set_user(user);
    v1::SubmitReply reply;
    grpc::ClientContext context;
    return FromGrpc(v1::Scheduler::NewStub(MakeChannel(farm_->scheduler().address(), access))
                        ->Submit(&context, request, &reply));
  };
  EXPECT_THAT(submit("../../etc/passwd"),
              StatusIs(StatusCode::kPermissionDenied,
                       HasSubstr("in the name of '../../etc/passwd', and its caller's certificate "
                                 "is that of alice")));
  EXPECT_THAT(farm_keys_.Issue({"../eve", Role::kAdmin}, kDays, false),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("../eve")));
  EXPECT_FALSE(FileExists(folder_.Join("eve")));
  // An honest call beside them.
  EXPECT_OK(submit(""));
}

}  // namespace
}  // namespace kiln
