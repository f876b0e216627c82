#include "scheduler/values/worker_channels.h"

#include "rpc/channel.h"
#include "scheduler/values/worker_channel.h"

namespace kiln::scheduler {
namespace {

// Time between two looks for connections that are not used any more.
constexpr double kLook_s = 60;

std::shared_ptr<WorkerChannel> Make(const std::string& address, const FarmAccess& access) {
  auto made = std::make_shared<WorkerChannel>();
  made->address = address;
  made->channel = MakeChannel(address, access);
  made->builder = v1::Builder::NewStub(made->channel);
  made->runner = v1::Runner::NewStub(made->channel);
  return made;
}

}  // namespace

WorkerChannels::WorkerChannels(Clock& clock) : clock_(clock) {}

WorkerChannels::~WorkerChannels() = default;

std::shared_ptr<WorkerChannel> WorkerChannels::At(const std::string& address,
                                                  const FarmAccess& access) {
  const double now_s = clock_.MonotonicSeconds();
  std::lock_guard lock(mutex_);
  if (const auto kept = kept_.find(address); kept != kept_.end()) {
    kept->second.asked_s = now_s;
    return kept->second.channel;
  }
  if (now_s >= look_s_) {
    std::erase_if(kept_, [&](const auto& kept) { return kept.second.asked_s + kKeep_s < now_s; });
    look_s_ = now_s + kLook_s;
  }
  std::shared_ptr<WorkerChannel> made = Make(address, access);
  kept_.emplace(address, Kept{made, now_s});
  return made;
}

size_t WorkerChannels::size() const {
  std::lock_guard lock(mutex_);
  return kept_.size();
}

}  // namespace kiln::scheduler
