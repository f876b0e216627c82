#include "base/server/health_service.h"

#include <grpcpp/support/byte_buffer.h>

#include <optional>
#include <string_view>

namespace kiln {
namespace {

constexpr std::string_view kWatchMethod = "/grpc.health.v1.Health/Watch";

// HealthCheckResponse: field 1, SERVING or NOT_SERVING.
grpc::ByteBuffer Answer(bool serving) {
  const grpc::Slice bytes(serving ? "\x08\x01" : "\x08\x02", 2);
  return {&bytes, 1};
}

// Sends one answer or none, and ends the call. Owned by gRPC.
class Ending : public grpc::ServerGenericBidiReactor {
 public:
  explicit Ending(bool serving) : answer_(Answer(serving)) {
    StartWriteAndFinish(&answer_, {}, grpc::Status::OK);
  }
  explicit Ending(const grpc::Status& status) { Finish(status); }

 private:
  void OnDone() override { delete this; }

  grpc::ByteBuffer answer_;
};

}  // namespace

// A call of Watch. gRPC owns it until OnDone. The service's mutex guards its members.
class HealthService::Watcher : public grpc::ServerGenericBidiReactor {
 public:
  explicit Watcher(HealthService* service) : service_(service) {
    std::lock_guard lock(service_->mutex_);
    service_->watchers_.insert(this);
    Tell();
  }

  // The caller holds the lock.
  void Tell() {
    if (writing_ || ended_ || told_ == service_->serving_) return;
    told_ = service_->serving_;
    answer_ = Answer(*told_);
    writing_ = true;
    StartWrite(&answer_);
  }

 private:
  void OnWriteDone(bool ok) override {
    std::lock_guard lock(service_->mutex_);
    writing_ = false;
    if (!ok) cancelled_ = true;
    if (cancelled_) return End();
    Tell();
  }

  void OnCancel() override {
    std::lock_guard lock(service_->mutex_);
    cancelled_ = true;
    if (!writing_) End();
  }

  // The caller holds the lock.
  void End() {
    if (ended_) return;
    ended_ = true;
    Finish(grpc::Status::CANCELLED);
  }

  void OnDone() override {
    {
      std::lock_guard lock(service_->mutex_);
      service_->watchers_.erase(this);
    }
    delete this;
  }

  HealthService* const service_;
  std::optional<bool> told_;
  grpc::ByteBuffer answer_;
  bool writing_ = false;
  bool cancelled_ = false;
  bool ended_ = false;
};

void HealthService::SetServing(bool serving) {
  std::lock_guard lock(mutex_);
  serving_ = serving;
  for (Watcher* watcher : watchers_) watcher->Tell();
}

grpc::ServerGenericBidiReactor* HealthService::CreateReactor(
    grpc::GenericCallbackServerContext* call) {
  if (call->method() == kWatchMethod) return new Watcher(this);
  if (call->method() != kHealthCheckMethod) {
    return new Ending(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "there is no such method"));
  }
  std::lock_guard lock(mutex_);
  return new Ending(serving_);
}

}  // namespace kiln
