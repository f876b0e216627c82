#include "runner/sandbox_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/clock.h"
#include "base/errno_status.h"
#include "base/hash/digest.h"
#include "base/process/process_guard.h"
#include "base/process/subprocess.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "runner/core_waits.h"
#include "runner/fault_report.h"

namespace kiln::runner {
namespace {

constexpr int64_t kShownOutputBytes = 400;
// Address space beside the counted parts: stacks of the threads, the buffer that flushes caches,
// the program itself and its own allocations.
constexpr int64_t kOwnBytes = int64_t{4} << 30;
constexpr int64_t kBytesPerThread = int64_t{80} << 20;
// Bytes that guard an argument.
constexpr int64_t kBytesPerArgument = int64_t{4} << 20;

// A reading is at least the time that the process's threads computed meanwhile, less this
// allowance: threads that wait for work spin, and handling a request costs the process something,
// too. Wall time from outside would measure a busy machine more than the program.
constexpr double kSpinning_s = 2e-3;
constexpr double kOverheadShare = 0.25;

// On a busy machine the two clocks fit in one reading in a row of them.
constexpr int kClockTries = 6;

enum What : uint32_t { kLoad, kPoison, kTime, kFlush, kPublish, kRefill, kRewrite };
// Bytes of an input that are sent at once. A packet is one piece of memory in the kernel.
constexpr size_t kPacketBytes = size_t{64} << 10;

uint64_t RandomNumber() {
  uint64_t number = 0;
  // getrandom cannot fail for so few bytes.
  [[maybe_unused]] const ssize_t got = getrandom(&number, sizeof(number), 0);
  return number;
}

StatusOr<std::pair<UniqueFd, UniqueFd>> MakePacketPair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return ErrnoStatus(errno, "cannot make a socket pair");
  }
  return std::make_pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

// A program that calls exit would run destructors of this process while threads still run, which
// may hang.
void EndAtOnce(int code, void*) {
  fmt::print(stderr, "the program called exit({})\n", code);
  fflush(stderr);
  _exit(code);
}

// Returns one of the codes that the process sends; another code means that its own code was
// changed.
StatusCode CodeOf(int32_t code) {
  for (const StatusCode known :
       {StatusCode::kInvalidArgument, StatusCode::kNotFound, StatusCode::kResourceExhausted}) {
    if (code == static_cast<int32_t>(known)) return known;
  }
  return StatusCode::kInternal;
}

// Writes a byte of each cache line, and thereby the line.
void Rewrite(std::span<std::byte> bytes) {
  volatile std::byte* const first = bytes.data();
  for (size_t at = 0; at < bytes.size(); at += 64) first[at] = first[at];
}

int ThreadsOf(const CpuDeviceOptions& cpu) {
  return cpu.threads > 0 ? cpu.threads : DefaultCpuThreads();
}

int64_t ExtraBytes(const CpuDeviceOptions& cpu, std::span<const SandboxArgument> arguments) {
  int64_t bytes = kOwnBytes + kBytesPerThread * ThreadsOf(cpu);
  for (const SandboxArgument& a : arguments) bytes += a.argument.bytes + kBytesPerArgument;
  return bytes;
}

}  // namespace

// A request has a fixed size, so nothing in it is parsed.
struct SandboxProcess::Request {
  // The reply has the same nonce, so that bytes which are written blindly are no reply.
  uint64_t nonce;
  uint32_t what;
  uint32_t argument;
  int64_t value;
};

struct SandboxProcess::Reply {
  uint64_t nonce = 0;
  // A StatusCode.
  int32_t code = 0;
  // Index of the argument outside of which something was written.
  int32_t argument = -1;
  int64_t elapsed_ns = 0;
  std::array<char, 488> text = {};

  void SetText(std::string_view words) {
    text = {};
    std::memcpy(text.data(), words.data(), std::min(words.size(), text.size()));
  }
  std::string Text() const { return OneLine({text.data(), strnlen(text.data(), text.size())}); }
};

// The side of the process itself.
class SandboxProcess::Inside {
 public:
  Inside(const Options& options, std::vector<SandboxArgument> arguments)
      : options_(options), arguments_(std::move(arguments)), own_(arguments_.size()) {}

  [[noreturn]] void Main(int socket, int output, int program, uint64_t nonce) {
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    Answer(socket, nonce, [&](Reply&) { return SetUp(socket, program); });
    while (true) {
      Request request{};
      const ssize_t got = recv(socket, &request, sizeof(request), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got != sizeof(request)) _exit(0);
      Answer(socket, request.nonce, [&](Reply& reply) { return Do(socket, request, reply); });
    }
  }

