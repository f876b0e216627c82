#include "scheduler/callbacks/callback_hub.h"

#include <utility>

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
  const auto ended = [&] { return line.gone || stop.stop_requested(); };
  hub_.clock_.WaitFor(lock, line.news, absl::InfiniteDuration(),
                      [&] { return !line.taken || ended(); });
  if (line.gone) return Gone();
  if (stop.stop_requested()) return Cancelled("stopped");
  request.set_number(++line.number);
  line.taken = true;
  line.reply.reset();
  line.request = std::move(request);
  line.news.notify_all();
  const bool done = hub_.clock_.WaitFor(lock, line.news, timeout,
                                        [&] { return line.reply.has_value() || ended(); });
  line.taken = false;
  line.awaits_reply = false;
  line.request.reset();
  line.news.notify_all();
  if (line.reply.has_value()) return *std::exchange(line.reply, {});
  if (line.gone) return Gone();
  if (done) return Cancelled("stopped");
  line.hang_up();
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
  hub_.clock_.WaitFor(lock, line_->news, longest, [&] { return line_->request.has_value(); });
  std::optional<v1::CallbackRequest> request = std::exchange(line_->request, {});
  line_->awaits_reply = request.has_value();
  return request;
}

Status CallbackHub::Connection::Answer(v1::CallbackReply reply) {
  uint64_t expected = 0;
  {
    std::lock_guard lock(hub_.mutex_);
    // The call has been given up, so its answer is of no use.
    if (!line_->awaits_reply) return OkStatus();
    expected = line_->number;
  }
  if (reply.number() != expected) {
    const Status wrong = InvalidArgument("the user's process answered call {}, expected call {}",
                                         reply.number(), expected);
    Reply(wrong);
    return wrong;
  }
  Reply(std::move(reply));
  return OkStatus();
}

void CallbackHub::Connection::Refuse(const Status& why) { Reply(why); }

void CallbackHub::Connection::Reply(StatusOr<v1::CallbackReply> reply) {
  std::lock_guard lock(hub_.mutex_);
  if (!std::exchange(line_->awaits_reply, false)) return;
  line_->reply = std::move(reply);
  line_->news.notify_all();
}

}  // namespace kiln::scheduler
