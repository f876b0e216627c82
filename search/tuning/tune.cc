#include "search/tuning/tune.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>

#include "base/clock.h"
#include "search/tuning/pace.h"
#include "search/tuning/search_thread.h"

namespace kiln::search {
namespace {

// The number of a task's fastest results that tasks with the same sums are told.
constexpr size_t kLeaders = 8;
constexpr double kNever_s = std::numeric_limits<double>::infinity();

class TuneLoop {
 public:
  TuneLoop(std::span<const TuneTask> tasks, const TuneOptions& options, Measurer& measurer,
           const std::atomic<bool>& stop)
      : tasks_(tasks),
        options_(options),
        measurer_(measurer),
        stop_(stop),
        schedule_(FactsOf(tasks), options.schedule),
        trials_(options.trials),
        missing_(options.missing.begin(), options.missing.end()),
        next_number_(options.first_trial),
        events_(tasks.size()),
        leaders_(tasks.size()),
        policies_(tasks.size()),
        searches_(static_cast<size_t>(SearchesAtOnce())) {
    for (size_t i = 0; i < tasks.size(); ++i) {
      policies_[i].policy = tasks[i].policy;
      schedule_.Restore(static_cast<int>(i), tasks[i].earlier_costs_s);
    }
  }

  StatusOr<Ending> Run() {
    ShowResult();
    while (true) {
      KILN_RETURN_IF_ERROR(TakeNews());
      KILN_RETURN_IF_ERROR(TakeProposals());
      KILN_RETURN_IF_ERROR(CutShort());
      KILN_RETURN_IF_ERROR(FillMeasurer());
      while (MaybeSearch()) {
      }
      // Searches whose candidates are no longer wanted are not waited for.
      if (in_flight_.empty() && (ending_.has_value() || !IsSearching())) break;
      KILN_ASSIGN_OR_RETURN(std::optional<Outcome> outcome,
                            measurer_.Next(ending_.has_value() ? kNever_s : options_.until_s));
      if (outcome.has_value()) KILN_RETURN_IF_ERROR(TakeOutcome(*std::move(outcome)));
    }
    // Models that are kept still get the last results. A search that goes on uses the models.
    if (!IsSearching()) {
      for (auto& [told, observations] : TakeEvents()) told->policy->Observe(observations);
    }
    if (stop_) return Cancelled("stopped");
    return EndingOfLoop();
  }

 private:
  struct Round {
    int task = 0;
    size_t left = 0;  // candidates without a result
    double search_s = 0;
    RoundReport report;
  };
  using RoundPtr = std::shared_ptr<Round>;
  struct Ready {
    RoundPtr round;
    Candidate candidate;
  };

  // A search thread, which begins with its first order.
  struct Search {
    std::optional<SearchThread> thread;
    int task = 0;           // of the order in hand
    size_t candidates = 0;  // that the order in hand asks for

    bool busy() const { return thread.has_value() && thread->busy(); }
  };

  int SearchesAtOnce() const {
    if (options_.lock_step) return 1;
    return std::clamp(options_.searches, 1, std::max(1, schedule_.num_tasks()));
  }

  static std::vector<ScheduledTask> FactsOf(std::span<const TuneTask> tasks) {
    std::vector<ScheduledTask> facts;
    for (const TuneTask& task : tasks) facts.push_back(task.facts);
    return facts;
  }

  // ---- the end

  // Gives up trials in hand that are of no use any more.
  Status CutShort() {
    if (stop_ || ending_.has_value()) return OkStatus();
    ending_ = schedule_.Over();
    if (!ending_.has_value() && Clock::Real().MonotonicSeconds() >= options_.until_s) {
      ending_ = Ending::kTimeUsedUp;
    }
    for (int task = 0; task < schedule_.num_tasks(); ++task) {
      const bool useless = ending_.has_value() || schedule_.stopped(task);
      if (useless) KILN_RETURN_IF_ERROR(Abandon(task));
    }
    return OkStatus();
  }

