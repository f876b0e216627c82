#include "runner/workbench.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "base/errno_status.h"
#include "base/fd.h"
#include "base/units.h"
#include "base/utf8.h"
#include "device/noise_mark.h"
#include "proto/job_defaults.h"
#include "runner/known_elements.h"
#include "runner/output_sample.h"
#include "runner/private_bytes.h"
#include "runner/timing.h"
#include "runner/unchecked.h"

namespace kiln::runner {
namespace {

// References that take longer than this are not run twice on the same inputs, because their cost
// needs no better reading.
constexpr double kLongReferenceS = 0.05;
// Part of the trial's time limit that is reserved for the second check, in units of the first run.
constexpr double kRecheckRuns = 2;
// Programs that take this long are not run a third time. They are timed on the other inputs, and
// the outputs of the timed calls are checked.
constexpr double kLongProgramS = 0.1;
// From this time on, one run may be enough.
constexpr double kSlowProgramS = 1;
// Multiple of the best cost. Programs that are slower are not worth a long reading: a short one is
// right to a few percent, which is enough to learn from.
constexpr double kClearlySlower = 1.25;
// Time that another run may take, in units of the first run.
constexpr double kSlowerRun = 1.2;
// Copies of the outputs beside the arguments. A check needs the expected outputs for both contents
// of the inputs; in the memory of the host also those of the program's own process. A reference on
// a host needs the kept outputs for both contents, the copies on the way there and to compare with,
// and those of its own process.
constexpr int kCopiesToCheck = 2, kHostCopiesToCheck = 3, kHostCopiesOfReference = 5;
// Ratio and slack for the time of calls on inputs that the program has not seen, compared with the
// timed calls.
constexpr double kFreshRatio = 8;
constexpr double kFreshSlackS = 100e-6;
// The shortest of these calls counts.
constexpr int kFreshCalls = 3;
// Outputs of fewer elements may be equal for two inputs by chance.
constexpr int64_t kFewestEqual = 8;
// Memory for other needs of devices.
constexpr int64_t kSpareBytes = int64_t{64} << 20;
// Limits the readings, which are kept in the reply.
constexpr uint32_t kMaxRepeat = 100000;

TimingOptions TimingFrom(const v1::MeasureOptions& options) {
  TimingOptions timing;
  timing.number = options.number();
  timing.repeat = static_cast<int>(options.repeat());
  timing.min_repeat_s = 1e-3 * options.min_repeat_ms();
  timing.cooldown_s = 1e-3 * options.cooldown_ms();
  timing.flush_cache = options.flush_cache();
  timing.early_stop_s = HopelessSeconds(options);
  if (timing.early_stop_s) timing.clearly_slower_s = kClearlySlower * options.best_cost_s();
  timing.idle_s = 1e-3 * options.idle_ms();
  return timing;
}

// A memory file that is mapped.
class MappedFile {
 public:
  // Maps the outputs of a reference. They have two halves, one for each content of its inputs.
  static StatusOr<MappedFile> Map(const UniqueFd& fd, int64_t half_bytes) {
    const int64_t expected_bytes = 2 * half_bytes;
    if (!fd.valid()) return Internal("the reference outputs did not come with the request");
    struct stat info{};
    if (fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "cannot read the reference outputs");
    const off_t bytes = info.st_size;
    if (bytes != expected_bytes) {
      return Internal("the reference outputs have {} bytes, expected {}", bytes, expected_bytes);
    }
    void* mapping = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (mapping == MAP_FAILED) return ErrnoStatus(errno, "cannot map the reference outputs");
    return MappedFile({static_cast<const std::byte*>(mapping), static_cast<size_t>(bytes)});
  }
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile() {
    if (bytes_.data() != nullptr) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
  std::span<const std::byte> half(Content content) const {
    const size_t bytes = bytes_.size() / 2;
    return bytes_.subspan(content == Content::kTimed ? 0 : bytes, bytes);
  }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

Status WriteAll(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, "cannot keep the reference outputs");
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return OkStatus();
}

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

// Returns whether the checked run of a long program is enough: the program is far slower, or its
// time limit leaves no time for another run.
bool IsEnough(const v1::MeasureOptions& options, double first_s, double used_s) {
  if (first_s < kSlowProgramS) return false;
  const std::optional<double> early_stop_s = HopelessSeconds(options);
  const bool stops_early = early_stop_s.has_value() && first_s > *early_stop_s;
  return stops_early || used_s + kSlowerRun * first_s > 1e-3 * options.timeout_ms();
}

// Returns whether calls on new inputs take so much longer than the readings that the program did
// not compute in the timed calls. A program computes anew for inputs that it has not seen; caches
// and a wait for a core explain smaller differences.
bool IsKept(double fresh_s, double cost_s) { return fresh_s > kFreshRatio * cost_s + kFreshSlackS; }

// Sets the failure as the trial's result, and returns it as the status that ends the trial's
// phases.
Status Fail(v1::ErrorKind kind, const Status& cause, v1::TrialResult& result) {
  result.set_error(kind);
  result.set_message(ValidUtf8(Message(cause)));
  return cause;
}

}  // namespace

std::optional<double> HopelessSeconds(const v1::MeasureOptions& options) {
  const double limit_s = options.early_stop_ratio() * options.best_cost_s();
  return limit_s > 0 ? std::optional(limit_s) : std::nullopt;
}

v1::MeasureOptions WithDefaults(v1::MeasureOptions options) {
  if (options.number() == 0) options.set_number(kDefaultNumber);
  options.set_repeat(std::clamp(options.repeat(), kDefaultRepeat, kMaxRepeat));
  if (options.timeout_ms() == 0) options.set_timeout_ms(kDefaultRunTimeoutMs);
  return options;
}

// An input, and the buffer that the program is given for it.
struct Workbench::Input {
  Argument argument;
  int ordinal = 0;
  uint64_t seed = 0;
  std::shared_ptr<CachedBuffer> buffer = nullptr;
  // Buffer of the other content; null: there is no memory for it until it is wanted.
  std::shared_ptr<CachedBuffer> other = nullptr;
  // Checksum of the content that the program finds in the buffer.
  uint64_t shown = 0;

