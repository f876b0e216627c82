// A scheduler that accepts calls and says nothing holds up no client for ever.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/server/grpc_server.h"
#include "base/status_testing.h"
#include "base/version.h"
#include "client/client.h"
#include "client/log_lines.h"
#include "proto/version.grpc.pb.h"
#include "store/folder_testing.h"

namespace kiln::client {
namespace {

using testing::HasSubstr;

class Versions : public v1::Versions::Service {
  grpc::Status Get(grpc::ServerContext*, const v1::VersionRequest*,
                   v1::VersionReply* reply) override {
    reply->set_protocol(kProtocol);
    return grpc::Status::OK;
  }
};

// Takes every stream, and says as much of a job as `events` says.
class SilentScheduler : public v1::Scheduler::Service {
 public:
  grpc::Status ListRecords(grpc::ServerContext* context, const v1::ListRecordsRequest*,
                           grpc::ServerWriter<v1::Record>* writer) override {
    writer->Write(v1::Record());
    return SaysNothing(*context);
  }
  grpc::Status ListAutotvmRecords(grpc::ServerContext* context,
                                  const v1::ListAutotvmRecordsRequest*,
                                  grpc::ServerWriter<v1::AutotvmLine>*) override {
    return SaysNothing(*context);
  }
  grpc::Status ImportRecords(grpc::ServerContext* context,
                             grpc::ServerReader<v1::ImportRecordsRequest>*,
                             v1::ImportRecordsReply*) override {
    return SaysNothing(*context);
  }
  // The n-th stream begins with the n-th state; UNSPECIFIED: it says nothing.
  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest*,
                        grpc::ServerWriter<v1::JobEvent>* writer) override {
    const auto number = static_cast<size_t>(watched++);
    const v1::JobState state = number < states.size() ? states[number] : v1::JOB_STATE_UNSPECIFIED;
    if (state == v1::JOB_STATE_UNSPECIFIED) return SaysNothing(*context);
    v1::JobEvent event;
    event.mutable_status()->set_state(state);
    writer->Write(event);
    return state == v1::SUCCEEDED ? grpc::Status::OK : SaysNothing(*context);
  }

  std::vector<v1::JobState> states;
  std::atomic<int> watched{0};

 private:
  static grpc::Status SaysNothing(grpc::ServerContext& context) {
    while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(2));
    return grpc::Status::CANCELLED;
  }
};

class SilentServerTest : public testing::Test {
 protected:
  void SetUp() override {
    GrpcServer::Options options;
    options.services = {&versions_, &scheduler_};
    ASSERT_OK_AND_ASSIGN(server_, GrpcServer::Start(options));
    ClientLimits limits;
    limits.silence = limits.import_end = absl::Milliseconds(300);
    limits.random = [this] {
      ++asked_;
      return 0.0;
    };
    ASSERT_OK_AND_ASSIGN(client_, SchedulerClient::Connect(server_->address(), {}, limits));
  }

  Status Watch(std::vector<v1::JobState> states) {
    scheduler_.states = std::move(states);
    return client_->Watch(
        "j", [this](const v1::JobEvent&) { ++events_; }, {}, absl::ZeroDuration());
  }

  Versions versions_;
  SilentScheduler scheduler_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<SchedulerClient> client_;
  int events_ = 0;
  int asked_ = 0;
};

TEST_F(SilentServerTest, ListsEndWithASentence) {
  int records = 0;
  const Status listed = client_->VisitRecords({}, [&](const v1::Record&) {
    ++records;
    return OkStatus();
  });
  EXPECT_THAT(listed, StatusIs(StatusCode::kDeadlineExceeded,
                               HasSubstr("has said nothing for 300ms: it may be stuck")));
  EXPECT_EQ(records, 1);
  EXPECT_THAT(client_->VisitAutotvmRecords({}, [](const auto&) { return OkStatus(); }),
              StatusIs(StatusCode::kDeadlineExceeded, HasSubstr(server_->address())));
}

// Time that the client takes does not count.
TEST_F(SilentServerTest, ASlowVisitorIsNoSilence) {
  const Status listed = client_->VisitRecords({}, [&](const v1::Record&) -> Status {
    absl::SleepFor(absl::Milliseconds(700));
    return InvalidArgument("enough");
  });
  EXPECT_THAT(listed, StatusIs(StatusCode::kInvalidArgument, "enough"));
}

// The lines fill the connection's window, or the end is not answered.
TEST_F(SilentServerTest, ImportsEndWithASentence) {
  const store::TestFolder folder;
  for (const size_t bytes : {size_t{100}, size_t{8} << 20}) {
    const std::string path = folder.File("log");
    std::string text;
    while (text.size() < bytes) text += std::string(1 << 16, 'x') + "\n";
    ASSERT_OK(WriteFile(path, text));
    ASSERT_OK_AND_ASSIGN(LogLines lines, LogLines::Open(path));
    EXPECT_THAT(client_->Import(lines),
                StatusIs(StatusCode::kDeadlineExceeded, HasSubstr("has said nothing for 300ms")));
  }
}

TEST_F(SilentServerTest, AJobThatIsNeverTalkedAboutIsGivenUp) {
  EXPECT_THAT(Watch({}), StatusIs(StatusCode::kUnavailable,
                                  HasSubstr("it may be stuck; look at its log, or start it again; "
                                            "job j goes on")));
  EXPECT_EQ(scheduler_.watched, 1);
}

// A job in the queue is quiet for hours.
TEST_F(SilentServerTest, AQuietJobIsWatchedByAnotherStream) {
  ASSERT_OK(Watch({v1::QUEUED, v1::RUNNING, v1::SUCCEEDED}));
  EXPECT_EQ(scheduler_.watched, 3);
  EXPECT_EQ(events_, 3);
}

TEST_F(SilentServerTest, RetriesTakeTheirPausesFromTheGivenNumbers) {
  server_->Shutdown(absl::ZeroDuration());
  EXPECT_THAT(client_->Watch(
                  "j", [](const auto&) {}, {}, absl::Milliseconds(500)),
              StatusIs(StatusCode::kUnavailable, HasSubstr("lost the scheduler")));
  EXPECT_GT(asked_, 1);
}

}  // namespace
}  // namespace kiln::client
