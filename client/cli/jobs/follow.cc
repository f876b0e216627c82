#include "client/cli/jobs/follow.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "base/console/terminal.h"
#include "base/file/file.h"
#include "client/cli/jobs/record_log.h"
#include "client/view/explain.h"
#include "client/view/job_view.h"
#include "client/view/json.h"
#include "client/view/printable.h"

namespace kiln::client {
namespace {

constexpr absl::Duration kFrame = absl::Milliseconds(100);
constexpr absl::Duration kCancelPatience = absl::Seconds(30);

// Receives the events in a thread of its own, so that one thread owns the terminal.
class Receiver {
 public:
  Receiver(SchedulerClient& client, const std::string& job_id)
      : thread_([this, &client, job_id](std::stop_token stop) {
          const Status status = client.Watch(
              job_id,
              [this](const v1::JobEvent& event) {
                std::lock_guard lock(mutex_);
                events_.push_back(event);
              },
              stop);
          std::lock_guard lock(mutex_);
          end_ = status;
        }) {}

  std::vector<v1::JobEvent> TakeEvents() {
    std::lock_guard lock(mutex_);
    return std::exchange(events_, {});
  }
  // Returns the final status, once all events are taken.
  std::optional<Status> End() {
    std::lock_guard lock(mutex_);
    return events_.empty() ? end_ : std::nullopt;
  }

 private:
  std::mutex mutex_;
  std::vector<v1::JobEvent> events_;
  std::optional<Status> end_;
  // The thread uses the members above, so it is the last one.
  std::jthread thread_;
};

class Follower {
 public:
  Follower(SchedulerClient& client, std::string job_id, const Session& session, StopSignal& stop,
           LocalCluster* cluster, const FollowOptions& options)
      : options_(options),
        client_(client),
        job_id_(std::move(job_id)),
        session_(session),
        stop_(stop),
        cluster_(cluster),
        color_(UseColor(STDOUT_FILENO)),
        live_(!session.json && !options.explain && !options.quiet && printer_.live()) {}

  StatusOr<Followed> Run() {
    // The log file has only the rounds of this job.
    if (!options_.latency_log.empty()) {
      KILN_RETURN_IF_ERROR(WriteFile(options_.latency_log, ""));
    }
    if (!options_.record_file.empty()) {
      KILN_ASSIGN_OR_RETURN(records_, RecordLog::Open(options_.record_file));
    }
    Receiver receiver(client_, job_id_);
    for (;;) {
      for (const v1::JobEvent& event : receiver.TakeEvents()) {
        Show(event);
        KILN_RETURN_IF_ERROR(LogLatency(event));
        if (records_ && event.has_record()) KILN_RETURN_IF_ERROR(records_->Add(event.record()));
      }
      if (live_ && view_.seen()) Redraw();
      if (const auto end = receiver.End()) {
        if (!end->ok()) return *end;
        PrintEnd();
        return Followed{view_.status(), interrupted_};
      }
      if (Interrupted() && cluster_ == nullptr) {
        PrintEnd();
        return Followed{view_.status(), true};
      }
      if (interrupted_ && absl::Now() > cancel_deadline_) {
        return DeadlineExceeded("job {} did not end within {} s of its cancellation", job_id_,
                                absl::ToInt64Seconds(kCancelPatience));
      }
      if (cluster_ != nullptr) {
        KILN_RETURN_IF_ERROR(cluster_->Supervise([&](const std::string& text) { Notice(text); }));
      }
    }
  }

 private:
  void Show(const v1::JobEvent& received) {
    const v1::JobEvent event = session_.json ? received : PrintableCopy(received);
    last_event_ = absl::Now();
    const std::vector<std::string> lines = view_.Observe(event);
    const std::vector<std::string> notices = view_.TakeNotices();
    if (options_.quiet) return;
    if (session_.json) {
      for (const std::string& notice : notices) {
        fmt::print("{}\n", NoticeEvent(event.status(), notice));
      }
      if (event.has_record()) fmt::print("{}\n", TrialEvent(event));
      if (event.has_round()) fmt::print("{}\n", RoundEvent(event));
    } else if (options_.explain && event.has_record()) {
      Explain({ExplainTrial(event.record())});
    } else if (!live_) {
      for (const std::string& line : lines) fmt::print("{}\n", line);
    } else {
      for (const std::string& notice : notices) printer_.Print(notice);
    }
    std::fflush(stdout);
  }