  std::string Key(Content content) const { return ContentKey(argument, ordinal, seed, content); }
};

// The arguments of one program.
struct Workbench::Job {
  // In the order of the plan.
  std::vector<Buffer*> args;
  // Outputs and workspaces.
  std::vector<std::unique_ptr<Buffer>> owned;
  struct Kept {
    // Key in the cache.
    std::string key;
    std::shared_ptr<CachedBuffer> buffer;
  };
  std::vector<Input> inputs;
  std::vector<Buffer*> outputs;
  // The reference's values for each output.
  std::vector<Kept> wanted;
  // The same for the other content of the inputs.
  std::vector<Kept> other_wanted;
  // Used instead if the reference has samples of the outputs only.
  std::vector<SampledOutput> samples;
  // Expected elements of the samples.
  std::vector<PrivateBytes> sampled;
  std::vector<PrivateBytes> other_sampled;
  // The last member, so that the program is unloaded before its arguments go.
  std::unique_ptr<Program> program;
};

// If the device is the host, one thread makes the bytes, because the host's CPUs are what is timed.
UnsetBytes Workbench::BytesOf(const Input& input, Content content) const {
  const int threads = device_.is_host() ? 1 : 0;
  return InputBytes(input.argument, input.ordinal, input.seed, content, threads);
}

StatusOr<std::shared_ptr<CachedBuffer>> Workbench::InputBuffer(const Input& input,
                                                               Content content) {
  const std::string key = input.Key(content);
  if (auto cached = cache_.Find(key)) return cached;
  auto cached = std::make_shared<CachedBuffer>();
  KILN_ASSIGN_OR_RETURN(cached->buffer, device_.Allocate(input.argument));
  KILN_RETURN_IF_ERROR(device_.Fill(*cached->buffer, BytesOf(input, content)));
  KILN_ASSIGN_OR_RETURN(cached->checksum, device_.Checksum(*cached->buffer));
  cache_.Insert(key, cached);
  return cached;
}

// Lets the program find the other content in its inputs, from Show until Hide.
class Workbench::OtherInputs {
 public:
  OtherInputs(Workbench& bench, Job& job) : bench_(bench), job_(job) {}
  OtherInputs(const OtherInputs&) = delete;
  OtherInputs& operator=(const OtherInputs&) = delete;
  // Other programs use the buffers in the next trial.
  ~OtherInputs() {
    // The program's own process is gone, so nobody looks at its inputs.
    job_.program.reset();
    if (Hide().ok() && !is_mixed_) return;
    for (const Input& input : job_.inputs) {
      bench_.cache_.Erase(input.Key(Content::kTimed));
      bench_.cache_.Erase(input.Key(Content::kOther));
    }
  }

