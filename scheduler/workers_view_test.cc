#include "scheduler/workers_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/server/grpc_server.h"
#include "base/status_testing.h"
#include "rpc/channel.h"

namespace kiln::scheduler {
namespace {

TEST(WorkersView, PassesOnWhatTheTrackerSays) {
  WorkersView view({}, [] {
    v1::ListReply workers;
    workers.add_workers()->set_target("cuda -arch=sm_90");
    return workers;
  });
  grpc::ServerContext context;
  const v1::ListRequest request;
  v1::ListReply reply;
  ASSERT_TRUE(view.List(&context, &request, &reply).ok());
  EXPECT_EQ(reply.workers(0).target(), "cuda -arch=sm_90");
}

TEST(WorkersView, SaysWhyItCannot) {
  WorkersView view({}, [] { return Unavailable("the tracker is away"); });
  grpc::ServerContext context;
  const v1::ListRequest request;
  v1::ListReply reply;
  const grpc::Status status = view.List(&context, &request, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), testing::HasSubstr("the tracker is away"));
}

// Two schedulers that name each other as their tracker do not ask each other forever.
TEST(WorkersView, DoesNotAnswerAnotherScheduler) {
  int asked = 0;
  WorkersView view({}, [&] { return ++asked, v1::ListReply(); });
  GrpcServer::Options options;
  options.services = {&view};
  ASSERT_OK_AND_ASSIGN(const auto server, GrpcServer::Start(options));
  const auto stub = v1::Tracker::NewStub(MakeChannel(server->address()));
  v1::ListReply reply;
  grpc::ClientContext people, scheduler;
  EXPECT_TRUE(stub->List(&people, {}, &reply).ok());
  scheduler.AddMetadata(kAskedBySchedulerKey, "");
  const grpc::Status status = stub->List(&scheduler, {}, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), testing::HasSubstr("should be the address of a tracker"));
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace kiln::scheduler
