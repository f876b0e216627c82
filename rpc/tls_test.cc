// Servers and channels of a farm over TLS, on loopback: who gets in, who is told what, and what
// happens while keys change.
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <optional>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/keys/authority_folder.h"
#include "base/keys/live_keys.h"
#include "base/server/grpc_server.h"
#include "base/server/grpc_status.h"
#include "base/status_testing.h"
#include "proto/tracker.grpc.pb.h"
#include "rpc/admission_control.h"
#include "rpc/channel.h"
#include "rpc/farm_access.h"
#include "rpc/farm_credentials.h"
#include "rpc/member_check.h"
#include "rpc/server_watch.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A tracker that answers whoever reaches it.
class OpenTracker : public v1::Tracker::Service {
 public:
  // Checks calls as a service does. Null: it does not.
  const AdmissionControl* admission = nullptr;
  std::function<void(const grpc::ServerContext&)> on_list;

 private:
  grpc::Status Announce(grpc::ServerContext* context, const v1::AnnounceRequest* request,
                        v1::AnnounceReply*) override {
    return ToGrpc(admission->Admit(*context, *request));
  }
  grpc::Status List(grpc::ServerContext* context, const v1::ListRequest* request,
                    v1::ListReply*) override {
    const Status admitted = admission->Admit(*context, *request);
    if (admitted.ok() && on_list) on_list(*context);
    return ToGrpc(admitted);
  }
};

class TlsTest : public testing::Test {
 protected:
  TlsTest() { InitGrpc(); }

  // Starts the server with the keys of a member.
  void Serve(const AuthorityFolder& farm, const std::string& name) {
    auto keys = LiveKeys::Open(farm.FolderOf(name), clock_);
    ASSERT_OK(keys.status());
    admission_.emplace("tracker", std::make_shared<MemberCheck>(*keys, clock_));
    service_.admission = &*admission_;
    auto server = GrpcServer::Start({.services = {&service_},
                                     .check_caller = admission_->MakeCallerCheck(),
                                     .check_certificate = admission_->MakeCertificateCheck(),
                                     .keys = *keys});
    ASSERT_OK(server.status());
    server_ = *std::move(server);
  }
  void ServeBox1() {
    ASSERT_OK(farm_.Issue({"box1", Role::kWork}, 100, false));
    Serve(farm_, "box1");
  }

  std::shared_ptr<grpc::Channel> Connect(
      const std::shared_ptr<grpc::ChannelCredentials>& credentials) const {
    grpc::ChannelArguments arguments;
    // Channels with the same arguments would share a connection.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
    return grpc::CreateCustomChannel(server_->address(), credentials, arguments);
  }
  std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const std::string& folder) {
    const auto keys = *LiveKeys::Open(folder, clock_);
    return FarmCredentials(*keys, std::make_shared<ServerWatch>(keys, clock_));
  }
  std::shared_ptr<grpc::Channel> ConnectAs(const AuthorityFolder& farm, const std::string& name) {
    return Connect(CredentialsOf(farm.FolderOf(name)));
  }

  static Status List(const std::shared_ptr<grpc::Channel>& channel, bool waits = false) {
    grpc::ClientContext context;
    context.set_wait_for_ready(waits);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::ListReply reply;
    return FromGrpc(v1::Tracker::NewStub(channel)->List(&context, {}, &reply));
  }
  static Status Announce(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::AnnounceReply reply;
    return FromGrpc(v1::Tracker::NewStub(channel)->Announce(&context, {}, &reply));
  }
  // Calls until the answer is the expected one, on a new connection each time. Returns the last.
  template <typename Connecting>
  static Status ListUntil(bool ok, Connecting connect) {
    Status last;
    for (int i = 0; i < 100; ++i) {
      last = List(connect());
      if (last.ok() == ok) return last;
      Clock::Real().SleepFor(absl::Milliseconds(100));
    }
    return last;
  }

  FakeClock clock_{absl::Now()};
  const TempDir temporary_ = *TempDir::Make("tls-test");
  AuthorityFolder farm_ = *AuthorityFolder::Init(temporary_.Join("keys"), {&clock_, nullptr});
  AuthorityFolder other_farm_ =
      *AuthorityFolder::Init(temporary_.Join("other"), {&clock_, nullptr});
  OpenTracker service_;
  std::optional<AdmissionControl> admission_;
  std::unique_ptr<GrpcServer> server_;
};