  Status Abandon(int task) {
    const auto is_of_it = [&](const auto& trial) { return trial.second->task == task; };
    if (std::ranges::none_of(in_flight_, is_of_it)) return OkStatus();
    for (const uint32_t number : measurer_.Abandon(task)) {
      const auto it = in_flight_.find(number);
      KILN_CHECK(it != in_flight_.end(), "trial {} is not in flight", number);
      const RoundPtr round = std::move(it->second);
      in_flight_.erase(it);
      missing_.insert(std::ranges::lower_bound(missing_, number), number);
      KILN_RETURN_IF_ERROR(FinishOne(*round));
    }
    return OkStatus();
  }

  // A search that has no more to do for now ends for good only if no other search tunes its tasks.
  Ending EndingOfLoop() const {
    const Ending ending = ending_.value_or(EndingOfSearch());
    const bool is_final = ending == Ending::kTimeUsedUp || ending == Ending::kTargetReached;
    return awaits_others_ && !is_final ? Ending::kLeftToOthers : ending;
  }

  // Returns the ending if the search was not cut short.
  Ending EndingOfSearch() const {
    if (NumbersLeft() == 0) return Ending::kTrialsUsedUp;
    for (int task = 0; task < schedule_.num_tasks(); ++task) {
      if (schedule_.stopped(task)) return Ending::kNoImprovement;
    }
    return Ending::kSpaceExhausted;
  }

  // ---- trial numbers

  size_t NumbersLeft() const {
    const size_t given = next_number_ - missing_.size();
    return trials_ - std::min<size_t>(trials_, given);
  }

  uint32_t TakeNumber() {
    if (missing_.empty()) return next_number_++;
    const uint32_t number = missing_.front();
    missing_.pop_front();
    return number;
  }

  // ---- tasks that other searches tune

  Status TakeNews() {
    if (options_.others == nullptr || stop_) return OkStatus();
    KILN_ASSIGN_OR_RETURN(NewsOfOthers news, options_.others->Take());
    trials_ = news.trials;
    awaits_others_ = false;
    for (int task = 0; task < schedule_.num_tasks(); ++task) {
      const TunedBy tuned_by = news.tuned_by[task];
      schedule_.Hold(task, tuned_by != TunedBy::kThisSearch);
      awaits_others_ = awaits_others_ || tuned_by == TunedBy::kOthers;
    }
    for (KnownResult& known : news.results) {
      if (known.observation.valid) schedule_.AddKnown(known.task, known.observation.cost_s);
      if (known.is_new) events_[known.task].push_back(std::move(known.observation));
    }
    if (!news.results.empty()) ShowResult();
    return OkStatus();
  }

  // Tells whether the candidate may be measured now. Candidates of a held task wait.
  bool IsWanted(const Ready& ready) const { return !schedule_.held(ready.round->task); }

  size_t NumReady() const {
    return static_cast<size_t>(
        std::ranges::count_if(ready_, [this](const Ready& ready) { return IsWanted(ready); }));
  }

  // ---- searching

  bool IsSearching() const { return std::ranges::any_of(searches_, &Search::busy); }

  std::vector<int> TasksInSearch() const {
    std::vector<int> tasks;
    for (const Search& search : searches_) {
      if (search.busy()) tasks.push_back(search.task);
    }
    return tasks;
  }

  // Returns the candidates that the searches in hand were asked for.
  size_t NumComing() const {
    size_t coming = 0;
    for (const Search& search : searches_) coming += search.busy() ? search.candidates : 0;
    return coming;
  }

  // Returns how many trials may be left, or on their way, when the next search begins.
  size_t Ahead() {
    if (options_.lock_step) return 0;
    const auto searches = static_cast<uint32_t>(searches_.size());
    return static_cast<size_t>(std::max(1, measurer_.capacity())) +
           pace_.Ahead(searches * options_.schedule.round_trials);
  }

  // Begins a search if the measurer would soon have too few trials. Returns whether it did.
  bool MaybeSearch() {
    const auto idle = std::ranges::find_if_not(searches_, &Search::busy);
    if (stop_ || ending_.has_value() || idle == searches_.end()) return false;
    const size_t found = NumReady() + NumComing();
    if (NumbersLeft() <= found) return false;
    if (in_flight_.size() + found > Ahead()) return false;
    schedule_.ExpectTrials(ExpectedTrials());
    const std::optional<int> task = schedule_.Next(TasksInSearch());
    if (!task.has_value()) return false;
    StartSearch(*idle, *task, NumbersLeft() - found);
    return true;
  }

