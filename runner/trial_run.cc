#include "runner/trial_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "device/noise_mark.h"
#include "runner/arguments.h"
#include "runner/changed_calls.h"
#include "runner/expected_outputs.h"
#include "runner/kept_answers.h"
#include "runner/measure_options.h"
#include "runner/other_inputs.h"
#include "runner/output_sample.h"
#include "runner/run_checks.h"
#include "runner/timing.h"

namespace kiln::runner {
namespace {

// Part of the trial's time limit that is reserved for the second check, in units of the first run.
constexpr double kRecheckRuns = 2;
// Programs that take this long are not run a third time. They are timed on the other inputs, and
// the outputs of the timed calls are checked.
constexpr double kLongProgramS = 0.1;
// Copies of the outputs beside the arguments: the expected outputs for both contents of the inputs;
// in the memory of the host also those of the program's own process.
constexpr int kCopiesToCheck = 2, kHostCopiesToCheck = 3;
// How much longer than the timed calls those on inputs that the program has not seen may take.
struct Allowance {
  double ratio;
  double slack_s;
};
// A call of a host waits for a core, and finds nothing in the caches.
constexpr Allowance kOnHost{.ratio = 8, .slack_s = 100e-6};
// A single call on a GPU takes some microseconds longer than one of many.
constexpr Allowance kSingleOnGpu{.ratio = 1.5, .slack_s = 10e-6};
// Slack of calls that are queued like the timed ones.
constexpr double kQueuedSlackS = 1e-6;
// The shortest of these calls counts.
constexpr int kFreshCalls = 3;

// Programs up to these sizes run once more on their own answer.
constexpr double kShortProgramS = 5e-3;
constexpr int64_t kFewBytes = int64_t{4} << 20;
// Pairs of calls that tell whether a program keeps answers, and the time after which no further one
// begins. Most programs need one pair, and a program that keeps answers needs twenty.
constexpr int kMostPairs = 100;
// Calls of a new process before the pair, after which its threads and caches are as in a process
// that was timed, and further repeated calls after a pair that waited for a core. Such a call takes
// a fiftieth of the time that a new process takes.
constexpr int kWarmCalls = 4, kMoreRepeatedCalls = 4;
constexpr double kMostPairingS = 20;

constexpr std::string_view kWrongOnChangingInputs =
    "right in the first run, wrong in one of several calls, before each of which its inputs "
    "changed";
constexpr std::string_view kWrongOnOtherInputs =
    "right in the first run, wrong in the last one, which had other inputs";

// Measures wall time from one Lap to the next.
class Stopwatch {
 public:
  double Lap() {
    const double now_s = Clock::Real().MonotonicSeconds();
    return now_s - std::exchange(last_s_, now_s);
  }

 private:
  double last_s_ = Clock::Real().MonotonicSeconds();
};

int64_t ArgumentBytes(std::span<Buffer* const> args) {
  int64_t bytes = 0;
  for (const Buffer* arg : args) bytes += arg->argument().bytes;
  return bytes;
}

// The phases of one trial, each with its time and its failures in the result. An error of a phase
// ends the trial; the result has it already.
class TrialPhases {
 public:
  // All arguments outlive the object.
  TrialPhases(const Bench& bench, const wire::TrialRun& trial,
              const std::function<bool()>& is_wanted, const OnPhase& on_phase,
              v1::TrialResult& result)
      : bench_(bench),
        device_(bench.device),
        trial_(trial),
        is_wanted_(is_wanted),
        on_phase_(on_phase),
        result_(result),
        times_(*result.mutable_times()),
        allowance_(bench.device.is_host() ? kOnHost : kSingleOnGpu) {}

