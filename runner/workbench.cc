#include "runner/workbench.h"

#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/errno_status.h"
#include "base/fd.h"
#include "base/packing.h"
#include "base/units.h"
#include "base/utf8.h"
#include "runner/output_sample.h"
#include "runner/private_bytes.h"
#include "runner/timing.h"
#include "runner/unchecked.h"

namespace kiln::runner {
namespace {

// Longer references are not run a second time: their cost needs no better reading.
constexpr double kLongReferenceS = 1;
// Kept free of the trial's time limit for the second check, in units of the first run.
constexpr double kRecheckRuns = 2;
// Programs that take so long are not run a third time: what they leave behind when they are timed
// is checked.
constexpr double kLongProgramS = 1;
// As a multiple of the best cost: what is slower is not worth a long reading. A short one is right to
// a few percent, which is enough to learn from.
constexpr double kClearlySlower = 1.25;
constexpr double kSlowerRun = 1.2;  // what another run may take, in units of the first
// Of the outputs on a device: what is compared with; in the memory of the host also that of the
// program's own process; and of a reference what is kept and what is on its way there, too.
constexpr int kCopiesToCheck = 1, kHostCopiesToCheck = 2, kHostCopiesOfReference = 4;
constexpr uint32_t kMaxRepeat = 100000;  // readings are kept in the reply

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

// A memory file, mapped.
class MappedFile {
 public:
  static StatusOr<MappedFile> Map(const UniqueFd& fd, int64_t expected_bytes) {
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
  std::span<const std::byte> bytes() const { return bytes_; }

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

// Wall time from one Lap to the next.
class Stopwatch {
 public:
  double Lap() {
    const double now_s = Clock::Real().MonotonicSeconds();
    return now_s - std::exchange(last_s_, now_s);
  }

 private:
  double last_s_ = Clock::Real().MonotonicSeconds();
};

// Is its checked run all that is wanted of a long program: as it is far slower, or as its time
// limit leaves none for another run?
bool IsEnough(const v1::MeasureOptions& options, double first_s, double used_s) {
  if (first_s < kLongProgramS) return false;
  const std::optional<double> early_stop_s = HopelessSeconds(options);
  const bool stops_early = early_stop_s.has_value() && first_s > *early_stop_s;
  return stops_early || used_s + kSlowerRun * first_s > 1e-3 * options.timeout_ms();
}

// Of the bytes of an input whose elements the key identifies.
std::string CacheKey(const Argument& argument, const std::string& key) {
  if (!argument.packing) return key;
  return fmt::format("{} packed {} as [{}]", key, PackingText(*argument.packing),
                     fmt::join(PackedShape(*argument.packing), ", "));
}

// The failure as the trial's result, and as the status that ends its phases.
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
  if (options.number() == 0) options.set_number(3);
  options.set_repeat(std::clamp<uint32_t>(options.repeat(), 1, kMaxRepeat));
  if (options.timeout_ms() == 0) options.set_timeout_ms(10000);
  return options;
}

// The arguments of one program.
struct Workbench::Job {
  std::vector<Buffer*> args;                   // plan order
  std::vector<std::unique_ptr<Buffer>> owned;  // outputs and workspaces
  struct Kept {
    std::string key;  // in the cache
    std::shared_ptr<CachedBuffer> buffer;
  };
  std::vector<Kept> inputs;
  std::vector<Buffer*> outputs;
  std::vector<Kept> wanted;  // the reference's, for each output
  // Instead, where the reference has samples of the outputs only.
  std::vector<SampledOutput> samples;
  std::vector<PrivateBytes> sampled;  // what they should be
  std::unique_ptr<Program> program;   // last: unloaded before its arguments go
};

StatusOr<std::shared_ptr<CachedBuffer>> Workbench::InputBuffer(const Argument& argument,
                                                               const std::string& key) {
  const std::string name = CacheKey(argument, key);
  if (auto cached = cache_.Find(name)) return cached;
  auto cached = std::make_shared<CachedBuffer>();
  KILN_ASSIGN_OR_RETURN(cached->buffer, device_.Allocate(argument));
  std::vector<std::byte> bytes(static_cast<size_t>(argument.plain_bytes()));
  FillRandom(bytes, argument.dtype, argument.index_limit, key, argument.range);
  if (argument.packing) {
    std::vector<std::byte> packed(static_cast<size_t>(argument.bytes));
    Pack(*argument.packing, DTypeBytes(argument.dtype), bytes, packed);
    bytes = std::move(packed);
  }
  KILN_RETURN_IF_ERROR(device_.Fill(*cached->buffer, bytes));
  KILN_ASSIGN_OR_RETURN(cached->checksum, device_.Checksum(*cached->buffer));
  cache_.Insert(name, cached);
  return cached;
}

Status Workbench::Prepare(Job& job, const std::vector<Argument>& arguments, uint64_t seed,
                          int copies) {
  int64_t argument_bytes = 0, output_bytes = 0;
  for (const Argument& argument : arguments) {
    argument_bytes += argument.bytes;
    if (argument.role == v1::ArgSpec::OUTPUT) output_bytes += argument.bytes;
  }
  const int64_t needed_bytes = argument_bytes + copies * output_bytes;
  const int64_t available_bytes = device_.FreeMemoryBytes() + cache_.bytes();
  if (needed_bytes > available_bytes) {
    return ResourceExhausted(
        "the arguments need {} of memory, with {} more of the outputs to compare {}; the device "
        "has {} free",
        FormatBytes(argument_bytes), copies == 1 ? "one copy" : fmt::format("{} copies", copies),
        FormatBytes(needed_bytes), FormatBytes(available_bytes));
  }
  int inputs = 0;
  for (const Argument& argument : arguments) {
    if (argument.role == v1::ArgSpec::INPUT) {
      const std::string key = InputKey(argument, inputs++, seed);
      KILN_ASSIGN_OR_RETURN(auto cached, InputBuffer(argument, key));
      job.args.push_back(cached->buffer.get());
      job.inputs.push_back({CacheKey(argument, key), std::move(cached)});
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
    const auto part = file.bytes().subspan(offset, bytes);
    job.sampled.emplace_back(part.begin(), part.end());
    offset += bytes;
  }
  return OkStatus();
}

Status Workbench::LoadWanted(Job& job, const wire::TrialRun& trial, const UniqueFd& outputs) {
  if (!job.samples.empty()) return LoadSampled(job, outputs);
  bool complete = true;
  int64_t total_bytes = 0;
  for (size_t i = 0; i < job.outputs.size(); ++i) {
    total_bytes += job.outputs[i]->argument().bytes;
    const std::string key = fmt::format("{}:{}", trial.reference_key(), i);
    job.wanted.push_back({key, cache_.Find(key)});
    complete &= job.wanted.back().buffer != nullptr;
  }
  if (complete) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Map(outputs, total_bytes));
  size_t offset = 0;
  for (size_t i = 0; i < job.outputs.size(); ++i) {
    Argument argument = job.outputs[i]->argument();
    const size_t bytes = static_cast<size_t>(argument.bytes);
    if (job.wanted[i].buffer == nullptr) {
      argument.name += " (reference)";
      auto wanted = std::make_shared<CachedBuffer>();
      KILN_ASSIGN_OR_RETURN(wanted->buffer, device_.Allocate(argument));
      KILN_RETURN_IF_ERROR(device_.Fill(*wanted->buffer, file.bytes().subspan(offset, bytes)));
      KILN_ASSIGN_OR_RETURN(wanted->checksum, device_.Checksum(*wanted->buffer));
      cache_.Insert(job.wanted[i].key, wanted);
      job.wanted[i].buffer = std::move(wanted);
    }
    offset += bytes;
  }
  return OkStatus();
}

Status Workbench::PoisonAll(Job& job, Poison poison) {
  for (auto& buffer : job.owned) KILN_RETURN_IF_ERROR(device_.Poison(*buffer, poison));
  return OkStatus();
}

// Runs on poisoned outputs; returns the seconds it took.
StatusOr<double> Workbench::CheckedRun(Job& job, Poison poison) {
  KILN_RETURN_IF_ERROR(PoisonAll(job, poison));
  return device_.Time(*job.program, job.args, 1);
}

// Asks all that a check is about.
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
    if (findings.sums[job.wanted.size() + i] == input.buffer->checksum) continue;
    cache_.Erase(input.key);  // the next trial fills it anew
    return InvalidArgument("the program modified its input {}",
                           input.buffer->buffer->argument().name);
  }
  for (const Comparison& comparison : findings.comparisons) {
    max_error = std::max(max_error, comparison.max_error);
    if (comparison.different > 0) return InvalidArgument("{}", comparison.message);
  }
  return OkStatus();
}

// All outputs were written, and the elements of the samples are right.
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
    // Stray writes are told before wrong answers, which they may have caused.
    const Status memory = CheckMemory(job, *findings);
    if (!memory.ok()) return fail(v1::RUNTIME_DEVICE_ERROR, memory);
    Status outputs = CheckOutputs(job, *findings, max_error);
    if (outputs.ok() && !job.samples.empty()) {
      outputs = CheckSamples(job, trial.tolerance(), poison, max_error);
    }
    result.set_max_error(max_error);
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
  // The timed calls of a long program are its second run.
  const bool again = *first_s < kLongProgramS;
  if (!again) {
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
  if (again) {
    const auto second_s = CheckedRun(job, Poison::kStale);
    times.set_last_run_s(watch.Lap());
    if (!second_s.ok()) return fail(v1::RUNTIME_DEVICE_ERROR, second_s.status());
  }
  KILN_RETURN_IF_ERROR(check("right in the first run, not after repeated runs", Poison::kStale));
  result.mutable_costs_s()->Assign(timing->costs_s.begin(), timing->costs_s.end());
  result.set_stopped_early(timing->stopped_early);
  return OkStatus();
}

v1::TrialResult Workbench::RunTrial(const wire::TrialRun& trial, UniqueFd outputs,
                                    const OnPhase& on_phase) {
  v1::TrialResult result;
  const double start_s = Clock::Real().MonotonicSeconds();
  const Status status = RunPhases(trial, std::move(outputs), on_phase, result);
  v1::TrialTimes& times = *result.mutable_times();
  const double named_s = times.load_s() + times.prepare_s() + times.first_run_s() +
                         times.check_s() + times.timing_s() + times.last_run_s();
  // What is left of a trial that went through all phases is their end.
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

  // A child that was lost on its way may have left a part.
  if (ftruncate(outputs.get(), 0) != 0 || lseek(outputs.get(), 0, SEEK_SET) != 0) {
    return ErrnoStatus(errno, "cannot keep the reference outputs");
  }
  for (Buffer* output : job.outputs) {
    KILN_ASSIGN_OR_RETURN(const PrivateBytes bytes, device_.Fetch(*output));
    KILN_RETURN_IF_ERROR(WriteAll(outputs.get(), bytes));
    if (result.unchecked.empty()) result.unchecked = WhyUnchecked(output->argument(), bytes);
    // What the second run is compared with.
    auto wanted = std::make_shared<CachedBuffer>();
    KILN_ASSIGN_OR_RETURN(wanted->buffer, device_.Allocate(output->argument()));
    KILN_RETURN_IF_ERROR(device_.Fill(*wanted->buffer, bytes));
    KILN_ASSIGN_OR_RETURN(wanted->checksum, device_.Checksum(*wanted->buffer));
    job.wanted.push_back({"", std::move(wanted)});
  }
  const bool again = cost_s < kLongReferenceS;
  if (again) {
    on_phase(wire::TIMING);
    KILN_ASSIGN_OR_RETURN(cost_s, CheckedRun(job, Poison::kStale));
  }
  KILN_ASSIGN_OR_RETURN(findings, Inspect(job, {}));
  KILN_RETURN_IF_ERROR(CheckMemory(job, findings));
  // Also shows modified inputs, so it is not left out for the long ones.
  double max_error = 0;
  KILN_RETURN_IF_ERROR(Annotate(CheckOutputs(job, findings, max_error),
                                again ? "two runs differ" : "checked after its run"));
  result.cost_s = cost_s;
  return result;
}

}  // namespace kiln::runner
