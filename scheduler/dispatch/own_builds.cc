#include "scheduler/dispatch/own_builds.h"

#include <utility>

#include "proto/job_defaults.h"
#include "rpc/artifact_digest.h"

namespace kiln::scheduler {
namespace {

void Fail(v1::ErrorKind error, std::string message, v1::BuildReply& reply) {
  reply.set_error(error);
  reply.set_message(std::move(message));
  reply.clear_artifact();
}

}  // namespace

v1::BuildCall BuildCallOf(const Dispatcher::Job& job, const OwnBuildItem& item) {
  v1::BuildCall call;
  call.set_task_index(static_cast<uint32_t>(item.build->task));
  call.set_target(job.tasks[static_cast<size_t>(item.build->task)].target);
  call.set_steps(item.build->steps);
  call.set_source(item.reply.source());
  *call.mutable_plan() = item.reply.artifact().plan();
  return call;
}

absl::Duration OwnBuildLimit(const Dispatcher::Job& job) {
  const uint32_t limit = job.options.build_timeout_ms();
  return absl::Milliseconds(limit == 0 ? kDefaultBuildTimeoutMs : limit);
}

void SetOwnBinary(const Dispatcher::Job& job, StatusOr<v1::CallbackReply> answer, double took_s,
                  v1::BuildReply& reply) {
  reply.clear_source();
  reply.set_build_s(reply.build_s() + took_s);
  reply.mutable_times()->set_compile_s(reply.times().compile_s() + took_s);
  if (!answer.ok()) {
    return Fail(v1::BUILD_TIMEOUT_ERROR,
                fmt::format("the build function of the user made no binary within {} s",
                            absl::ToDoubleSeconds(OwnBuildLimit(job))),
                reply);
  }
  if (!answer->error().empty()) {
    return Fail(v1::COMPILE_HOST_ERROR,
                "the build function of the user raised an error: " + answer->error(), reply);
  }
  if (answer->binary().empty()) {
    return Fail(v1::COMPILE_HOST_ERROR,
                "the build function of the user returned no bytes, expected a shared object for a "
                "CPU or a cubin for a GPU",
                reply);
  }
  v1::Artifact& artifact = *reply.mutable_artifact();
  artifact.set_binary(std::move(*answer->mutable_binary()));
  artifact.clear_trial();
  artifact.clear_certificate();
  artifact.clear_signature();
  artifact.set_digest(DigestOf(artifact));
}

// ---- the queue ------------------------------------------------------------------------------

OwnBuildQueue::OwnBuildQueue(int threads, Work work) : work_(std::move(work)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

OwnBuildQueue::~OwnBuildQueue() {
  Stop();
  Join();
}

void OwnBuildQueue::Push(OwnBuildItem item) {
  std::lock_guard lock(mutex_);
  queue_.push_back(std::move(item));
  changed_.notify_one();
}

void OwnBuildQueue::Stop() {
  stop_.request_stop();
  std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void OwnBuildQueue::Join() {
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void OwnBuildQueue::Run() {
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !queue_.empty() || stop_.stop_requested(); });
    if (stop_.stop_requested()) return;
    OwnBuildItem item = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work_(std::move(item), stop_.get_token());
  }
}

}  // namespace kiln::scheduler