auto Refused(const std::string& found, const std::string& mends) {
  return StatusIs(StatusCode::kUnauthenticated, AllOf(HasSubstr(found), HasSubstr(mends)));
}

TEST_F(TlsTest, EachRoleHasItsCalls) {
  ServeBox1();
  for (const Role role : kRoles) {
    const std::string name = fmt::format("m-{}", RoleName(role));
    ASSERT_OK(farm_.Issue({name, role}, 10, false));
    const auto channel = ConnectAs(farm_, name);
    EXPECT_OK(List(channel));
    if (role == Role::kWork) {
      EXPECT_OK(Announce(channel));
      continue;
    }
    EXPECT_THAT(Announce(channel),
                StatusIs(StatusCode::kPermissionDenied,
                         HasSubstr(fmt::format("{} has the role {}, and Tracker.Announce asks for "
                                               "the role work, which only daemons have; `kiln keys "
                                               "issue NAME --role work`",
                                               name, RoleName(role)))));
  }
}

TEST_F(TlsTest, AHandlerLearnsWhoCalls) {
  static constexpr char kCancel[] = "/kiln.v1.Scheduler/CancelJob";
  ServeBox1();
  ASSERT_OK(farm_.Issue({"alice", Role::kSubmit}, 10, false));
  ASSERT_OK(farm_.Issue({"olga", Role::kOperate}, 10, false));
  service_.on_list = [&](const grpc::ServerContext& context) {
    EXPECT_EQ((*admission_->Caller(context))->name, "alice");
    EXPECT_EQ(*admission_->CallerName(context, ""), "alice");
    EXPECT_EQ(*admission_->CallerName(context, "alice"), "alice");
    EXPECT_THAT(admission_->CallerName(context, "bob\n"),
                StatusIs(StatusCode::kPermissionDenied,
                         HasSubstr("in the name of 'bob', and its caller's certificate is that "
                                   "of alice; leave the name out")));
    EXPECT_OK(admission_->AdmitFor(context, "alice", kCancel, "job 1"));
    EXPECT_THAT(admission_->AdmitFor(context, "bob", kCancel, "job 1"),
                StatusIs(StatusCode::kPermissionDenied,
                         HasSubstr("Scheduler.CancelJob for job 1 of bob asks for the role "
                                   "operate")));
  };
  EXPECT_OK(List(ConnectAs(farm_, "alice")));
  service_.on_list = [&](const grpc::ServerContext& context) {
    EXPECT_OK(admission_->AdmitFor(context, "bob", kCancel, "job 1"));
  };
  EXPECT_OK(List(ConnectAs(farm_, "olga")));
  // Nobody has a name if a secret decides.
  service_.on_list = [&](const grpc::ServerContext& context) {
    const AdmissionControl open("tracker", Secret());
    EXPECT_FALSE(open.Caller(context)->has_value());
    EXPECT_EQ(*open.CallerName(context, "bob"), "bob");
    EXPECT_OK(open.AdmitFor(context, "bob", kCancel, "job 1"));
  };
  EXPECT_OK(List(ConnectAs(farm_, "alice")));
}

TEST_F(TlsTest, StrangersAreToldWhatIsMissing) {
  ServeBox1();
  // A TLS library that knows nothing of Kiln checks that the server is a daemon by its name.
  grpc::SslCredentialsOptions bare;
  bare.pem_root_certs = farm_.authority().certificate().ToPem();
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(kDaemonHost);
  EXPECT_THAT(
      List(grpc::CreateCustomChannel(server_->address(), grpc::SslCredentials(bare), arguments)),
      Refused("this tracker asks for a certificate of its farm, and none was shown",
              "`kiln keys issue NAME --role ROLE`"));
  // A member of another farm who knows this farm's authority.
  ASSERT_OK(other_farm_.Issue({"eve", Role::kAdmin}, 10, false));
  ASSERT_OK_AND_ASSIGN(KeyFolder mixed, ReadKeyFolder(other_farm_.FolderOf("eve")));
  mixed.authority = farm_.authority().certificate();
  mixed.revoked = *farm_.authority().Revoke({}, 0, clock_.Now());
  ASSERT_OK(WriteKeyFolder(other_farm_.FolderOf("mixed"), mixed));
  EXPECT_THAT(List(ConnectAs(other_farm_, "mixed")),
              Refused("the certificate of 'eve' was issued by 'Kiln farm ", "`kiln keys issue"));
  // Plain text.
  EXPECT_THAT(List(Connect(grpc::InsecureChannelCredentials())),
              StatusIs(StatusCode::kUnavailable, testing::_));
}

