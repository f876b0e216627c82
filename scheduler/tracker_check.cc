#include "scheduler/tracker_check.h"

#include <chrono>

#include "base/log.h"
#include "rpc/channel.h"

namespace kiln::scheduler {
namespace {

constexpr std::chrono::milliseconds kSlice{100};
constexpr int kSlicesBeforeWarning = 20;

void Check(const std::stop_token& stop, const std::string& tracker, const FarmAccess& access) {
  const auto channel = MakeChannel(tracker, access);
  for (int slices = 0; !stop.stop_requested(); ++slices) {
    if (channel->WaitForConnected(std::chrono::system_clock::now() + kSlice)) {
      LogInfo("the tracker at {} is reached", tracker);
      return;
    }
    if (slices == kSlicesBeforeWarning) {
      LogWarn("no connection to the tracker at {}; jobs wait; retrying", tracker);
    }
  }
}

}  // namespace

TrackerCheck::TrackerCheck(std::string tracker, const FarmAccess& access)
    : thread_([tracker = std::move(tracker), access](const std::stop_token& stop) {
        Check(stop, tracker, access);
      }) {}

}  // namespace kiln::scheduler
