#include "client/job_rounds.h"

#include <grpcpp/client_context.h>

#include <limits>
#include <utility>

#include "base/server/grpc_status.h"
#include "client/client.h"
#include "client/silence_guard.h"
#include "proto/scheduler.grpc.pb.h"
#include "store/sqlite_store.h"
#include "store/wire/job_message.h"

namespace kiln::client {
namespace {

using store::sqlite::OpenOptions;

v1::Round Slim(v1::Round round) {
  round.clear_report();
  round.clear_best_s();
  return round;
}

StatusOr<std::vector<v1::Round>> FromScheduler(SchedulerClient& client, const std::string& job_id) {
  v1::WatchJobRequest request;
  request.set_job_id(job_id);
  // The job has no such trial, so the stream has no records.
  request.set_from_trial(std::numeric_limits<uint32_t>::max());
  grpc::ClientContext context;
  const auto stream = client.stub()->WatchJob(&context, request);
  SilenceGuard guard(context, ClientLimits().silence);
  std::vector<v1::Round> rounds;
  v1::JobEvent event;
  while (guard.Exchange([&] { return stream->Read(&event); })) {
    if (event.has_round()) rounds.push_back(Slim(std::move(*event.mutable_round())));
  }
  KILN_RETURN_IF_ERROR(FromGrpc(stream->Finish()));
  return rounds;
}

StatusOr<std::vector<v1::Round>> FromFile(const std::string& path, const std::string& job_id) {
  auto store = store::OpenSqliteStore(path, {.mode = OpenOptions::Mode::kReadWrite});
  if (!store.ok()) store = store::OpenSqliteStore(path, {.mode = OpenOptions::Mode::kReadOnly});
  KILN_RETURN_IF_ERROR(store.status());
  KILN_ASSIGN_OR_RETURN(const std::vector<store::RoundRow> rows,
                        (*store)->RoundsOfJob(job_id, /*from=*/0));
  std::vector<v1::Round> rounds;
  for (const store::RoundRow& row : rows) rounds.push_back(Slim(store::RoundMessage(row)));
  return rounds;
}

}  // namespace

StatusOr<std::vector<v1::Round>> RoundsOfJob(const Session& session, const std::string& job_id) {
  if (session.scheduler.empty()) return FromFile(session.db, job_id);
  KILN_ASSIGN_OR_RETURN(const auto client, session.Connect());
  return FromScheduler(*client, job_id);
}

}  // namespace kiln::client
