// A process of a user, as a thread that answers calls by a function.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "scheduler/callbacks/callback_hub.h"

namespace kiln::scheduler {

class FakeProcess {
 public:
  using Answer = std::function<v1::CallbackReply(const v1::CallbackRequest&)>;

  // Connects at once. The destructor disconnects.
  FakeProcess(CallbackHub& hub, const std::string& job_id, Answer answer)
      : answer_(std::move(answer)) {
    auto connection = hub.Connect(job_id, [] {});
    KILN_CHECK(connection.ok(), "{}", connection.status().ToString());
    connection_ = *std::move(connection);
    thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  }

  int calls() const { return calls_; }

 private:
  void Run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto request = connection_->Take(absl::Milliseconds(5));
      if (!request.has_value()) continue;
      ++calls_;
      v1::CallbackReply reply = answer_(*request);
      reply.set_number(request->number());
      if (!connection_->Answer(std::move(reply)).ok()) return;
    }
  }

  const Answer answer_;
  std::atomic<int> calls_{0};
  std::unique_ptr<CallbackHub::Connection> connection_;
  std::jthread thread_;  // first to end: it uses the connection
};

}  // namespace kiln::scheduler