TEST_F(TlsTest, OnAnOpenConnectionTheRevokedAndTheLateAreOut) {
  ServeBox1();
  ASSERT_OK(farm_.Issue({"alice", Role::kSubmit}, 10, false));
  ASSERT_OK(farm_.Issue({"bob", Role::kSubmit}, 10, false));
  const auto alice = ConnectAs(farm_, "alice"), bob = ConnectAs(farm_, "bob");
  EXPECT_OK(List(alice));
  EXPECT_OK(List(bob));
  ASSERT_OK(farm_.Revoke("alice"));
  clock_.Advance(LiveKeys::kLookEvery);
  EXPECT_THAT(List(alice), Refused("the certificate of alice with the serial number",
                                   "`kiln keys issue alice --role submit`"));
  EXPECT_OK(List(bob));
  clock_.Advance(absl::Hours(24 * 11));
  EXPECT_THAT(List(bob), Refused("the certificate of bob ended on", "`kiln keys renew bob`"));
}

TEST_F(TlsTest, ACallUnderWayEndsWhenItsCallerIsRevokedOrLate) {
  ServeBox1();
  std::promise<void> waiting[2];
  std::atomic<int> calls = 0;
  service_.on_list = [&](const grpc::ServerContext& context) {
    waiting[calls++].set_value();
    while (!context.IsCancelled()) Clock::Real().SleepFor(absl::Milliseconds(10));
  };
  ASSERT_OK(farm_.Issue({"alice", Role::kSubmit}, 10, false));
  ASSERT_OK(farm_.Issue({"bob", Role::kSubmit}, 10, false));
  const auto alice = ConnectAs(farm_, "alice"), bob = ConnectAs(farm_, "bob");
  auto alices = std::async(std::launch::async, [&] { return List(alice); });
  waiting[0].get_future().wait();
  auto bobs = std::async(std::launch::async, [&] { return List(bob); });
  waiting[1].get_future().wait();
  ASSERT_OK(farm_.Revoke("alice"));
  clock_.Advance(LiveKeys::kLookEvery);
  EXPECT_THAT(alices.get(), StatusIs(StatusCode::kUnavailable, testing::_));
  EXPECT_EQ(bobs.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  // A call on the connection that is being closed finds it broken.
  Status again = List(alice);
  for (int i = 0; i < 100 && again.code() == StatusCode::kUnavailable; ++i) {
    Clock::Real().SleepFor(absl::Milliseconds(50));
    again = List(alice);
  }
  EXPECT_THAT(again, Refused("the certificate of alice with the serial number", "issue"));
  clock_.Advance(absl::Hours(24 * 11));
  EXPECT_THAT(bobs.get(), StatusIs(StatusCode::kUnavailable, testing::_));
}

TEST_F(TlsTest, ADaemonTakesTheRevocationsOfAnother) {
  ASSERT_OK(farm_.Issue({"box1", Role::kWork}, 10, false));
  ASSERT_OK(farm_.Issue({"alice", Role::kSubmit}, 10, false));
  // box2 is a machine on its own: its folder does not change with the authority's.
  ASSERT_OK_AND_ASSIGN(KeyFolder copy, ReadKeyFolder(farm_.FolderOf("box1")));
  ASSERT_OK(WriteKeyFolder(temporary_.Join("box2"), copy));
  const FarmAccess box1(*LiveKeys::Open(farm_.FolderOf("box1"), clock_), clock_);
  const FarmAccess box2(*LiveKeys::Open(temporary_.Join("box2"), clock_), clock_);
  const std::string none = box1.Revoked();
  ASSERT_OK(farm_.Revoke("alice"));
  clock_.Advance(LiveKeys::kLookEvery);
  const std::string newer = box1.Revoked();
  EXPECT_NE(newer, none);
  EXPECT_EQ(box2.Revoked(), none);
  const auto take = [&](const std::string& list) {
    box2.TakeRevoked(list);
    clock_.Advance(LiveKeys::kLookEvery);
    return box2.Revoked();
  };
  // Another farm's list, a damaged one, and none.
  ASSERT_OK(other_farm_.Issue({"eve", Role::kRead}, 10, false));
  ASSERT_OK(other_farm_.Revoke("eve"));
  ASSERT_OK_AND_ASSIGN(const std::string foreign,
                       ReadFile(other_farm_.FolderOf("eve/revoked.pem")));
  EXPECT_EQ(take(foreign), none);
  EXPECT_EQ(take(newer.substr(0, newer.size() / 2)), none);
  EXPECT_EQ(take(""), none);
  EXPECT_EQ(take(newer), newer);
  // An older one does not bring alice back.
  EXPECT_EQ(take(none), newer);
}

TEST_F(TlsTest, AServerThatIsNoDaemonOfTheFarmGetsNoRequest) {
  ASSERT_OK(farm_.Issue({"alice", Role::kSubmit}, 10, false));
  // Another farm's daemon at the port.
  ASSERT_OK(other_farm_.Issue({"box1", Role::kWork}, 100, false));
  Serve(other_farm_, "box1");
  const auto unavailable = [](const std::string& why) {
    return StatusIs(StatusCode::kUnavailable, HasSubstr(why));
  };
  EXPECT_THAT(List(ConnectAs(farm_, "alice")),
              unavailable("the certificate of 'box1' was issued by 'Kiln farm "));
  server_.reset();
  // A person's certificate at the port, even an admin's.
  ASSERT_OK(farm_.Issue({"mallory", Role::kAdmin}, 10, false));
  Serve(farm_, "mallory");
  EXPECT_THAT(List(ConnectAs(farm_, "alice")),
              unavailable("the server has the certificate of mallory with the role admin, expected "
                          "a daemon's"));
  server_.reset();
  // A daemon whose certificate has been revoked, when the client knows.
  ASSERT_OK(farm_.Issue({"box2", Role::kWork}, 100, false));
  Serve(farm_, "box2");
  ASSERT_OK(farm_.Revoke("box2"));
  EXPECT_THAT(List(ConnectAs(farm_, "alice")), unavailable("box2 with the serial number"));
}

TEST_F(TlsTest, AServersNewCertificateIsShownByNewConnections) {
  ASSERT_OK(farm_.Issue({"box1", Role::kWork}, 10, false));
  ASSERT_OK(farm_.Issue({"alice", Role::kSubmit}, 100, false));
  Serve(farm_, "box1");
  clock_.Advance(absl::Hours(24 * 11));
  EXPECT_THAT(List(ConnectAs(farm_, "alice")),
              StatusIs(StatusCode::kUnavailable, HasSubstr("the certificate of box1 ended on")));
  ASSERT_OK(farm_.Renew("box1", 10));
  clock_.Advance(LiveKeys::kLookEvery);
  EXPECT_OK(List(ConnectAs(farm_, "alice")));
}

// Only the client hears of it: a server that is in the wrong hands closes nothing.
TEST_F(TlsTest, ACallUnderWayEndsWhenItsServerIsRevokedOrLate) {
  ServeBox1();
  ASSERT_OK(farm_.Issue({"box2", Role::kWork}, 1000, false));
  ASSERT_OK(farm_.Issue({"alice", Role::kSubmit}, 1000, false));
  // box2 is another machine.
  const auto keys = *LiveKeys::Open(farm_.FolderOf("box2"), clock_);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<GrpcServer> box2,
                       GrpcServer::Start({.listen = "127.0.0.2:0",
                                          .services = {&service_},
                                          .check_caller = admission_->MakeCallerCheck(),
                                          .keys = keys}));
  std::atomic<bool> stays = true;
  std::atomic<int> calls = 0;
  service_.on_list = [&](const grpc::ServerContext& context) {
    ++calls;
    while (stays && !context.IsCancelled()) Clock::Real().SleepFor(absl::Milliseconds(10));
  };
  const FarmAccess alice(*LiveKeys::Open(farm_.FolderOf("alice"), clock_), clock_);
  const auto channel = MakeChannel(server_->address(), alice);
  const auto other = MakeChannel(box2->address(), alice);
  // Calls once the channel is connected, and returns when the server has the call.
  const auto call = [&](const std::shared_ptr<grpc::Channel>& to, int number) {
    auto status = std::async(std::launch::async, [to] { return List(to, true); });
    for (int i = 0; calls < number && i < 2'000; ++i) {
      Clock::Real().SleepFor(absl::Milliseconds(10));
    }
    return status;
  };
  auto others = call(other, 1), first = call(channel, 2);
  ASSERT_OK(farm_.Revoke("box1"));
  clock_.Advance(LiveKeys::kLookEvery);
  EXPECT_THAT(first.get(), StatusIs(StatusCode::kUnavailable, testing::_));
  EXPECT_EQ(others.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  EXPECT_THAT(List(channel),
              StatusIs(StatusCode::kUnavailable, HasSubstr("box1 with the serial number")));
  EXPECT_EQ(calls, 2) << "no request reaches it";
  // The same channel finds the server again when its keys are in order.
  ASSERT_OK(farm_.Issue({"box1", Role::kWork}, 100, false));
  clock_.Advance(LiveKeys::kLookEvery);
  auto second = call(channel, 3);
  clock_.Advance(absl::Hours(24 * 101));
  EXPECT_THAT(second.get(), StatusIs(StatusCode::kUnavailable, testing::_));
  EXPECT_THAT(List(channel),
              StatusIs(StatusCode::kUnavailable, HasSubstr("the certificate of box1 ended on")));
  EXPECT_EQ(others.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  stays = false;
  EXPECT_OK(others.get());
}

TEST_F(TlsTest, AClientsNewCertificateIsShownByNewConnections) {
  ServeBox1();
  ASSERT_OK(farm_.Issue({"alice", Role::kSubmit}, 10, false));
  const auto credentials = CredentialsOf(farm_.FolderOf("alice"));
  EXPECT_OK(List(Connect(credentials)));
  clock_.Advance(absl::Hours(24 * 11));
  EXPECT_THAT(List(Connect(credentials)), Refused("the certificate of alice ended on", "renew"));
  ASSERT_OK(farm_.Renew("alice", 10));
  EXPECT_OK(ListUntil(true, [&] { return Connect(credentials); }));
}

// Returns the new certificate with the old key, as a reader may see them between two copies.
std::string Mixed(const std::string& old_text, const std::string& new_text) {
  constexpr char kKey[] = "-----BEGIN PRIVATE KEY-----";
  return new_text.substr(0, new_text.find(kKey)) + old_text.substr(old_text.find(kKey));
}

TEST_F(TlsTest, WhileAServersKeysAreCopiedItShowsTheOnesBefore) {
  ServeBox1();
  ASSERT_OK(farm_.Issue({"alice", Role::kSubmit}, 10, false));
  const std::string identity = farm_.FolderOf("box1/identity.pem");
  ASSERT_OK_AND_ASSIGN(const std::string old_text, ReadFile(identity));
  ASSERT_OK(farm_.Renew("box1", 50));
  ASSERT_OK_AND_ASSIGN(const std::string new_text, ReadFile(identity));
  for (const std::string& text :
       {Mixed(old_text, new_text), new_text.substr(0, 300), std::string(), new_text}) {
    ASSERT_OK(WriteFile(identity, text));
    clock_.Advance(LiveKeys::kLookEvery);
    EXPECT_OK(List(ConnectAs(farm_, "alice")));
  }
}

// gRPC reads a client's files. While key and certificate disagree, new connections fail; as soon as
// they agree, they are made again.
TEST_F(TlsTest, WhileAClientsKeysAreCopiedItsOpenConnectionsGoOn) {
  ServeBox1();
  ASSERT_OK(farm_.Issue({"alice", Role::kSubmit}, 10, false));
  const auto credentials = CredentialsOf(farm_.FolderOf("alice"));
  const auto open = Connect(credentials);
  EXPECT_OK(List(open));
  const std::string identity = farm_.FolderOf("alice/identity.pem");
  ASSERT_OK_AND_ASSIGN(const std::string old_text, ReadFile(identity));
  ASSERT_OK(farm_.Renew("alice", 50));
  ASSERT_OK_AND_ASSIGN(const std::string new_text, ReadFile(identity));
  ASSERT_OK(WriteFile(identity, Mixed(old_text, new_text)));
  const auto connect = [&] { return Connect(credentials); };
  EXPECT_THAT(ListUntil(false, connect), StatusIs(StatusCode::kUnavailable, testing::_));
  EXPECT_OK(List(open));
  ASSERT_OK(WriteFile(identity, new_text));
  EXPECT_OK(ListUntil(true, connect));
  EXPECT_OK(List(open));
}

}  // namespace
}  // namespace kiln