  void StartSearch(Search& search, int task, size_t most) {
    SearchThread::Order order;
    for (const Correction& correction : measurer_.TakeCorrections()) {
      Observation observation;
      observation.candidate.hash = correction.hash;
      observation.valid = correction.valid;
      observation.cost_s = correction.cost_s;
      observation.trial = correction.trial;
      observation.corrects = true;
      events_[correction.task].push_back(std::move(observation));
    }
    order.events = TakeEvents();
    order.policy = &policies_[task];
    order.suggestions = SuggestionsFor(task);
    search.task = task;
    search.candidates = std::min<size_t>(schedule_.RoundTrials(task), most);
    order.candidates = static_cast<int>(search.candidates);
    schedule_.BeginRound(task);
    if (!search.thread.has_value()) {
      search.thread.emplace([this] { measurer_.Wake(); }, options_.phases, options_.turns);
    }
    search.thread->Start(std::move(order));
  }

  // Returns the expected number of further trials: if the job ends by a time, that of the pace so
  // far.
  double ExpectedTrials() const {
    const double left = static_cast<double>(NumbersLeft());
    if (std::isinf(options_.until_s) || pace_.interval_s() <= 0) return left;
    const double left_s = std::max(0.0, options_.until_s - Clock::Real().MonotonicSeconds());
    return std::min(left, left_s / pace_.interval_s());
  }

  void ShowResult() const {
    if (options_.on_result != nullptr) options_.on_result(schedule_);
  }

  // ---- tasks with the same sums

  bool HasSameSums(int task, int other) const {
    const std::string& sums = tasks_[task].facts.sums;
    return task != other && !sums.empty() && sums == tasks_[other].facts.sums;
  }

  // Returns the fastest results of the other tasks, the fastest first.
  std::vector<Observation> SuggestionsFor(int task) const {
    std::vector<Observation> suggestions;
    for (int other = 0; other < schedule_.num_tasks(); ++other) {
      if (!HasSameSums(task, other)) continue;
      suggestions.insert(suggestions.end(), leaders_[other].begin(), leaders_[other].end());
    }
    std::ranges::stable_sort(suggestions, IsFaster);
    return suggestions;
  }

  static bool IsFaster(const Observation& a, const Observation& b) {
    return std::pair(a.cost_s, a.trial) < std::pair(b.cost_s, b.trial);
  }

  void KeepLeader(int task, const Observation& observation) {
    std::vector<Observation>& leaders = leaders_[task];
    if (!observation.valid || tasks_[task].facts.sums.empty()) return;
    leaders.insert(std::ranges::upper_bound(leaders, observation, IsFaster), observation);
    if (leaders.size() > kLeaders) leaders.pop_back();
  }

  // Sorts the events of each task by trial, because the order in which they came must not matter in
  // lock step. A correction comes after the result that it corrects. A policy that searches is told
  // later.
  std::vector<std::pair<SearchedPolicy*, std::vector<Observation>>> TakeEvents() {
    const std::vector<int> searched = TasksInSearch();
    std::vector<std::pair<SearchedPolicy*, std::vector<Observation>>> events;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (events_[i].empty()) continue;
      if (std::ranges::find(searched, static_cast<int>(i)) != searched.end()) continue;
      std::stable_sort(
          events_[i].begin(), events_[i].end(),
          [](const Observation& a, const Observation& b) { return a.trial < b.trial; });
      events.emplace_back(&policies_[i], std::exchange(events_[i], {}));
    }
    return events;
  }

  Status TakeProposals() {
    for (Search& search : searches_) {
      if (!search.thread.has_value()) continue;
      std::optional<SearchThread::Answer> answer = search.thread->Take();
      if (answer.has_value()) KILN_RETURN_IF_ERROR(TakeAnswer(search.task, *std::move(answer)));
    }
    return OkStatus();
  }