 private:
  template <typename Work>
  void Answer(int socket, uint64_t nonce, Work work) {
    Reply reply;
    const Status status = work(reply);
    reply.nonce = nonce;
    reply.code = static_cast<int32_t>(status.code());
    if (!status.ok()) reply.SetText(Message(status));
    if (send(socket, &reply, sizeof(reply), MSG_NOSIGNAL) != sizeof(reply)) _exit(0);
  }

  Status SetUp(int socket, int program) {
    ForgetOthers();
    SetOomScore(kOomScoreOfProgram);
    const int kept[] = {socket, program};
    KILN_RETURN_IF_ERROR(Confine(options_.containment, kept, ExtraBytes(options_.cpu, arguments_)));
    InstallFaultReport();
    on_exit(EndAtOnce, nullptr);
    calls_ = std::make_unique<CpuCalls>(options_.cpu, options_.flush);
    for (size_t i = 0; i < arguments_.size(); ++i) KILN_RETURN_IF_ERROR(MakeArgument(i));
    // Threads pin themselves as they start, which is forbidden from here on.
    calls_->WaitForThreads();
    KILN_RETURN_IF_ERROR(ForbidSystemCalls());
    KILN_ASSIGN_OR_RETURN(object_, runtime::SharedObject::Open(UniqueFd(program)));
    KILN_ASSIGN_OR_RETURN(void* entry, object_->Find(KILN_CPU_ENTRY));
    entry_ = reinterpret_cast<KilnEntry>(entry);
    return OkStatus();
  }

  // Memory of other programs' arguments is not in this process, so faults must not be explained by
  // it.
  void ForgetOthers() {
    std::vector<const GuardedMemory*> inherited;
    for (const SandboxArgument& a : arguments_) {
      if (a.memory != nullptr) inherited.push_back(a.memory);
    }
    GuardedMemory::ForgetAllBut(inherited);
  }

  Status MakeArgument(size_t i) {
    const Argument& argument = arguments_[i].argument;
    GuardedMemory* memory = arguments_[i].memory;
    if (memory == nullptr) {
      KILN_ASSIGN_OR_RETURN(
          own_[i], GuardedMemory::Allocate(argument.name, static_cast<size_t>(argument.bytes),
                                           static_cast<size_t>(argument.alignment_bytes)));
      memory = own_[i].get();
    }
    memories_.push_back(memory);
    pointers_.push_back(memory->bytes().data());
    return OkStatus();
  }

  Status Do(int socket, const Request& request, Reply& reply) {
    switch (request.what) {
      case kPoison: {
        const Argument& argument = arguments_[request.argument].argument;
        if (argument.role == v1::ArgSpec::INPUT) return InvalidArgument("an input is not poisoned");
        FillPoison(memories_[request.argument]->bytes(), argument.dtype,
                   static_cast<runner::Poison>(request.value));
        return OkStatus();
      }
      case kTime: {
        KILN_ASSIGN_OR_RETURN(const double seconds, calls_->Time(entry_, pointers_, request.value));
        reply.elapsed_ns = static_cast<int64_t>(1e9 * seconds);
        return OkStatus();
      }
      case kFlush:
        calls_->FlushCaches();
        return OkStatus();
      case kPublish:
        return Publish(socket, reply);
      case kRewrite:
        for (GuardedMemory* memory : memories_) runner::Rewrite(memory->bytes());
        return OkStatus();
      case kRefill:
        return Refill(socket, request.argument);
      default:
        return InvalidArgument("unknown request {}", request.what);
    }
  }

  // The bytes come behind the request.
  Status Refill(int socket, uint32_t argument) {
    if (arguments_[argument].argument.role != v1::ArgSpec::INPUT) {
      return InvalidArgument("only inputs are refilled");
    }
    std::span<std::byte> left = memories_[argument]->bytes();
    while (!left.empty()) {
      const ssize_t got = recv(socket, left.data(), std::min(left.size(), kPacketBytes), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) _exit(0);
      left = left.subspan(static_cast<size_t>(got));
    }
    return OkStatus();
  }

