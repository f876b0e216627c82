// The processes of users that serve parts of jobs, and the calls to them.
//
// A process is connected to one job; a job has one process at most. The job's side makes calls, and
// the connection's side takes each call to the process and brings its answer back. The calls of a
// search take turns: one is under way at a time. Other calls, for builds, are under way beside it.
//
// Thread-safe. Memory: little for each connected process; calls are not kept.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"
#include "proto/scheduler.pb.h"

namespace kiln::scheduler {

class CallbackHub {
 public:
  class Caller;      // the job's side of a connected process
  class Connection;  // the process's side

  explicit CallbackHub(Clock& clock = Clock::Real()) : clock_(clock) {}

  bool IsServed(const std::string& job_id) const;
  // `changed` is called when a process has connected or has gone, without a lock held. Call before
  // the first Connect.
  void OnChange(std::function<void(const std::string& job_id)> changed) {
    changed_ = std::move(changed);
  }

  // Connects a process to the job. AlreadyExists if the job has one. `hang_up` ends the process's
  // stream from any thread: the hub calls it when a call has had no answer in time.
  StatusOr<std::unique_ptr<Connection>> Connect(const std::string& job_id,
                                                std::function<void()> hang_up);
  // Returns the process that is connected now. Unavailable if there is none.
  StatusOr<std::unique_ptr<Caller>> Open(const std::string& job_id);

 private:
  // A call that somebody waits for.
  struct Exchange {
    bool sent = false;
    std::optional<StatusOr<v1::CallbackReply>> reply = {};
  };
  // A connected process. Lives until both sides have let go of it.
  struct Line {
    bool gone = false;                            // the process has disconnected
    bool taken = false;                           // a call that takes turns is under way
    uint64_t number = 0;                          // of the newest call
    std::deque<v1::CallbackRequest> unsent;       // in the order of their numbers
    std::map<uint64_t, Exchange> under_way = {};  // key: the call's number
    std::function<void()> hang_up;
    std::condition_variable news;  // of this line alone
  };

  Clock& clock_;
  std::function<void(const std::string&)> changed_;
  mutable std::mutex mutex_;                            // guards the lines as well
  std::map<std::string, std::shared_ptr<Line>> lines_;  // key: job id
};

// Outlived by the hub.
class CallbackHub::Caller {
 public:
  Caller(CallbackHub& hub, std::shared_ptr<Line> line) : hub_(hub), line_(std::move(line)) {}

  // Sends the call when it is its turn, and waits for its answer. Sets the call's number.
  // Unavailable: the process has gone, and no later call of this object succeeds. DeadlineExceeded:
  // no answer came within `timeout` after the process could take the call; the process is then
  // disconnected. Cancelled: `stop` was requested; a late answer is dropped. Other errors are those
  // of Connection::Refuse.
  StatusOr<v1::CallbackReply> Call(v1::CallbackRequest request, absl::Duration timeout,
                                   const std::stop_token& stop);
  // Sends the call at once, beside all others. The process stays connected after DeadlineExceeded,
  // and a late answer is dropped.
  StatusOr<v1::CallbackReply> CallBeside(v1::CallbackRequest request, absl::Duration timeout,
                                         const std::stop_token& stop);

 private:
  // Sends the call and waits for its answer. Lock held.
  StatusOr<v1::CallbackReply> Ask(v1::CallbackRequest request, absl::Duration timeout,
                                  const std::stop_token& stop, std::unique_lock<std::mutex>& lock);

  CallbackHub& hub_;
  const std::shared_ptr<Line> line_;
};

// Outlived by the hub. Disconnects at its end. One thread takes calls, and one brings answers.
class CallbackHub::Connection {
 public:
  Connection(CallbackHub& hub, std::string job_id, std::shared_ptr<Line> line)
      : hub_(hub), job_id_(std::move(job_id)), line_(std::move(line)) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  // Waits for the next call at most so long. Returns nullopt if none has come.
  std::optional<v1::CallbackRequest> Take(absl::Duration longest);
  // Brings the answer of the call that has its number. An answer that nobody waits for any more is
  // dropped. InvalidArgument if no such call was taken; all calls under way end with the error
  // then.
  Status Answer(v1::CallbackReply reply);
  // Ends all calls that were taken and have no answer with the error.
  void Refuse(const Status& why);

 private:
  CallbackHub& hub_;
  const std::string job_id_;
  const std::shared_ptr<Line> line_;
};

}  // namespace kiln::scheduler