  // Logs each round once: after a lost connection the rounds come from the first again.
  Status LogLatency(const v1::JobEvent& received) {
    const v1::JobEvent event = PrintableCopy(received);
    if (!event.has_round() || event.round().number() < next_round_) return OkStatus();
    next_round_ = event.round().number() + 1;
    if (options_.explain && !session_.json) Explain(ExplainRound(event.round(), view_.status()));
    if (options_.latency_log.empty()) return OkStatus();
    std::ofstream log(options_.latency_log, std::ios::app);
    log << LatencyLogLine(event.round()) << std::flush;
    if (log) return OkStatus();
    return Unavailable("cannot write to the latency log {}", options_.latency_log);
  }

  void Explain(const std::vector<std::string>& lines) {
    if (options_.quiet) return;
    for (const std::string& line : lines) fmt::print("{}\n", line);
    std::fflush(stdout);
  }

  JobView::Frame Frame() const {
    return {.columns = printer_.columns(),
            .rows = printer_.rows(),
            .number = frame_,
            .since_event_s = absl::ToDoubleSeconds(absl::Now() - last_event_),
            .color = color_};
  }

  void Redraw() {
    ++frame_;
    // After Ctrl-C the last lines stand on the terminal again.
    printer_.Redraw(interrupted_ ? view_.LastLines(Frame()) : view_.Lines(Frame()));
  }

  // Prints the last lines of the block, which tell how the job ended. The caller prints the tables
  // of results.
  void PrintEnd() {
    if (!live_) return;
    printer_.Clear();
    for (const std::string& line : view_.LastLines(Frame())) fmt::print("{}\n", line);
    std::fflush(stdout);
  }

  void Notice(const std::string& text) {
    if (live_) {
      printer_.Print("kiln: " + text);
    } else {
      fmt::print(stderr, "kiln: {}\n", text);
    }
  }

  // Waits for a frame. The first signal cancels the job of a cluster of this process.
  bool Interrupted() {
    if (interrupted_) {
      // The signals have their default action again, so a second Ctrl-C ends this process at once.
      absl::SleepFor(kFrame);
      return true;
    }
    if (!stop_.WaitFor(kFrame).has_value() && std::ferror(stdout) == 0) return false;
    interrupted_ = true;
    cancel_deadline_ = absl::Now() + kCancelPatience;
    if (live_) printer_.Clear();
    if (cluster_ != nullptr) {
      // The job is cancelled first: nothing can be printed to a terminal that was closed.
      (void)client_.Cancel(job_id_);
      Notice("stopping: waiting for the trials in flight (Ctrl-C again: at once)");
    }
    return true;
  }

  const FollowOptions options_;
  SchedulerClient& client_;
  const std::string job_id_;
  const Session& session_;
  StopSignal& stop_;
  LocalCluster* const cluster_;
  const bool color_;
  LivePrinter printer_;
  // True: a block is redrawn; false: lines are printed.
  const bool live_;
  JobView view_;
  int frame_ = 0;
  uint32_t next_round_ = 0;
  std::optional<RecordLog> records_;
  absl::Time last_event_ = absl::Now();
  bool interrupted_ = false;
  absl::Time cancel_deadline_ = absl::InfiniteFuture();
};

}  // namespace

void AddFollow(CLI::App& command, FollowOptions& follow) {
  command
      .add_flag("--quiet", follow.quiet, "print only the result; with --json only the end event")
      ->group("Output");
  command
      .add_flag("--explain", follow.explain,
                "explain each candidate (origin, score) and each round (what was dropped, and "
                "why); lines, also on a terminal")
      ->group("Output");
  command
      .add_option("--log-file", follow.latency_log,
                  "write a line for each round: elapsed time, total latency, trials, best of each "
                  "task")
      ->type_name("FILE")
      ->group("Output");
  command
      .add_option("--record-file", follow.record_file,
                  "append a line in the form of TVM's logs for each trial, when it is measured; "
                  "steps of Kiln's own are in it")
      ->type_name("FILE")
      ->group("Output");
}

StatusOr<Followed> Follow(SchedulerClient& client, const std::string& job_id,
                          const Session& session, StopSignal& stop, LocalCluster* cluster,
                          const FollowOptions& options) {
  return Follower(client, job_id, session, stop, cluster, options).Run();
}

}  // namespace kiln::client
