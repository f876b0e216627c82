#include "runtime/parallel_runtime.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/status.h"
#include "runtime/float_environment.h"

namespace kiln::runtime {
namespace {

// Stack for frames of the pool and of libc's start-up, beyond the stack that programs are promised.
constexpr size_t kStackBytes = KILN_CPU_STACK_BYTES + (1 << 20);

thread_local bool inside_task = false;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Orders the stores before it against the loads after it, once for all workers of a launch.
void FullFence() {
#if defined(__SANITIZE_THREAD__)
  // TSan does not know fences.
  static std::atomic<int> fence;
  fence.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

void FutexWait(std::atomic<uint32_t>& word, uint32_t expected) {
  static_assert(sizeof(word) == 4);
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void FutexWake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// Spins, then sleeps, until word != old. `asleep` tells the other side to wake this one: the other
// side stores the word, then looks at `asleep`.
void WaitChange(std::atomic<uint32_t>& word, uint32_t old, std::atomic<uint32_t>& asleep,
                int spin_pauses) {
  for (int i = 0; i < spin_pauses; ++i) {
    if (word.load(std::memory_order_acquire) != old) return;
    Pause();
  }
  asleep.store(1, std::memory_order_seq_cst);
  while (word.load(std::memory_order_seq_cst) == old) FutexWait(word, old);
  asleep.store(0, std::memory_order_relaxed);
}

using AroundThread = std::function<void(const std::function<void()>& thread)>;

struct ThreadStart {
  std::function<void()> body;
  AroundThread around;
  int core;
};

void* RunThread(void* raw) {
  std::unique_ptr<ThreadStart> start(static_cast<ThreadStart*>(raw));
  if (start->core >= 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(start->core, &set);
    // Some containers refuse this. The thread then runs on any core, which costs precision and
    // nothing else.
    (void)pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
  }
  const FloatEnvironment floats;
  if (start->around) {
    start->around(start->body);
  } else {
    start->body();
  }
  return nullptr;
}

pthread_t StartThread(std::function<void()> body, const AroundThread& around, int core) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, RunThread,
                                   new ThreadStart{std::move(body), around, core});
  pthread_attr_destroy(&attributes);
  KILN_CHECK(error == 0, "cannot start a thread with {} bytes of stack: error {}", kStackBytes,
             error);
  return thread;
}

void ParallelForEntry(KilnCpuContext* context, KilnTask task, void* closure, int64_t extent) {
  static_cast<ParallelRuntime*>(context->loader)->ParallelFor(task, closure, extent);
}

}  // namespace

// State of a worker. The first half is written by the caller and read by the worker, the second
// half the other way round. Each half has its own cache lines.
struct alignas(128) ParallelRuntime::Worker {
  // Number of launches given to this worker.
  std::atomic<uint32_t> ticket{0};
  std::atomic<uint32_t> asleep{0};
  bool stop = false;
  KilnTask task = nullptr;
  void* closure = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
  // Number of launches that the worker has finished.
  alignas(128) std::atomic<uint32_t> done{0};
  std::atomic<uint32_t> caller_asleep{0};
  pthread_t thread{};
};

struct ParallelRuntime::Main {
  std::mutex mutex;
  std::condition_variable changed;
  const std::function<void()>* body = nullptr;
  bool stop = false;
  pthread_t thread{};
};

std::vector<int> AllowedCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

ParallelRuntime::ParallelRuntime(const Options& options)
    : threads_(std::max(1, options.threads)),
      spin_pauses_(options.spin_pauses),
      context_{ParallelForEntry, this},
      main_(std::make_unique<Main>()) {
  const std::vector<int> cores = options.pin ? AllowedCores() : std::vector<int>();
  const auto core_of = [&](size_t i) { return i < cores.size() ? cores[i] : -1; };
  for (int i = 1; i < threads_; ++i) {
    workers_.push_back(std::make_unique<Worker>());
    Worker* worker = workers_.back().get();
    worker->thread =
        StartThread([this, worker] { WorkerLoop(*worker); }, options.around_thread, core_of(i));
  }
  main_->thread = StartThread([this] { MainLoop(); }, options.around_thread, core_of(0));
}

ParallelRuntime::~ParallelRuntime() {
  {
    std::lock_guard lock(main_->mutex);
    main_->stop = true;
    main_->changed.notify_all();
  }
  pthread_join(main_->thread, nullptr);
  for (auto& worker : workers_) {
    worker->stop = true;
    worker->ticket.fetch_add(1, std::memory_order_seq_cst);
    FutexWake(worker->ticket);
    pthread_join(worker->thread, nullptr);
  }
}

void ParallelRuntime::Call(const std::function<void()>& body) {
  std::unique_lock lock(main_->mutex);
  main_->body = &body;
  main_->changed.notify_all();
  main_->changed.wait(lock, [&] { return main_->body == nullptr; });
}

void ParallelRuntime::MainLoop() {
  std::unique_lock lock(main_->mutex);
  while (true) {
    main_->changed.wait(lock, [&] { return main_->stop || main_->body != nullptr; });
    if (main_->body == nullptr) return;
    lock.unlock();
    (*main_->body)();
    lock.lock();
    main_->body = nullptr;
    main_->changed.notify_all();
  }
}

void ParallelRuntime::WorkerLoop(Worker& worker) {
  inside_task = true;
  for (uint32_t seen = 0;; ++seen) {
    WaitChange(worker.ticket, seen, worker.asleep, spin_pauses_);
    if (worker.stop) return;
    worker.task(worker.closure, worker.begin, worker.end);
    worker.done.store(seen + 1, std::memory_order_seq_cst);
    if (worker.caller_asleep.load(std::memory_order_seq_cst) != 0) FutexWake(worker.done);
  }
}

void ParallelRuntime::ParallelFor(KilnTask task, void* closure, int64_t extent) {
  if (extent <= 0) return;
  const int64_t slices = std::min<int64_t>(extent, threads_);
  if (slices == 1 || inside_task) {
    task(closure, 0, extent);
    return;
  }
  const int64_t size = extent / slices;
  // The first slices are one element longer.
  const int64_t longer = extent % slices;
  const auto begin_of = [&](int64_t slice) { return slice * size + std::min(slice, longer); };
  for (int64_t slice = 1; slice < slices; ++slice) {
    Worker& worker = *workers_[slice - 1];
    worker.task = task;
    worker.closure = closure;
    worker.begin = begin_of(slice);
    worker.end = begin_of(slice + 1);
    const uint32_t ticket = worker.ticket.load(std::memory_order_relaxed);
    worker.ticket.store(ticket + 1, std::memory_order_release);
  }
  FullFence();
  for (int64_t slice = 1; slice < slices; ++slice) {
    Worker& worker = *workers_[slice - 1];
    if (worker.asleep.load(std::memory_order_seq_cst) != 0) FutexWake(worker.ticket);
  }
  inside_task = true;
  task(closure, 0, begin_of(1));
  inside_task = false;
  for (int64_t slice = 1; slice < slices; ++slice) {
    Worker& worker = *workers_[slice - 1];
    const uint32_t ticket = worker.ticket.load(std::memory_order_relaxed);
    WaitChange(worker.done, ticket - 1, worker.caller_asleep, spin_pauses_);
  }
}

}  // namespace kiln::runtime