  Status Run(UniqueFd outputs) {
    on_phase_(wire::PREPARING);
    KILN_RETURN_IF_ERROR(Prepare(std::move(outputs)));
    on_phase_(wire::LOADING);
    KILN_RETURN_IF_ERROR(Load());
    on_phase_(wire::RUNNING);
    KILN_RETURN_IF_ERROR(RunFirst());
    if (IsEnough(trial_.options(), first_s_, used_s_)) {
      SetStoppedEarly(first_s_);
      return OkStatus();
    }
    OtherInputs other(bench_, checked_);
    // The timed calls of a long program are its second run.
    const bool again = first_s_ < kLongProgramS;
    on_phase_(wire::TIMING);
    KILN_RETURN_IF_ERROR(Time(other, again));
    on_phase_(wire::RECHECKING);
    KILN_RETURN_IF_ERROR(Recheck(other, again));
    Conclude();
    return OkStatus();
  }

 private:
  // Sets the failure as the trial's result, and returns it as the status that ends the phases.
  Status Fail(v1::ErrorKind kind, const Status& cause) {
    result_.set_error(kind);
    result_.set_message(ValidUtf8(Message(cause)));
    return cause;
  }

  void SetStoppedEarly(double cost_s) {
    result_.add_costs_s(cost_s);
    result_.set_stopped_early(true);
  }

  Status CheckInterface(const std::vector<Argument>& arguments,
                        const std::vector<Argument>& expected);
  Status Prepare(UniqueFd outputs);
  Status Load();
  Status RunFirst();
  Status Check(std::string_view when, Poison poison);
  Status ShowOther(OtherInputs& other);
  // `rotated`: the calls to time; null: those of the program with its own arguments.
  TimingDevice DeviceToTime(RotatedCalls* rotated);
  StatusOr<Timing> TimeWith(const TimingOptions& options);
  // `again`: the program is run once more after the timing.
  Status Time(OtherInputs& other, bool again);
  Status Recheck(OtherInputs& other, bool again);
  // Refuses a program that changed its inputs when it was timed.
  Status CheckTimedInputs();
  // Runs the program on the other inputs, once and, where that tells more, in many calls. Sets the
  // seconds of a call on inputs that it has not met.
  Status RunOnNewInputs();
  // Returns the seconds of a call whose inputs change from call to call, and sets how they are
  // compared; nothing: a call by itself tells as much.
  StatusOr<std::optional<double>> ChangedSeconds();
  // Loads the program anew, so that it has met nothing, and runs it on the other inputs, until its
  // time fits the readings or it has had a few chances.
  Status RunAnew();
  // Refuses a program that leaves its answer as it finds it.
  Status RunOnOwnAnswer();
  // Refuses a program that takes longer on inputs that it has not met. `is_fresh`: the last run had
  // such inputs.
  Status RefuseKeptAnswers(OtherInputs& other, bool is_fresh);
  // Adds a pair, and further repeated calls if its own one waited for a core.
  Status AddPair(const CallPair& pair, KeptAnswers& kept);
  Status AddPairs(OtherInputs& other, bool is_fresh, KeptAnswers& kept);
  StatusOr<CallPair> PairInNewProcess(OtherInputs& other);
  StatusOr<CallTime> RepeatedCall();
  // Returns whether something that took so long before, and takes three times as long now, ends
  // within the trial's time limit, with a tenth of the limit to spare.
  bool HasTimeFor(double seconds) const;
  StatusOr<double> FreshSeconds(OtherInputs& other, double fresh_s);
  double CostSeconds() const { return *std::ranges::min_element(timing_.costs_s); }
  // Returns whether calls on new inputs take so much longer than the readings that the program did
  // not compute in the timed calls. A program computes anew for inputs that it has not seen; caches
  // and a wait for a core explain smaller differences.
  bool IsKept(double fresh_s) const {
    return fresh_s > allowance_.ratio * CostSeconds() + allowance_.slack_s;
  }
  void Conclude();