  Status Show() { return Note(ShowAll()); }
  Status Hide() { return Note(HideAll()); }

 private:
  // After a failure it is unknown which content the buffers have.
  Status Note(Status status) {
    if (!status.ok()) is_mixed_ = true;
    return status;
  }

  Status ShowAll() {
    for (Input& input : job_.inputs) {
      StatusOr<std::shared_ptr<CachedBuffer>> other = input.other;
      if (input.other == nullptr) other = bench_.InputBuffer(input, Content::kOther);
      // If there is no memory for a second copy, the only copy gets the other values.
      if (other.status().code() == StatusCode::kResourceExhausted && !bench_.device_.is_host()) {
        KILN_RETURN_IF_ERROR(FillInPlace(input));
        continue;
      }
      KILN_RETURN_IF_ERROR(other.status());
      KILN_RETURN_IF_ERROR(bench_.device_.Substitute(*input.buffer->buffer, *(*other)->buffer));
      input.shown = (*other)->checksum;
      shown_.emplace_back(&input, *std::move(other));
    }
    return OkStatus();
  }

  Status HideAll() {
    for (Input* const input : std::exchange(filled_, {})) {
      KILN_RETURN_IF_ERROR(
          bench_.device_.Fill(*input->buffer->buffer, bench_.BytesOf(*input, Content::kTimed)));
      input->shown = input->buffer->checksum;
    }
    for (auto& [input, other] : std::exchange(shown_, {})) {
      KILN_RETURN_IF_ERROR(bench_.device_.Restore(*input->buffer->buffer, *other->buffer));
      input->shown = input->buffer->checksum;
    }
    return OkStatus();
  }

  Status FillInPlace(Input& input) {
    filled_.push_back(&input);
    KILN_RETURN_IF_ERROR(
        bench_.device_.Fill(*input.buffer->buffer, bench_.BytesOf(input, Content::kOther)));
    KILN_ASSIGN_OR_RETURN(input.shown, bench_.device_.Checksum(*input.buffer->buffer));
    return OkStatus();
  }