  Status TakeAnswer(int task, SearchThread::Answer answer) {
    KILN_ASSIGN_OR_RETURN(std::vector<Candidate> candidates, std::move(answer.candidates));
    pace_.NoteSearch(answer.waited_s + answer.search_s);
    if (options_.on_proposed != nullptr) {
      options_.on_proposed({task, candidates, answer.report, answer.search_s,
                            static_cast<int>(in_flight_.size() + ready_.size())});
    }
    const auto round = std::make_shared<Round>(
        Round{task, candidates.size(), answer.search_s, std::move(answer.report)});
    if (candidates.empty()) {
      schedule_.MarkExhausted(task);
      return EndRound(*round);
    }
    for (Candidate& candidate : candidates) ready_.push_back({round, std::move(candidate)});
    return OkStatus();
  }

  // ---- measuring

  Status FillMeasurer() {
    while (!stop_ && !ending_.has_value() && NumbersLeft() > 0 &&
           in_flight_.size() < static_cast<size_t>(std::max(1, measurer_.capacity()))) {
      const auto at =
          std::ranges::find_if(ready_, [this](const Ready& ready) { return IsWanted(ready); });
      if (at == ready_.end()) break;
      Ready next = std::move(*at);
      ready_.erase(at);
      const int task = next.round->task;
      // The task has stopped improving meanwhile.
      if (schedule_.stopped(task) && !schedule_.exhausted(task)) {
        KILN_RETURN_IF_ERROR(FinishOne(*next.round));
        continue;
      }
      const uint32_t number = TakeNumber();
      in_flight_[number] = next.round;
      measurer_.Submit({task, number, std::move(next.candidate)});
    }
    return OkStatus();
  }

  Status TakeOutcome(Outcome outcome) {
    pace_.NoteResult(Clock::Real().MonotonicSeconds());
    const auto it = in_flight_.find(outcome.trial.number);
    KILN_CHECK(it != in_flight_.end(), "trial {} is not in flight", outcome.trial.number);
    const RoundPtr round = std::move(it->second);
    in_flight_.erase(it);
    const int task = outcome.trial.task;
    schedule_.AddResult(task, outcome.valid ? std::optional(outcome.cost_s) : std::nullopt);
    Observation observation{std::move(outcome.trial.candidate), outcome.valid, outcome.cost_s,
                            outcome.trial.number};
    observation.reference_s = outcome.reference_s;
    observation.awaited_build_s = outcome.awaited_build_s;
    KeepLeader(task, observation);
    events_[task].push_back(std::move(observation));
    ShowResult();
    return FinishOne(*round);
  }

  Status FinishOne(Round& round) { return --round.left > 0 ? OkStatus() : EndRound(round); }

  // A round without candidates ends, too: its report says why there are none.
  Status EndRound(const Round& round) {
    schedule_.EndRound(round.task);
    if (options_.on_measured == nullptr) return OkStatus();
    uint32_t trials = 0;
    for (int i = 0; i < schedule_.num_tasks(); ++i) trials += schedule_.trials(i);
    return options_.on_measured({round.task, trials, round.search_s, round.report, schedule_});
  }

  const std::span<const TuneTask> tasks_;
  const TuneOptions& options_;
  Measurer& measurer_;
  const std::atomic<bool>& stop_;
  TaskScheduler schedule_;
  uint32_t trials_;
  bool awaits_others_ = false;  // whether another search tunes some task
  std::deque<uint32_t> missing_;
  uint32_t next_number_;
  std::deque<Ready> ready_;                        // proposed, not yet submitted
  std::map<uint32_t, RoundPtr> in_flight_;         // key: trial number
  std::vector<std::vector<Observation>> events_;   // per task: not yet told
  std::vector<std::vector<Observation>> leaders_;  // per task, the fastest first
  Pace pace_;
  std::optional<Ending> ending_;          // set if the search was cut short
  std::vector<SearchedPolicy> policies_;  // of the tasks
  std::vector<Search> searches_;          // last: they wake the measurer until their end
};

}  // namespace

StatusOr<Ending> Tune(std::span<const TuneTask> tasks, const TuneOptions& options,
                      Measurer& measurer, const std::atomic<bool>& stop) {
  return TuneLoop(tasks, options, measurer, stop).Run();
}

}  // namespace kiln::search
