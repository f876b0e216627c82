#include "scheduler/callbacks/callback_hub.h"

#include <fmt/ranges.h>

#include <utility>
#include <vector>

namespace kiln::scheduler {
namespace {

Status Gone() { return Unavailable("the user's process has disconnected"); }

}  // namespace

bool CallbackHub::IsServed(const std::string& job_id) const {
  std::lock_guard lock(mutex_);
  return lines_.contains(job_id);
}

StatusOr<std::unique_ptr<CallbackHub::Connection>> CallbackHub::Connect(
    const std::string& job_id, std::function<void()> hang_up) {
  auto line = std::make_shared<Line>();
  line->hang_up = std::move(hang_up);
  {
    std::lock_guard lock(mutex_);
    if (!lines_.emplace(job_id, line).second) {
      return AlreadyExists("another process serves job {}; end it, and connect again", job_id);
    }
  }
  if (changed_ != nullptr) changed_(job_id);
  return std::make_unique<Connection>(*this, job_id, std::move(line));
}

StatusOr<std::unique_ptr<CallbackHub::Caller>> CallbackHub::Open(const std::string& job_id) {
  std::lock_guard lock(mutex_);
  const auto found = lines_.find(job_id);
  if (found == lines_.end()) return Gone();
  return std::make_unique<Caller>(*this, found->second);
}

// ---- the job's side ---------------------------------------------------------------------------

StatusOr<v1::CallbackReply> CallbackHub::Caller::Call(v1::CallbackRequest request,
                                                      absl::Duration timeout,
                                                      const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] {
    std::lock_guard lock(hub_.mutex_);
    line_->news.notify_all();
  });
  std::unique_lock lock(hub_.mutex_);
  Line& line = *line_;
  hub_.clock_.WaitFor(lock, line.news, absl::InfiniteDuration(),
                      [&] { return !line.taken || line.gone || stop.stop_requested(); });
  if (line.gone) return Gone();
  if (stop.stop_requested()) return Cancelled("stopped");
  line.taken = true;
  auto reply = Ask(std::move(request), timeout, stop, lock);
  line.taken = false;
  line.news.notify_all();
  if (reply.status().code() == StatusCode::kDeadlineExceeded) line.hang_up();
  return reply;
}

StatusOr<v1::CallbackReply> CallbackHub::Caller::CallBeside(v1::CallbackRequest request,
                                                            absl::Duration timeout,
                                                            const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] {
    std::lock_guard lock(hub_.mutex_);
    line_->news.notify_all();
  });
  std::unique_lock lock(hub_.mutex_);
  return Ask(std::move(request), timeout, stop, lock);
}

StatusOr<v1::CallbackReply> CallbackHub::Caller::Ask(v1::CallbackRequest request,
                                                     absl::Duration timeout,
                                                     const std::stop_token& stop,
                                                     std::unique_lock<std::mutex>& lock) {
  Line& line = *line_;
  if (line.gone) return Gone();
  const uint64_t number = ++line.number;
  request.set_number(number);
  Exchange& exchange = line.under_way[number];
  line.unsent.push_back(std::move(request));
  line.news.notify_all();
  const bool done = hub_.clock_.WaitFor(lock, line.news, timeout, [&] {
    return exchange.reply.has_value() || line.gone || stop.stop_requested();
  });
  std::optional<StatusOr<v1::CallbackReply>> reply = std::move(exchange.reply);
  line.under_way.erase(number);
  std::erase_if(line.unsent, [&](const auto& unsent) { return unsent.number() == number; });
  if (reply.has_value()) return *std::move(reply);
  if (line.gone) return Gone();
  if (done) return Cancelled("stopped");
  return DeadlineExceeded("the user's process did not answer within {} s",
                          absl::ToDoubleSeconds(timeout));
}

// ---- the process's side -----------------------------------------------------------------------

CallbackHub::Connection::~Connection() {
  {
    std::lock_guard lock(hub_.mutex_);
    line_->gone = true;
    line_->hang_up = [] {};
    hub_.lines_.erase(job_id_);
    line_->news.notify_all();
  }
  if (hub_.changed_ != nullptr) hub_.changed_(job_id_);
}

std::optional<v1::CallbackRequest> CallbackHub::Connection::Take(absl::Duration longest) {
  std::unique_lock lock(hub_.mutex_);
  std::deque<v1::CallbackRequest>& unsent = line_->unsent;
  hub_.clock_.WaitFor(lock, line_->news, longest, [&] { return !unsent.empty(); });
  if (unsent.empty()) return std::nullopt;
  v1::CallbackRequest request = std::move(unsent.front());
  unsent.pop_front();
  line_->under_way[request.number()].sent = true;
  return request;
}

Status CallbackHub::Connection::Answer(v1::CallbackReply reply) {
  const uint64_t number = reply.number();
  std::vector<uint64_t> expected;
  {
    std::lock_guard lock(hub_.mutex_);
    const auto found = line_->under_way.find(number);
    const bool awaited = found != line_->under_way.end();
    if (awaited && found->second.sent) {
      found->second.reply = std::move(reply);
      line_->news.notify_all();
      return OkStatus();
    }
    // The call has been given up, so its answer is of no use.
    if (!awaited && number > 0 && number <= line_->number) return OkStatus();
    for (const auto& [each, exchange] : line_->under_way) {
      if (exchange.sent && !exchange.reply.has_value()) expected.push_back(each);
    }
  }
  const Status wrong =
      expected.empty()
          ? InvalidArgument("the user's process answered call {}, and no call is under way", number)
          : InvalidArgument("the user's process answered call {}, expected call {}", number,
                            fmt::join(expected, " or "));
  Refuse(wrong);
  return wrong;
}

void CallbackHub::Connection::Refuse(const Status& why) {
  std::lock_guard lock(hub_.mutex_);
  for (auto& [number, exchange] : line_->under_way) {
    if (exchange.sent && !exchange.reply.has_value()) exchange.reply = why;
  }
  line_->news.notify_all();
}

}  // namespace kiln::scheduler
