#include "tracker/service.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/server/grpc_status.h"

namespace kiln::tracker {
namespace {

grpc::ServerUnaryReactor* Finished(grpc::CallbackServerContext* context, const Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

Status Stopping() { return Unavailable("the tracker is stopping; try again"); }

}  // namespace

// One waiting Acquire. gRPC owns it from Acquire's return to OnDone. The code that takes it out of
// waiters_ calls Finish once.
class TrackerService::Waiter : public grpc::ServerUnaryReactor {
 public:
  Waiter(TrackerService* service, std::string request_id, int64_t until_ms, v1::AcquireReply* reply)
      : service_(service), request_id_(std::move(request_id)), until_ms_(until_ms), reply_(reply) {}

  const std::string& request_id() const { return request_id_; }
  int64_t until_ms() const { return until_ms_; }

  void Answer(v1::AcquireReply reply) {
    *reply_ = std::move(reply);
    Finish(grpc::Status::OK);
  }
  void Refuse(const Status& status) { Finish(ToGrpc(status)); }

 private:
  void OnCancel() override { service_->Cancelled(this); }
  void OnDone() override { delete this; }

  TrackerService* const service_;
  const std::string request_id_;
  const int64_t until_ms_;
  v1::AcquireReply* const reply_;
};

TrackerService::TrackerService(Options options)
    : clock_(options.clock),
      admission_(options.admission),
      revoked_(options.revoked),
      registry_(options.registry, NowMs()) {
  thread_ = std::thread([this] { LetTimePass(); });
}

TrackerService::~TrackerService() {
  Stop();
  thread_.join();
}

void TrackerService::Stop() {
  std::map<std::string, Waiter*> waiters;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    waiters.swap(waiters_);
  }
  changed_.notify_all();
  for (const auto& [id, waiter] : waiters) waiter->Refuse(Stopping());
}

TrackerService::Figures TrackerService::Look() {
  std::lock_guard lock(mutex_);
  return {registry_.List(NowMs()), registry_.totals()};
}

int64_t TrackerService::NowMs() const { return clock_->MonotonicNanos() / 1'000'000; }

template <typename Request, typename Call>
grpc::ServerUnaryReactor* TrackerService::Answer(grpc::CallbackServerContext* context,
                                                 const Request& request, const Call& call) {
  Status status = admission_.Admit(*context, request);
  if (!status.ok()) return Finished(context, status);
  {
    std::lock_guard lock(mutex_);
    status = stopping_ ? Stopping() : call();
    AnswerGranted();
    LogEvents();
    NoteNextEvent(registry_.NextEventMs());
  }
  return Finished(context, status);
}

grpc::ServerUnaryReactor* TrackerService::Announce(grpc::CallbackServerContext* context,
                                                   const v1::AnnounceRequest* request,
                                                   v1::AnnounceReply* reply) {
  return Answer(context, *request, [&] {
    auto result = registry_.Announce(*request, NowMs());
    if (!result.ok()) return result.status();
    *reply = *std::move(result);
    if (revoked_ != nullptr) reply->set_revoked(revoked_());
    return OkStatus();
  });
}

grpc::ServerUnaryReactor* TrackerService::Renew(grpc::CallbackServerContext* context,
                                                const v1::RenewRequest* request,
                                                v1::RenewReply* reply) {
  return Answer(context, *request, [&] {
    auto result = registry_.Renew(*request, NowMs());
    if (!result.ok()) return result.status();
    *reply = *std::move(result);
    if (revoked_ != nullptr) reply->set_revoked(revoked_());
    return OkStatus();
  });
}

grpc::ServerUnaryReactor* TrackerService::Release(grpc::CallbackServerContext* context,
                                                  const v1::ReleaseRequest* request,
                                                  v1::ReleaseReply*) {
  return Answer(context, *request, [&] {
    registry_.Release(*request, NowMs());
    return OkStatus();
  });
}

grpc::ServerUnaryReactor* TrackerService::List(grpc::CallbackServerContext* context,
                                               const v1::ListRequest* request,
                                               v1::ListReply* reply) {
  return Answer(context, *request, [&] {
    *reply = registry_.List(NowMs());
    return OkStatus();
  });
}

grpc::ServerUnaryReactor* TrackerService::SetWorkerMode(grpc::CallbackServerContext* context,
                                                        const v1::SetWorkerModeRequest* request,
                                                        v1::SetWorkerModeReply* reply) {
  return Answer(context, *request, [&] {
    auto result = registry_.SetWorkerMode(*request, NowMs());
    if (!result.ok()) return result.status();
    *reply = *std::move(result);
    return OkStatus();
  });
}

grpc::ServerUnaryReactor* TrackerService::Acquire(grpc::CallbackServerContext* context,
                                                  const v1::AcquireRequest* request,
                                                  v1::AcquireReply* reply) {
  if (const Status admitted = admission_.Admit(*context, *request); !admitted.ok()) {
    return Finished(context, admitted);
  }
  Waiter* older = nullptr;
  Waiter* waiter = nullptr;
  Status status;
  {
    std::lock_guard lock(mutex_);
    const int64_t now_ms = NowMs();
    StatusOr<v1::AcquireReply> result =
        stopping_ ? StatusOr<v1::AcquireReply>(Stopping()) : registry_.Acquire(*request, now_ms);
    status = result.status();
    if (result.ok()) {
      // A second poll means that the client has given up the first poll.
      const auto it = waiters_.find(request->request_id());
      if (it != waiters_.end()) {
        older = it->second;
        waiters_.erase(it);
      }
      const int64_t wait_ms = std::min(request->wait_ms(), Registry::kMaxWaitMs);
      if (!result->has_lease() && wait_ms > 0) {
        waiter = new Waiter(this, request->request_id(), now_ms + wait_ms, reply);
        waiters_[request->request_id()] = waiter;
        NoteNextEvent(waiter->until_ms());
      }
      *reply = *std::move(result);
    }
    AnswerGranted();
    LogEvents();
    NoteNextEvent(registry_.NextEventMs());
  }
  if (older != nullptr) older->Answer({});
  return waiter != nullptr ? waiter : Finished(context, status);
}

void TrackerService::LogEvents() {
  for (const std::string& line : registry_.TakeEvents()) LogInfo("{}", line);
}

void TrackerService::AnswerGranted() {
  for (const std::string& id : registry_.TakeGranted()) {
    const auto it = waiters_.find(id);
    // The request is between two polls, or Acquire itself answers it now.
    if (it == waiters_.end()) continue;
    Waiter* waiter = it->second;
    waiters_.erase(it);
    waiter->Answer(registry_.Poll(id, NowMs()));
  }
}

void TrackerService::AnswerOverdue() {
  const int64_t now_ms = NowMs();
  for (auto it = waiters_.begin(); it != waiters_.end();) {
    Waiter* waiter = it->second;
    if (now_ms < waiter->until_ms()) {
      ++it;
      continue;
    }
    it = waiters_.erase(it);
    waiter->Answer(registry_.Poll(waiter->request_id(), now_ms));
  }
}

void TrackerService::Cancelled(Waiter* waiter) {
  {
    std::lock_guard lock(mutex_);
    const auto it = waiters_.find(waiter->request_id());
    // The request is answered already.
    if (it == waiters_.end() || it->second != waiter) return;
    waiters_.erase(it);
    registry_.StopPolling(waiter->request_id(), NowMs());
    NoteNextEvent(registry_.NextEventMs());
  }
  waiter->Refuse(kiln::Cancelled("the client has disconnected"));
}

std::optional<int64_t> TrackerService::NextEventMs() const {
  std::optional<int64_t> next_ms = registry_.NextEventMs();
  for (const auto& [id, waiter] : waiters_) {
    next_ms = std::min(next_ms.value_or(waiter->until_ms()), waiter->until_ms());
  }
  return next_ms;
}

void TrackerService::NoteNextEvent(std::optional<int64_t> at_ms) {
  if (!at_ms.has_value() || (sleeps_until_ms_.has_value() && *at_ms >= *sleeps_until_ms_)) return;
  is_sooner_ = true;
  changed_.notify_all();
}

void TrackerService::LetTimePass() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    registry_.Advance(NowMs());
    AnswerGranted();
    AnswerOverdue();
    LogEvents();
    const std::optional<int64_t> next_ms = NextEventMs();
    const absl::Duration sleep = next_ms.has_value()
                                     ? absl::Milliseconds(std::max<int64_t>(*next_ms - NowMs(), 1))
                                     : absl::InfiniteDuration();
    sleeps_until_ms_ = next_ms;
    is_sooner_ = false;
    clock_->WaitFor(lock, changed_, sleep, [&] { return stopping_ || is_sooner_; });
  }
}

}  // namespace kiln::tracker