  // Tells about inputs and workspaces, which nobody else sees. The sums are sent before the reply.
  Status Publish(int socket, Reply& reply) {
    std::vector<uint64_t> sums(arguments_.size());
    for (size_t i = 0; i < arguments_.size(); ++i) {
      const v1::ArgSpec::Role role = arguments_[i].argument.role;
      if (role == v1::ArgSpec::OUTPUT) continue;
      if (role == v1::ArgSpec::INPUT) {
        const std::span<std::byte> bytes = memories_[i]->bytes();
        sums[i] = Xxh3({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      }
      const Status guards = memories_[i]->CheckGuards();
      if (guards.ok() || reply.argument >= 0) continue;
      reply.argument = static_cast<int32_t>(i);
      reply.SetText(Message(guards));
    }
    const auto bytes = static_cast<ssize_t>(sums.size() * sizeof(uint64_t));
    if (send(socket, sums.data(), static_cast<size_t>(bytes), MSG_NOSIGNAL) != bytes) _exit(0);
    return OkStatus();
  }

  const Options options_;
  const std::vector<SandboxArgument> arguments_;
  // Workspaces.
  std::vector<std::unique_ptr<GuardedMemory>> own_;
  // Memory of each argument.
  std::vector<GuardedMemory*> memories_;
  std::vector<void*> pointers_;
  std::unique_ptr<CpuCalls> calls_;
  std::unique_ptr<runtime::SharedObject> object_;
  KilnEntry entry_ = nullptr;
};

StatusOr<std::unique_ptr<SandboxProcess>> SandboxProcess::Start(
    const Options& options, const v1::Artifact& artifact, std::vector<SandboxArgument> arguments) {
  if (artifact.device() != "cpu") {
    return InvalidArgument("the artifact is for device '{}', expected one for cpu",
                           artifact.device());
  }
  KILN_ASSIGN_OR_RETURN(UniqueFd program, runtime::MakeProgramFile(artifact.binary()));
  KILN_ASSIGN_OR_RETURN(auto sockets, MakePacketPair());
  auto process = std::unique_ptr<SandboxProcess>(new SandboxProcess);
  process->output_ = UniqueFd(memfd_create("kiln-program-output", MFD_CLOEXEC));
  if (!process->output_.valid() || fcntl(process->output_.get(), F_SETFL, O_APPEND) != 0) {
    return ErrnoStatus(errno, "cannot make a memory file for a program's output");
  }
  process->threads_ = ThreadsOf(options.cpu);
  const uint64_t nonce = RandomNumber();
  std::vector<GuardedMemory*> inherited;
  for (const SandboxArgument& a : arguments) {
    if (a.memory != nullptr) inherited.push_back(a.memory);
    process->outputs_.push_back(a.argument.role == v1::ArgSpec::OUTPUT ? a.memory : nullptr);
  }
  // Both processes would write the bytes that are in a buffer now.
  fflush(nullptr);
  for (GuardedMemory* memory : inherited) memory->InheritByFork(true);
  const pid_t pid = fork();
  if (pid == 0) {
    Inside inside(options, std::move(arguments));
    inside.Main(sockets.second.get(), process->output_.get(), program.get(), nonce);
  }
  const int fork_error = errno;
  for (GuardedMemory* memory : inherited) memory->InheritByFork(false);
  if (pid < 0) return ErrnoStatus(fork_error, "cannot start a process for a program");
  process->pid_ = pid;
  process->pidfd_.Reset(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  process->socket_ = std::move(sockets.first);
  sockets.second.Reset();
  KILN_RETURN_IF_ERROR(process->Receive(nonce, "while loading").status());
  KILN_RETURN_IF_ERROR(ForbidOpening(pid));
  return process;
}

SandboxProcess::~SandboxProcess() { End(); }

void SandboxProcess::End() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  EndOrphans();
}

// Returns how the process ended. It has ended or is about to, because its socket has closed.
Status SandboxProcess::Ended(const char* doing) {
  int status = 0;
  constexpr int kPatience_ms = 5000;
  pollfd ended{pidfd_.get(), POLLIN, 0};
  if (pidfd_.valid() && poll(&ended, 1, kPatience_ms) == 0) kill(pid_, SIGKILL);
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  EndOrphans();
  ExitStatus exit;
  exit.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  exit.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  const off_t size = lseek(output_.get(), 0, SEEK_END);
  std::string words(static_cast<size_t>(std::clamp<off_t>(size, 0, kShownOutputBytes)), 0);
  const auto from = size - static_cast<off_t>(words.size());
  const ssize_t got = pread(output_.get(), words.data(), words.size(), from);
  words = OneLine({words.data(), static_cast<size_t>(std::max<ssize_t>(got, 0))});
  gone_ = Unavailable("{} {}{}{}", exit.ToString(), doing, words.empty() ? "" : ": ", words);
  return gone_;
}

Status SandboxProcess::ReceivePacket(void* into, size_t bytes, const char* doing) {
  pollfd waited[] = {{socket_.get(), POLLIN, 0}, {pidfd_.get(), POLLIN, 0}};
  while (poll(waited, 2, -1) < 0 && errno == EINTR) {
  }
  const ssize_t got = recv(socket_.get(), into, bytes, MSG_DONTWAIT | MSG_TRUNC);
  // The process has ended, even if another process still holds the socket.
  if (got <= 0) return Ended(doing);
  return got == static_cast<ssize_t>(bytes) ? OkStatus() : Forged(doing);
}

// Ends the process after a packet that its own code never sends: the program wrote it.
Status SandboxProcess::Forged(const char* doing) {
  End();
  gone_ = Unavailable("the program wrote into the socket of its process {}", doing);
  return gone_;
}

StatusOr<SandboxProcess::Reply> SandboxProcess::Receive(uint64_t nonce, const char* doing) {
  Reply reply;
  KILN_RETURN_IF_ERROR(ReceivePacket(&reply, sizeof(reply), doing));
  if (reply.nonce != nonce) return Forged(doing);
  if (reply.code == 0) return reply;
  return Status(CodeOf(reply.code), reply.Text());
}

StatusOr<SandboxProcess::Reply> SandboxProcess::Ask(uint32_t what, uint32_t argument, int64_t value,
                                                    const char* doing) {
  KILN_RETURN_IF_ERROR(gone_);
  Continue();
  const Request request{RandomNumber(), what, argument, value};
  // If the process has ended, Receive says how.
  [[maybe_unused]] const ssize_t sent =
      send(socket_.get(), &request, sizeof(request), MSG_NOSIGNAL);
  return Receive(request.nonce, doing);
}

Status SandboxProcess::Poison(size_t argument, runner::Poison poison) {
  return Ask(kPoison, static_cast<uint32_t>(argument), static_cast<int64_t>(poison),
             "while its arguments were filled")
      .status();
}

Status SandboxProcess::Rewrite() {
  return Ask(kRewrite, 0, 0, "while its arguments were filled").status();
}

bool SandboxProcess::Send(const void* packet, size_t bytes) const {
  ssize_t sent = 0;
  do {
    sent = send(socket_.get(), packet, bytes, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes);
}

Status SandboxProcess::Refill(size_t argument, std::span<const std::byte> bytes) {
  KILN_RETURN_IF_ERROR(gone_);
  Continue();
  const Request request{RandomNumber(), kRefill, static_cast<uint32_t>(argument), 0};
  bool alive = Send(&request, sizeof(request));
  // If the process has ended, Receive says how.
  while (alive && !bytes.empty()) {
    const auto packet = bytes.first(std::min(bytes.size(), kPacketBytes));
    alive = Send(packet.data(), packet.size());
    bytes = bytes.subspan(packet.size());
  }
  return Receive(request.nonce, "while its inputs were filled").status();
}

double SandboxProcess::CpuSeconds() const {
  clockid_t clock;
  timespec time{};
  if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// `stops`: the process is stopped before the clock of this process is.
StatusOr<SandboxProcess::Reading> SandboxProcess::TimeOnce(int64_t number, bool stops) {
  is_cold_ = false;
  Clock& clock = Clock::Real();
  const double start_cpu_s = CpuSeconds();
  const double start_s = clock.MonotonicSeconds();
  constexpr const char* kDoing = "while running";
  KILN_ASSIGN_OR_RETURN(const Reply reply, Ask(kTime, 0, number, kDoing));
  if (stops) KILN_RETURN_IF_ERROR(Stop(kDoing));
  const double outside_s = clock.MonotonicSeconds() - start_s;
  const double computed_s = CpuSeconds() - start_cpu_s;
  const double least_s = std::max((1 - kOverheadShare) * computed_s / threads_ - kSpinning_s, 1e-9);
  const double inside_s = std::clamp(1e-9 * static_cast<double>(reply.elapsed_ns), least_s,
                                     std::max(least_s, outside_s));
  return Reading{inside_s, outside_s, 1e-9 * static_cast<double>(reply.elapsed_ns), computed_s};
}

// Takes a reading together with the system's counts, which cost some time.
StatusOr<SandboxProcess::Judged> SandboxProcess::TimeJudged(int64_t number, bool counts) {
  const auto own_before = counts ? ReadOwnCounts() : std::nullopt;
  const auto before = counts ? ReadCoreCounts(pid_) : std::nullopt;
  KILN_ASSIGN_OR_RETURN(Reading reading, TimeOnce(number, false));
  ClockReading clocks{.told_s = reading.told_s, .outside_s = reading.outside_s};
  const auto after = before ? ReadCoreCounts(pid_) : std::nullopt;
  const auto own_after = own_before ? ReadOwnCounts() : std::nullopt;
  if (after && own_after) {
    clocks.cores = UseBetween(*before, *after);
    clocks.cores->waited_s +=
        1e-9 * static_cast<double>(own_after->waited_ns - own_before->waited_ns);
    // A thread computes for no longer than the calls take, but for its spinning.
    reading.inside_s = std::max(reading.inside_s, clocks.cores->longest_s - kSpinning_s);
  }
  return Judged{reading, JudgeClock(clocks)};
}

StatusOr<CheckedTime> SandboxProcess::Run() {
  KILN_ASSIGN_OR_RETURN(const Reading reading, TimeOnce(1, true));
  return CheckedTime{reading.inside_s, reading.outside_s, reading.computed_s};
}

StatusOr<double> SandboxProcess::Time(int64_t number) {
  Judged best;
  best.reading.outside_s = std::numeric_limits<double>::infinity();
  const bool is_cold = is_cold_;
  for (int i = 0; i < kClockTries; ++i) {
    if (is_cold && i > 0) KILN_RETURN_IF_ERROR(FlushCaches());
    KILN_ASSIGN_OR_RETURN(const Judged judged, TimeJudged(number, i > 0));
    if (judged.verdict == ClockVerdict::kFits) return judged.reading.inside_s;
    // The first reading lacks the counts, without which it is no evidence.
    if (i > 0 && judged.reading.outside_s < best.reading.outside_s) best = judged;
  }
  if (best.verdict != ClockVerdict::kForged) return best.reading.outside_s;
  return Internal(
      "the clock of the program's process was changed: by it {} calls took {}, and by the clock of "
      "another process at least {}, in which it computed for longer than that; a program must "
      "leave clocks alone",
      number, FormatSeconds(best.reading.told_s), FormatSeconds(best.reading.outside_s));
}

// The process ends instead if it is killed meanwhile. SIGSTOP can be neither caught nor blocked,
// and the program may send no SIGCONT.
Status SandboxProcess::Stop(const char* doing) {
  KILN_RETURN_IF_ERROR(gone_);
  if (stands_still_) return OkStatus();
  if (kill(pid_, SIGSTOP) != 0) {
    return ErrnoStatus(errno, "cannot stop the process of a program to read its outputs");
  }
  siginfo_t change{};
  while (waitid(P_PID, static_cast<id_t>(pid_), &change, WSTOPPED | WEXITED | WNOWAIT) != 0) {
    if (errno != EINTR) return ErrnoStatus(errno, "cannot wait for the process of a program");
  }
  if (change.si_code != CLD_STOPPED) return Ended(doing);
  stands_still_ = true;
  return OkStatus();
}

void SandboxProcess::Continue() {
  if (std::exchange(stands_still_, false)) kill(pid_, SIGCONT);
}

StatusOr<SandboxProcess::Published> SandboxProcess::Publish(absl::FunctionRef<void()> take) {
  constexpr const char* kDoing = "while its outputs were taken";
  KILN_RETURN_IF_ERROR(Stop(kDoing));
  Published published;
  published.guards.resize(outputs_.size());
  take();
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i] != nullptr) published.guards[i] = outputs_[i]->CheckGuards();
  }
  Continue();
  const Request request{RandomNumber(), kPublish, 0, 0};
  [[maybe_unused]] const bool sent = Send(&request, sizeof(request));
  published.sums.resize(outputs_.size());
  const size_t sum_bytes = published.sums.size() * sizeof(uint64_t);
  KILN_RETURN_IF_ERROR(ReceivePacket(published.sums.data(), sum_bytes, kDoing));
  KILN_ASSIGN_OR_RETURN(const Reply reply, Receive(request.nonce, kDoing));
  const auto argument = static_cast<size_t>(reply.argument);
  if (argument < outputs_.size()) published.guards[argument] = Internal("{}", reply.Text());
  return published;
}

Status SandboxProcess::FlushCaches() {
  is_cold_ = true;
  return Ask(kFlush, 0, 0, "while the caches were flushed").status();
}

}  // namespace kiln::runner