  const Bench& bench_;
  Device& device_;
  const wire::TrialRun& trial_;
  const std::function<bool()>& is_wanted_;
  const OnPhase& on_phase_;
  v1::TrialResult& result_;
  v1::TrialTimes& times_;
  Clock& clock_ = Clock::Real();
  std::mt19937_64 random_{std::random_device{}()};
  Stopwatch watch_;
  CheckedProgram checked_;
  double max_error_ = 0;
  // Seconds of the first run, and of the first run with its check.
  double first_s_ = 0, used_s_ = 0;
  // Time at which the trial's time limit began.
  double start_s_ = 0;
  // Times of the last checked run.
  CheckedTime last_run_;
  Timing timing_;
  // Seconds of a call on inputs that the program had not seen, and how it is compared.
  double fresh_s_ = 0;
  Allowance allowance_;
  // Set if such a call tells more than the readings.
  bool fresh_counts_ = false;
};

// Checks that the program can be compared with its reference. Sets the places of the samples.
Status TrialPhases::CheckInterface(const std::vector<Argument>& arguments,
                                   const std::vector<Argument>& expected) {
  if (trial_.samples().empty()) return CheckSameInterface(arguments, expected);
  KILN_ASSIGN_OR_RETURN(checked_.samples, ParseSamples(trial_.samples(), arguments, expected));
  return OkStatus();
}

Status TrialPhases::Prepare(UniqueFd outputs) {
  const auto arguments = ParseArguments(trial_.artifact().plan());
  if (!arguments.ok()) return Fail(v1::COMPILE_DEVICE_ERROR, arguments.status());
  const auto expected = ParseArguments(trial_.reference_plan());
  if (!expected.ok()) return Fail(v1::UNKNOWN_ERROR, expected.status());
  Status status = CheckInterface(*arguments, *expected);
  if (!status.ok()) return Fail(v1::WRONG_ANSWER_ERROR, status);
  result_.set_sampled_outputs(static_cast<uint64_t>(ElementsOf(checked_.samples)));
  status = PrepareArguments(bench_, *arguments, trial_.seed(),
                            device_.is_host() ? kHostCopiesToCheck : kCopiesToCheck, checked_);
  if (!status.ok()) return Fail(v1::RUNTIME_DEVICE_ERROR, status);
  status = LoadExpected(bench_, trial_, outputs, checked_);
  outputs.Reset();
  if (!status.ok()) return Fail(v1::UNKNOWN_ERROR, status);
  if (trial_.options().flush_cache()) device_.ExpectFlushes();
  times_.set_prepare_s(watch_.Lap());
  return OkStatus();
}

Status TrialPhases::Load() {
  auto program = device_.LoadFor(trial_.artifact(), checked_.args);
  if (!program.ok()) return Fail(v1::COMPILE_DEVICE_ERROR, program.status());
  checked_.program = *std::move(program);
  times_.set_load_s(watch_.Lap());
  return OkStatus();
}

Status TrialPhases::RunFirst() {
  start_s_ = clock_.MonotonicSeconds();
  const auto first = RunOnce(device_, checked_, Poison::kNaN);
  times_.set_first_run_s(watch_.Lap());
  if (!first.ok()) return Fail(v1::RUNTIME_DEVICE_ERROR, first.status());
  last_run_ = *first;
  first_s_ = first->own_s;
  KILN_RETURN_IF_ERROR(Check("", Poison::kNaN));
  used_s_ = clock_.MonotonicSeconds() - start_s_;
  return OkStatus();
}

// Checks the last run. `when` goes before the message of a wrong answer.
Status TrialPhases::Check(std::string_view when, Poison poison) {
  const auto findings = InspectRun(device_, checked_, trial_.tolerance());
  if (!findings.ok()) return Fail(v1::RUNTIME_DEVICE_ERROR, findings.status());
  // Stray writes are reported before wrong answers, which they may have caused.
  const Status memory = CheckMemory(bench_, checked_, *findings);
  if (!memory.ok()) return Fail(v1::RUNTIME_DEVICE_ERROR, memory);
  Status outputs = CheckOutputs(bench_, checked_, *findings, max_error_);
  if (outputs.ok() && !checked_.samples.empty()) {
    outputs = CheckSamples(device_, checked_, trial_.tolerance(), poison, max_error_);
  }
  result_.set_max_error(std::min(max_error_, std::numeric_limits<double>::max()));
  times_.set_check_s(times_.check_s() + watch_.Lap());
  if (outputs.ok()) return OkStatus();
  return Fail(v1::WRONG_ANSWER_ERROR, when.empty() ? outputs : Annotate(outputs, when));
}

Status TrialPhases::ShowOther(OtherInputs& other) {
  const Status shown = other.Show();
  if (!shown.ok()) return Fail(v1::RUNTIME_DEVICE_ERROR, shown);
  std::swap(checked_.expected, checked_.other_expected);
  return OkStatus();
}

TimingDevice TrialPhases::DeviceToTime(RotatedCalls* rotated) {
  TimingDevice timed;
  timed.time_batch = [this, rotated](int64_t number) {
    auto batch_s = rotated != nullptr ? rotated->Time(number)
                                      : device_.Time(*checked_.program, checked_.args, number);
    if (batch_s.ok()) times_.set_timed_runs_s(times_.timed_runs_s() + *batch_s);
    return batch_s;
  };
  if (rotated == nullptr) timed.flush_cache = [this] { device_.FlushCaches(); };
  timed.sleep = [this](double seconds) { clock_.SleepFor(absl::Seconds(seconds)); };
  timed.now_s = [this] { return clock_.MonotonicSeconds(); };
  timed.calls_per_reading = [this, rotated](int64_t wanted, double call_s) {
    return rotated != nullptr ? rotated->PerReading(wanted, call_s)
                              : device_.CallsPerReading(wanted, call_s);
  };
  timed.is_wanted = is_wanted_;
  return timed;
}

StatusOr<Timing> TrialPhases::TimeWith(const TimingOptions& options) {
  std::unique_ptr<RotatedCalls> rotated;
  if (options.flush_cache) {
    KILN_ASSIGN_OR_RETURN(rotated, device_.Rotate(*checked_.program, checked_.args));
  }
  return TimeProgram(options, DeviceToTime(rotated.get()));
}

Status TrialPhases::Time(OtherInputs& other, bool again) {
  if (!again) {
    KILN_RETURN_IF_ERROR(ShowOther(other));
    const Status poisoned = PoisonAll(device_, checked_, Poison::kStale);
    if (!poisoned.ok()) return Fail(v1::RUNTIME_DEVICE_ERROR, poisoned);
  }
  TimingOptions options = TimingFrom(trial_.options());
  options.earlier_call_s = first_s_;
  const double last_s = again ? kRecheckRuns * first_s_ : 0;
  options.budget_s = std::max(1e-3, 1e-3 * trial_.options().timeout_ms() - used_s_ - last_s);
  auto timing = TimeWith(options);
  times_.set_timing_s(watch_.Lap());
  if (!timing.ok()) return Fail(v1::RUNTIME_DEVICE_ERROR, timing.status());
  timing_ = *std::move(timing);
  return OkStatus();
}

Status TrialPhases::Recheck(OtherInputs& other, bool again) {
  fresh_s_ = first_s_;
  // A program that is far slower than others gains nothing.
  if (timing_.stopped_early) allowance_ = kOnHost;
  if (again) {
    KILN_RETURN_IF_ERROR(CheckTimedInputs());
    KILN_RETURN_IF_ERROR(ShowOther(other));
    KILN_RETURN_IF_ERROR(RunOnNewInputs());
  } else {
    KILN_RETURN_IF_ERROR(Check(kWrongOnOtherInputs, Poison::kStale));
  }
  if (device_.is_host() && !timing_.stopped_early) {
    KILN_RETURN_IF_ERROR(RunOnOwnAnswer());
    KILN_RETURN_IF_ERROR(RefuseKeptAnswers(other, again));
  }
  if (!again || fresh_counts_ || !IsKept(fresh_s_)) return OkStatus();
  if (!device_.is_host()) return RunAnew();
  const auto shortest_s = FreshSeconds(other, fresh_s_);
  times_.set_last_run_s(times_.last_run_s() + watch_.Lap());
  if (!shortest_s.ok()) return Fail(v1::RUNTIME_DEVICE_ERROR, shortest_s.status());
  fresh_s_ = *shortest_s;
  return OkStatus();
}

// On a host the program has copies of its inputs.
Status TrialPhases::CheckTimedInputs() {
  if (device_.is_host()) return OkStatus();
  const auto sums = SumsOfInputs(device_, checked_);
  times_.set_check_s(times_.check_s() + watch_.Lap());
  if (!sums.ok()) return Fail(v1::RUNTIME_DEVICE_ERROR, sums.status());
  const Status unchanged = CheckInputs(bench_, checked_, *sums);
  return unchanged.ok() ? OkStatus() : Fail(v1::WRONG_ANSWER_ERROR, unchanged);
}

// The calls whose inputs change come first, because the program then has not met the inputs that
// one of them has.
Status TrialPhases::RunOnNewInputs() {
  const auto changed_s = ChangedSeconds();
  if (!changed_s.ok()) return changed_s.status();
  const auto second = RunOnce(device_, checked_, Poison::kStale);
  times_.set_last_run_s(times_.last_run_s() + watch_.Lap());
  if (!second.ok()) return Fail(v1::RUNTIME_DEVICE_ERROR, second.status());
  last_run_ = *second;
  fresh_s_ = changed_s->value_or(second->own_s);
  return Check(kWrongOnOtherInputs, Poison::kStale);
}

StatusOr<std::optional<double>> TrialPhases::ChangedSeconds() {
  if (device_.is_host() || timing_.stopped_early || !checked_.samples.empty()) return std::nullopt;
  std::vector<Argument> arguments;
  for (const Buffer* arg : checked_.args) arguments.push_back(arg->argument());
  const auto calls = PlanChangedCalls(CostSeconds(), first_s_, arguments, random_);
  if (!calls.has_value()) return std::nullopt;
  std::vector<Inspection::Pair> expected;
  for (size_t i = 0; i < checked_.outputs.size(); ++i) {
    expected.push_back({checked_.outputs[i], checked_.expected.whole[i].buffer->buffer.get()});
  }
  const auto result =
      device_.TimeChanged(*checked_.program, checked_.args, *calls, expected, trial_.tolerance());
  times_.set_last_run_s(times_.last_run_s() + watch_.Lap());
  if (!result.ok()) return Fail(v1::RUNTIME_DEVICE_ERROR, result.status());
  if (!result->has_value()) return std::nullopt;
  allowance_ = {.ratio = calls->most_ratio, .slack_s = kQueuedSlackS};
  for (const Status& output : (*result)->outputs) {
    if (output.ok()) continue;
    return Fail(v1::WRONG_ANSWER_ERROR, Annotate(output, kWrongOnChangingInputs));
  }
  return (*result)->call_s;
}

// A program that keeps answers still has those of earlier calls, unless it is loaded anew.
Status TrialPhases::RunAnew() {
  const double begin_s = clock_.MonotonicSeconds();
  double shortest_s = fresh_s_, longest_s = 0;
  for (int i = 1; i < kFreshCalls && IsKept(shortest_s); ++i) {
    // Even a chance that takes three times as long as the others must end within the trial's time.
    if (!HasTimeFor(std::max(longest_s, fresh_s_))) break;
    checked_.program.reset();
    auto program = device_.LoadFor(trial_.artifact(), checked_.args);
    if (!program.ok()) return Fail(v1::COMPILE_DEVICE_ERROR, program.status());
    checked_.program = *std::move(program);
    KILN_RETURN_IF_ERROR(RunOnNewInputs());
    shortest_s = std::min(shortest_s, fresh_s_);
    longest_s = (clock_.MonotonicSeconds() - begin_s) / i;
  }
  fresh_s_ = shortest_s;
  return OkStatus();
}

// The program finds its own answer for the same inputs, and one element of it poisoned. A program
// that looks for poison looks at the first element, if it looks at one.
Status TrialPhases::RunOnOwnAnswer() {
  if (CostSeconds() > kShortProgramS || ArgumentBytes(checked_.args) > kFewBytes) {
    return OkStatus();
  }
  Status run;
  for (Buffer* output : checked_.outputs) {
    const Argument& argument = output->argument();
    const int64_t elements = argument.bytes / DTypeBytes(argument.dtype);
    if (elements == 0) continue;
    std::uniform_int_distribution<int64_t> any(std::min<int64_t>(1, elements - 1), elements - 1);
    run.Update(device_.PoisonElement(*output, Poison::kStale, any(random_)));
  }
  if (run.ok()) run = device_.RunChecked(*checked_.program, checked_.args).status();
  times_.set_last_run_s(times_.last_run_s() + watch_.Lap());
  if (!run.ok()) return Fail(v1::RUNTIME_DEVICE_ERROR, run);
  return Check(
      "right on poisoned outputs, wrong in the last run, which found its own answer with single "
      "elements poisoned",
      Poison::kStale);
}

CallTime CallTimeOf(const CheckedTime& run) { return {run.outside_s, run.computed_s}; }

// The program meets the same content again, written like a new one.
StatusOr<CallTime> TrialPhases::RepeatedCall() {
  KILN_RETURN_IF_ERROR(device_.Rewrite());
  KILN_ASSIGN_OR_RETURN(const CheckedTime repeated,
                        device_.RunChecked(*checked_.program, checked_.args));
  return CallTimeOf(repeated);
}

// A new process has met nothing. Its call on the other inputs follows calls on the first inputs, as
// in the process before it, and is checked, so that it must compute.
StatusOr<CallPair> TrialPhases::PairInNewProcess(OtherInputs& other) {
  checked_.program.reset();
  KILN_RETURN_IF_ERROR(other.Hide());
  KILN_ASSIGN_OR_RETURN(checked_.program, device_.LoadFor(trial_.artifact(), checked_.args));
  KILN_RETURN_IF_ERROR(RunOnce(device_, checked_, Poison::kNaN).status());
  for (int i = 1; i < kWarmCalls && HasTimeFor(last_run_.outside_s); ++i) {
    KILN_RETURN_IF_ERROR(device_.RunChecked(*checked_.program, checked_.args).status());
  }
  KILN_RETURN_IF_ERROR(other.Show());
  KILN_ASSIGN_OR_RETURN(const CheckedTime fresh, RunOnce(device_, checked_, Poison::kStale));
  times_.set_last_run_s(times_.last_run_s() + watch_.Lap());
  KILN_RETURN_IF_ERROR(Check(kWrongOnOtherInputs, Poison::kStale));
  KILN_ASSIGN_OR_RETURN(const CallTime repeated, RepeatedCall());
  return CallPair{CallTimeOf(fresh), repeated};
}

Status TrialPhases::AddPair(const CallPair& pair, KeptAnswers& kept) {
  kept.Add(pair);
  for (int i = 0; i < kMoreRepeatedCalls; ++i) {
    if (kept.keeping() != Keeping::kUndecided || !kept.RepeatedAreLong()) break;
    if (!HasTimeFor(pair.repeated.wall_s)) break;
    KILN_ASSIGN_OR_RETURN(const CallTime repeated, RepeatedCall());
    kept.AddRepeated(repeated);
  }
  return OkStatus();
}

Status TrialPhases::AddPairs(OtherInputs& other, bool is_fresh, KeptAnswers& kept) {
  if (is_fresh) {
    KILN_ASSIGN_OR_RETURN(const CallTime repeated, RepeatedCall());
    KILN_RETURN_IF_ERROR(AddPair({CallTimeOf(last_run_), repeated}, kept));
  }
  const double start_s = clock_.MonotonicSeconds();
  // A new process takes at least as long as that of the trial took.
  double longest_s = times_.load_s() + times_.first_run_s() + last_run_.outside_s;
  while (kept.keeping() == Keeping::kUndecided && kept.pairs() < kMostPairs) {
    const double begin_s = clock_.MonotonicSeconds();
    // Even a pair that takes three times as long as the others must end within the trial's time.
    if (begin_s - start_s > kMostPairingS || !HasTimeFor(longest_s)) break;
    KILN_ASSIGN_OR_RETURN(const CallPair pair, PairInNewProcess(other));
    KILN_RETURN_IF_ERROR(AddPair(pair, kept));
    longest_s = std::max(longest_s, clock_.MonotonicSeconds() - begin_s);
  }
  return OkStatus();
}

bool TrialPhases::HasTimeFor(double seconds) const {
  const double limit_s = 1e-3 * (trial_.options().timeout_ms() + trial_.options().cooldown_ms());
  const double left_s = limit_s - (clock_.MonotonicSeconds() - start_s_);
  return left_s > 3 * seconds + std::max(0.2, 0.1 * limit_s);
}

Status TrialPhases::RefuseKeptAnswers(OtherInputs& other, bool is_fresh) {
  const double cost_s = CostSeconds();
  if (IsLikeCall(last_run_.outside_s, cost_s)) return OkStatus();
  KeptAnswers kept(cost_s);
  const Status added = AddPairs(other, is_fresh, kept);
  times_.set_last_run_s(times_.last_run_s() + watch_.Lap());
  if (result_.error() != v1::NO_ERROR) return added;
  if (!added.ok()) return Fail(v1::RUNTIME_DEVICE_ERROR, added);
  if (kept.keeping() == Keeping::kComputes) return OkStatus();
  if (kept.keeping() == Keeping::kKeeps) {
    return Fail(v1::WRONG_ANSWER_ERROR,
                InvalidArgument(
                    "the program keeps answers: a call takes at least {} on inputs that it has "
                    "not met, and {} on inputs that it has; a program must compute in each call",
                    FormatSeconds(kept.shortest().fresh.wall_s),
                    FormatSeconds(std::min(cost_s, kept.shortest().repeated.wall_s))));
  }
  // The machine was too busy to tell, or the time was too short.
  if ((is_fresh || kept.fitting_pairs() > 0) && kept.MayCompute()) return OkStatus();
  fresh_counts_ = true;
  fresh_s_ = kept.pairs() > 0 ? kept.shortest().fresh.wall_s : last_run_.outside_s;
  return OkStatus();
}

// Returns the shortest of a few calls, each on inputs that the call before did not have. One of the
// calls took fresh_s. No more calls are made than needed to show that the program also computed
// when it was timed.
StatusOr<double> TrialPhases::FreshSeconds(OtherInputs& other, double fresh_s) {
  for (int i = 1; i < kFreshCalls && IsKept(fresh_s); ++i) {
    KILN_RETURN_IF_ERROR(i % 2 == 1 ? other.Hide() : other.Show());
    KILN_ASSIGN_OR_RETURN(const CheckedTime call, RunOnce(device_, checked_, Poison::kStale));
    fresh_s = std::min(fresh_s, call.own_s);
  }
  return fresh_s;
}

// Sets the costs of a program that passed all checks.
void TrialPhases::Conclude() {
  if (fresh_counts_ || IsKept(fresh_s_)) {
    SetStoppedEarly(fresh_s_);
    result_.set_message(fmt::format(
        "a call on new inputs takes {}, calls on inputs that it has seen {}: the former counts",
        FormatSeconds(fresh_s_), FormatSeconds(CostSeconds())));
    return;
  }
  result_.mutable_costs_s()->Assign(timing_.costs_s.begin(), timing_.costs_s.end());
  result_.set_stopped_early(timing_.stopped_early);
  result_.set_message(device::PrintNoiseMark(timing_.spread));
}

}  // namespace

v1::TrialResult RunTrial(const Bench& bench, const wire::TrialRun& trial, UniqueFd outputs,
                         const std::function<bool()>& is_wanted, const OnPhase& on_phase) {
  v1::TrialResult result;
  result.set_measured_as(MeasuredAs(trial.artifact().device(), trial.options()));
  bench.device.LaunchSingly(trial.options().single_launches());
  const double start_s = Clock::Real().MonotonicSeconds();
  const Status status =
      TrialPhases(bench, trial, is_wanted, on_phase, result).Run(std::move(outputs));
  v1::TrialTimes& times = *result.mutable_times();
  const double named_s = times.load_s() + times.prepare_s() + times.first_run_s() +
                         times.check_s() + times.timing_s() + times.last_run_s();
  // The rest of the time of a trial that went through all phases is their end.
  if (status.ok()) times.set_release_s(Clock::Real().MonotonicSeconds() - start_s - named_s);
  KILN_CHECK(status.ok() == (result.error() == v1::NO_ERROR), "{}", Message(status));
  return result;
}

}  // namespace kiln::runner