  Workbench& bench_;
  Job& job_;
  std::vector<std::pair<Input*, std::shared_ptr<CachedBuffer>>> shown_;
  std::vector<Input*> filled_;
  bool is_mixed_ = false;
};

Status Workbench::Prepare(Job& job, const std::vector<Argument>& arguments, uint64_t seed,
                          int copies) {
  int64_t argument_bytes = 0, output_bytes = 0, largest_input_bytes = 0;
  for (const Argument& argument : arguments) {
    argument_bytes += argument.bytes;
    if (argument.role == v1::ArgSpec::INPUT) {
      largest_input_bytes = std::max(largest_input_bytes, argument.plain_bytes());
    }
    if (argument.role == v1::ArgSpec::OUTPUT) output_bytes += argument.bytes;
  }
  // If a host cannot keep the other content of the inputs, it is made for one input at a time.
  const int64_t other_bytes = device_.is_host() ? largest_input_bytes : 0;
  const int64_t needed_bytes = argument_bytes + copies * output_bytes + other_bytes;
  const int64_t available_bytes = device_.FreeMemoryBytes() + cache_.bytes();
  if (needed_bytes > available_bytes) {
    return ResourceExhausted(
        "the arguments need {} of memory, with {} more of the outputs to compare {}; the device "
        "has {} free",
        FormatBytes(argument_bytes), copies == 1 ? "one copy" : fmt::format("{} copies", copies),
        FormatBytes(needed_bytes), FormatBytes(available_bytes));
  }
  // Contents that are made now take no time of the program.
  int64_t spare_bytes = available_bytes - needed_bytes - kSpareBytes;
  for (const Argument& argument : arguments) {
    if (argument.role == v1::ArgSpec::INPUT) {
      Input input{
          .argument = argument, .ordinal = static_cast<int>(job.inputs.size()), .seed = seed};
      KILN_ASSIGN_OR_RETURN(input.buffer, InputBuffer(input, Content::kTimed));
      input.shown = input.buffer->checksum;
      if (argument.bytes <= spare_bytes) {
        KILN_ASSIGN_OR_RETURN(input.other, InputBuffer(input, Content::kOther));
        spare_bytes -= argument.bytes;
      }
      job.args.push_back(input.buffer->buffer.get());
      job.inputs.push_back(std::move(input));
      continue;
    }
    KILN_ASSIGN_OR_RETURN(auto buffer, device_.Allocate(argument));
    job.args.push_back(buffer.get());
    if (argument.role == v1::ArgSpec::OUTPUT) job.outputs.push_back(buffer.get());
    job.owned.push_back(std::move(buffer));
  }
  return OkStatus();
}

Status Workbench::LoadSampled(Job& job, const UniqueFd& outputs) {
  int64_t total_bytes = 0;
  for (const SampledOutput& sample : job.samples) total_bytes += sample.argument.bytes;
  KILN_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Map(outputs, total_bytes));
  size_t offset = 0;
  for (const SampledOutput& sample : job.samples) {
    const auto bytes = static_cast<size_t>(sample.argument.bytes);
    const auto timed = file.half(Content::kTimed).subspan(offset, bytes);
    const auto other = file.half(Content::kOther).subspan(offset, bytes);
    job.sampled.emplace_back(timed.begin(), timed.end());
    job.other_sampled.emplace_back(other.begin(), other.end());
    offset += bytes;
  }
  return OkStatus();
}

Status Workbench::LoadWanted(Job& job, const wire::TrialRun& trial, const UniqueFd& outputs) {
  if (!job.samples.empty()) return LoadSampled(job, outputs);
  KILN_RETURN_IF_ERROR(LoadWhole(job, trial, outputs, Content::kTimed));
  return LoadWhole(job, trial, outputs, Content::kOther);
}

Status Workbench::LoadWhole(Job& job, const wire::TrialRun& trial, const UniqueFd& outputs,
                            Content content) {
  std::vector<Job::Kept>& all = content == Content::kTimed ? job.wanted : job.other_wanted;
  bool complete = true;
  int64_t total_bytes = 0;
  for (size_t i = 0; i < job.outputs.size(); ++i) {
    total_bytes += job.outputs[i]->argument().bytes;
    const std::string key = fmt::format("{}:{}{}", trial.reference_key(), i,
                                        content == Content::kTimed ? "" : " other");
    all.push_back({key, cache_.Find(key)});
    complete &= all.back().buffer != nullptr;
  }
  if (complete) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Map(outputs, total_bytes));
  size_t offset = 0;
  for (size_t i = 0; i < job.outputs.size(); ++i) {
    Argument argument = job.outputs[i]->argument();
    const size_t bytes = static_cast<size_t>(argument.bytes);
    if (all[i].buffer == nullptr) {
      argument.name += " (reference)";
      auto wanted = std::make_shared<CachedBuffer>();
      KILN_ASSIGN_OR_RETURN(wanted->buffer, device_.Allocate(argument));
      KILN_RETURN_IF_ERROR(
          device_.Fill(*wanted->buffer, file.half(content).subspan(offset, bytes)));
      KILN_ASSIGN_OR_RETURN(wanted->checksum, device_.Checksum(*wanted->buffer));
      cache_.Insert(all[i].key, wanted);
      all[i].buffer = std::move(wanted);
    }
    offset += bytes;
  }
  return OkStatus();
}

Status Workbench::PoisonAll(Job& job, Poison poison) {
  for (auto& buffer : job.owned) KILN_RETURN_IF_ERROR(device_.Poison(*buffer, poison));
  return OkStatus();
}

// Runs on poisoned outputs. Returns the seconds that the run took.
StatusOr<double> Workbench::CheckedRun(Job& job, Poison poison) {
  KILN_RETURN_IF_ERROR(PoisonAll(job, poison));
  return device_.Time(*job.program, job.args, 1);
}

// Inspects the guards, the reference's outputs, the inputs and the program's outputs in one call
// of the device.
StatusOr<Findings> Workbench::Inspect(const Job& job, const v1::Tolerance& tolerance) {
  Inspection inspection;
  inspection.tolerance = tolerance;
  inspection.guards.assign(job.args.begin(), job.args.end());
  for (const auto& wanted : job.wanted) inspection.sums.push_back(wanted.buffer->buffer.get());
  for (const auto& input : job.inputs) inspection.sums.push_back(input.buffer->buffer.get());
  for (size_t i = 0; i < job.wanted.size(); ++i) {
    inspection.pairs.push_back({job.outputs[i], job.wanted[i].buffer->buffer.get()});
  }
  return device_.Inspect(inspection);
}

Status Workbench::CheckMemory(const Job& job, const Findings& findings) {
  for (const Status& guard : findings.guards) KILN_RETURN_IF_ERROR(guard);
  for (size_t i = 0; i < job.wanted.size(); ++i) {
    if (findings.sums[i] == job.wanted[i].buffer->checksum) continue;
    cache_.Erase(job.wanted[i].key);
    return Internal("write outside of all arguments, into the reference outputs");
  }
  return OkStatus();
}

Status Workbench::CheckOutputs(const Job& job, const Findings& findings, double& max_error) {
  for (size_t i = 0; i < job.inputs.size(); ++i) {
    const auto& input = job.inputs[i];
    if (findings.sums[job.wanted.size() + i] == input.shown) continue;
    // The next trial fills the buffer anew.
    cache_.Erase(input.Key(Content::kTimed));
    cache_.Erase(input.Key(Content::kOther));
    return InvalidArgument("the program modified its input {}",
                           input.buffer->buffer->argument().name);
  }
  for (const Comparison& comparison : findings.comparisons) {
    max_error = std::max(max_error, comparison.max_error);
    if (comparison.different > 0) return InvalidArgument("{}", comparison.message);
  }
  return OkStatus();
}

// Checks that all outputs were written, and that the elements of the samples are right.
Status Workbench::CheckSamples(const Job& job, const v1::Tolerance& tolerance, Poison poison,
                               double& max_error) {
  for (size_t k = 0; k < job.outputs.size(); ++k) {
    const Argument& output = job.outputs[k]->argument();
    KILN_ASSIGN_OR_RETURN(const PrivateBytes bytes, device_.Fetch(*job.outputs[k]));
    const int64_t unwritten = CountUnwritten(output, bytes, poison);
    if (unwritten > 0) {
      return InvalidArgument("output {}: {} of {} elements were not written", output.name,
                             unwritten, output.elements);
    }
    for (size_t i = 0; i < job.samples.size(); ++i) {
      const SampledOutput& sample = job.samples[i];
      if (sample.output != static_cast<int>(k)) continue;
      const Comparison comparison = runner::Compare(sample.argument, Gather(sample, output, bytes),
                                                    job.sampled[i], tolerance);
      max_error = std::max(max_error, comparison.max_error);
      if (comparison.different > 0) return InvalidArgument("{}", comparison.message);
    }
  }
  return OkStatus();
}

Status Workbench::RunPhases(const wire::TrialRun& trial, UniqueFd outputs, const OnPhase& on_phase,
                            v1::TrialResult& result) {
  v1::TrialTimes& times = *result.mutable_times();
  Stopwatch watch;
  const auto fail = [&](v1::ErrorKind kind, const Status& cause) {
    return Fail(kind, cause, result);
  };
  on_phase(wire::PREPARING);
  auto arguments = ParseArguments(trial.artifact().plan());
  if (!arguments.ok()) return fail(v1::COMPILE_DEVICE_ERROR, arguments.status());
  auto expected = ParseArguments(trial.reference_plan());
  if (!expected.ok()) return fail(v1::UNKNOWN_ERROR, expected.status());
  Job job;
  Status status = OkStatus();
  if (trial.samples().empty()) {
    status = CheckSameInterface(*arguments, *expected);
  } else {
    auto samples = ParseSamples(trial.samples(), *arguments, *expected);
    status = samples.status();
    if (samples.ok()) job.samples = *std::move(samples);
  }
  if (!status.ok()) return fail(v1::WRONG_ANSWER_ERROR, status);
  result.set_sampled_outputs(static_cast<uint64_t>(ElementsOf(job.samples)));
  status = Prepare(job, *arguments, trial.seed(),
                   device_.is_host() ? kHostCopiesToCheck : kCopiesToCheck);
  if (!status.ok()) return fail(v1::RUNTIME_DEVICE_ERROR, status);
  status = LoadWanted(job, trial, outputs);
  outputs.Reset();
  if (!status.ok()) return fail(v1::UNKNOWN_ERROR, status);
  if (trial.options().flush_cache()) device_.ExpectFlushes();
  times.set_prepare_s(watch.Lap());

  on_phase(wire::LOADING);
  auto program = device_.LoadFor(trial.artifact(), job.args);
  if (!program.ok()) return fail(v1::COMPILE_DEVICE_ERROR, program.status());
  job.program = *std::move(program);
  times.set_load_s(watch.Lap());

  double max_error = 0;
  const auto check = [&](std::string_view when, Poison poison) {
    const auto findings = Inspect(job, trial.tolerance());
    if (!findings.ok()) return fail(v1::RUNTIME_DEVICE_ERROR, findings.status());
    // Stray writes are reported before wrong answers, which they may have caused.
    const Status memory = CheckMemory(job, *findings);
    if (!memory.ok()) return fail(v1::RUNTIME_DEVICE_ERROR, memory);
    Status outputs = CheckOutputs(job, *findings, max_error);
    if (outputs.ok() && !job.samples.empty()) {
      outputs = CheckSamples(job, trial.tolerance(), poison, max_error);
    }
    result.set_max_error(std::min(max_error, std::numeric_limits<double>::max()));
    times.set_check_s(times.check_s() + watch.Lap());
    if (outputs.ok()) return OkStatus();
    return fail(v1::WRONG_ANSWER_ERROR, when.empty() ? outputs : Annotate(outputs, when));
  };

  on_phase(wire::RUNNING);
  Clock& clock = Clock::Real();
  const double start_s = clock.MonotonicSeconds();
  auto first_s = CheckedRun(job, Poison::kNaN);
  times.set_first_run_s(watch.Lap());
  if (!first_s.ok()) return fail(v1::RUNTIME_DEVICE_ERROR, first_s.status());
  KILN_RETURN_IF_ERROR(check("", Poison::kNaN));
  const double used_s = clock.MonotonicSeconds() - start_s;
  if (IsEnough(trial.options(), *first_s, used_s)) {
    result.add_costs_s(*first_s);
    result.set_stopped_early(true);
    return OkStatus();
  }

  on_phase(wire::TIMING);
  OtherInputs other(*this, job);
  const auto show_other = [&]() -> Status {
    const Status shown = other.Show();
    if (!shown.ok()) return fail(v1::RUNTIME_DEVICE_ERROR, shown);
    std::swap(job.wanted, job.other_wanted);
    std::swap(job.sampled, job.other_sampled);
    return OkStatus();
  };
  // The timed calls of a long program are its second run.
  const bool again = *first_s < kLongProgramS;
  if (!again) {
    KILN_RETURN_IF_ERROR(show_other());
    const Status poisoned = PoisonAll(job, Poison::kStale);
    if (!poisoned.ok()) return fail(v1::RUNTIME_DEVICE_ERROR, poisoned);
  }
  TimingDevice timing_device;
  timing_device.time_batch = [&](int64_t number) {
    auto batch_s = device_.Time(*job.program, job.args, number);
    if (batch_s.ok()) times.set_timed_runs_s(times.timed_runs_s() + *batch_s);
    return batch_s;
  };
  timing_device.flush_cache = [&] { device_.FlushCaches(); };
  timing_device.sleep = [&](double seconds) { clock.SleepFor(absl::Seconds(seconds)); };
  timing_device.now_s = [&] { return clock.MonotonicSeconds(); };
  timing_device.calls_per_reading = [&](int64_t wanted, double call_s) {
    return device_.CallsPerReading(wanted, call_s);
  };
  timing_device.is_wanted = is_wanted_;
  TimingOptions options = TimingFrom(trial.options());
  options.earlier_call_s = *first_s;
  const double last_s = again ? kRecheckRuns * *first_s : 0;
  options.budget_s = std::max(1e-3, 1e-3 * trial.options().timeout_ms() - used_s - last_s);
  auto timing = TimeProgram(options, timing_device);
  times.set_timing_s(watch.Lap());
  if (!timing.ok()) return fail(v1::RUNTIME_DEVICE_ERROR, timing.status());

  on_phase(wire::RECHECKING);
  double fresh_s = *first_s;
  if (again) {
    KILN_RETURN_IF_ERROR(show_other());
    const auto second_s = CheckedRun(job, Poison::kStale);
    times.set_last_run_s(watch.Lap());
    if (!second_s.ok()) return fail(v1::RUNTIME_DEVICE_ERROR, second_s.status());
    fresh_s = *second_s;
  }
  KILN_RETURN_IF_ERROR(check(
      "right in the first run, wrong in the last one, which had other inputs", Poison::kStale));
  const double cost_s = *std::ranges::min_element(timing->costs_s);
  if (again && IsKept(fresh_s, cost_s)) {
    const auto shortest_s = FreshSeconds(job, other, fresh_s, cost_s);
    times.set_last_run_s(times.last_run_s() + watch.Lap());
    if (!shortest_s.ok()) return fail(v1::RUNTIME_DEVICE_ERROR, shortest_s.status());
    fresh_s = *shortest_s;
  }
  if (IsKept(fresh_s, cost_s)) {
    result.add_costs_s(fresh_s);
    result.set_stopped_early(true);
    result.set_message(fmt::format(
        "a call on new inputs takes {}, calls on inputs that it has seen {}: the former counts",
        FormatSeconds(fresh_s), FormatSeconds(cost_s)));
    return OkStatus();
  }
  result.mutable_costs_s()->Assign(timing->costs_s.begin(), timing->costs_s.end());
  result.set_stopped_early(timing->stopped_early);
  result.set_message(device::PrintNoiseMark(timing->spread));
  return OkStatus();
}

// Returns the shortest of a few calls, each on inputs that the call before did not have. One of the
// calls took fresh_s. No more calls are made than needed to show that the program also computed
// when it was timed.
StatusOr<double> Workbench::FreshSeconds(Job& job, OtherInputs& other, double fresh_s,
                                         double cost_s) {
  for (int i = 1; i < kFreshCalls && IsKept(fresh_s, cost_s); ++i) {
    KILN_RETURN_IF_ERROR(i % 2 == 1 ? other.Hide() : other.Show());
    KILN_ASSIGN_OR_RETURN(const double call_s, CheckedRun(job, Poison::kStale));
    fresh_s = std::min(fresh_s, call_s);
  }
  return fresh_s;
}

v1::TrialResult Workbench::RunTrial(const wire::TrialRun& trial, UniqueFd outputs,
                                    const OnPhase& on_phase) {
  v1::TrialResult result;
  const double start_s = Clock::Real().MonotonicSeconds();
  const Status status = RunPhases(trial, std::move(outputs), on_phase, result);
  v1::TrialTimes& times = *result.mutable_times();
  const double named_s = times.load_s() + times.prepare_s() + times.first_run_s() +
                         times.check_s() + times.timing_s() + times.last_run_s();
  // The rest of the time of a trial that went through all phases is their end.
  if (status.ok()) times.set_release_s(Clock::Real().MonotonicSeconds() - start_s - named_s);
  KILN_CHECK(status.ok() == (result.error() == v1::NO_ERROR), "{}", Message(status));
  return result;
}

StatusOr<Workbench::ReferenceResult> Workbench::RunReference(const wire::ReferenceRun& reference,
                                                             const UniqueFd& outputs,
                                                             const OnPhase& on_phase) {
  if (!outputs.valid()) return Internal("no file for the reference outputs came with the request");
  ReferenceResult result;
  on_phase(wire::PREPARING);
  KILN_ASSIGN_OR_RETURN(auto arguments, ParseArguments(reference.artifact().plan()));
  Job job;
  KILN_RETURN_IF_ERROR(Prepare(job, arguments, reference.seed(),
                               device_.is_host() ? kHostCopiesOfReference : kCopiesToCheck));
  on_phase(wire::LOADING);
  KILN_ASSIGN_OR_RETURN(job.program, device_.LoadFor(reference.artifact(), job.args));
  on_phase(wire::RUNNING);
  KILN_ASSIGN_OR_RETURN(double cost_s, CheckedRun(job, Poison::kNaN));
  KILN_ASSIGN_OR_RETURN(Findings findings, Inspect(job, {}));
  KILN_RETURN_IF_ERROR(CheckMemory(job, findings));

  // A child that was lost may have left a part of the outputs.
  if (ftruncate(outputs.get(), 0) != 0 || lseek(outputs.get(), 0, SEEK_SET) != 0) {
    return ErrnoStatus(errno, "cannot keep the reference outputs");
  }
  std::vector<PrivateBytes> first;
  for (Buffer* output : job.outputs) {
    KILN_ASSIGN_OR_RETURN(first.emplace_back(), device_.Fetch(*output));
    KILN_RETURN_IF_ERROR(WriteAll(outputs.get(), first.back()));
    if (result.unchecked.empty()) result.unchecked = WhyUnchecked(output->argument(), first.back());
    // The second run is compared with this copy.
    auto wanted = std::make_shared<CachedBuffer>();
    KILN_ASSIGN_OR_RETURN(wanted->buffer, device_.Allocate(output->argument()));
    KILN_RETURN_IF_ERROR(device_.Fill(*wanted->buffer, first.back()));
    KILN_ASSIGN_OR_RETURN(wanted->checksum, device_.Checksum(*wanted->buffer));
    job.wanted.push_back({"", std::move(wanted)});
  }
  if (!reference.known().empty()) {
    std::vector<KnownOutput> known;
    for (size_t i = 0; i < first.size(); ++i)
      known.push_back({job.outputs[i]->argument(), first[i]});
    KILN_RETURN_IF_ERROR(Annotate(CheckKnown(reference.known(), known, reference.tolerance()),
                                  "it does not compute what was asked for"));
  }
  const bool again = cost_s < kLongReferenceS;
  if (again) {
    on_phase(wire::TIMING);
    KILN_ASSIGN_OR_RETURN(cost_s, CheckedRun(job, Poison::kStale));
  }
  KILN_ASSIGN_OR_RETURN(findings, Inspect(job, {}));
  KILN_RETURN_IF_ERROR(CheckMemory(job, findings));
  // The check also finds modified inputs, so it is done for long references too.
  double max_error = 0;
  KILN_RETURN_IF_ERROR(Annotate(CheckOutputs(job, findings, max_error),
                                again ? "two runs differ" : "checked after its run"));
  job.wanted.clear();
  KILN_RETURN_IF_ERROR(RunOnOtherInputs(job, on_phase, first, outputs, result));
  result.cost_s = cost_s;
  return result;
}

Status Workbench::RunOnOtherInputs(Job& job, const OnPhase& on_phase,
                                   std::span<const PrivateBytes> first, const UniqueFd& outputs,
                                   ReferenceResult& result) {
  OtherInputs other(*this, job);
  KILN_RETURN_IF_ERROR(other.Show());
  // This run has a time limit of its own.
  on_phase(wire::RUNNING);
  KILN_RETURN_IF_ERROR(CheckedRun(job, Poison::kNaN).status());
  KILN_ASSIGN_OR_RETURN(const Findings findings, Inspect(job, {}));
  KILN_RETURN_IF_ERROR(CheckMemory(job, findings));
  double max_error = 0;
  KILN_RETURN_IF_ERROR(
      Annotate(CheckOutputs(job, findings, max_error), "checked after its run on other inputs"));
  bool differs = job.inputs.empty();
  for (size_t i = 0; i < job.outputs.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(const PrivateBytes bytes, device_.Fetch(*job.outputs[i]));
    KILN_RETURN_IF_ERROR(WriteAll(outputs.get(), bytes));
    differs = differs || bytes != first[i] || job.outputs[i]->argument().elements < kFewestEqual;
  }
  if (!differs && result.unchecked.empty()) {
    result.unchecked = "the reference gives the same answer to different inputs";
  }
  return OkStatus();
}

}  // namespace kiln::runner
