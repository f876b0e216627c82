// The parallel_for of compiled CPU programs: a fixed pool of pinned threads with
// KILN_CPU_STACK_BYTES of stack.
//
// A launch wakes only the threads that get a slice; the caller takes the first slice itself.
// Threads spin for a short while after their work, so that launch and join together take a few
// microseconds in back-to-back launches, and then sleep on a futex. One caller at a time. A
// parallel_for inside a task runs inline, on the thread that called it.
//
// The pool owns its main thread and its workers. A program runs on the main thread (Call), or on a
// thread of the caller's that has the stack and the FloatEnvironment of programs; either way the
// workers take the other slices of its loops.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "proto/cpu_abi.h"

namespace kiln::runtime {

class ParallelRuntime {
 public:
  struct Options {
    // Number of threads, the caller included; at least 1.
    int threads = 1;
    // Ties thread i to the i-th core that this process may run on. Threads beyond the cores stay
    // free.
    bool pin = true;
    // Length of an idle thread's spinning before it sleeps; about 0.3 to 0.8 ms.
    int spin_pauses = 20000;
    // Runs each thread of the pool, for callers that have something to set up in it; null: the
    // thread just runs.
    std::function<void(const std::function<void()>& thread)> around_thread = nullptr;
  };
  explicit ParallelRuntime(const Options& options);
  // Waits for the pool's threads. No Call may be in progress.
  ~ParallelRuntime();
  ParallelRuntime(const ParallelRuntime&) = delete;
  ParallelRuntime& operator=(const ParallelRuntime&) = delete;

  int threads() const { return threads_; }

  // Runs `body` on the pool's own main thread and waits for it. That thread has the stack and the
  // place (core 0) that an entry point may expect. Any thread may call this, one at a time, but not
  // from inside `body`.
  void Call(const std::function<void()>& body);

  // Called inside Call, or on any thread while no Call is in progress. The slices are contiguous,
  // in order, and as equal as possible. Returns when all are done.
  void ParallelFor(KilnTask task, void* closure, int64_t extent);

  // The context for a KilnEntry; valid as long as this object.
  KilnCpuContext* context() { return &context_; }

 private:
  struct Worker;
  void MainLoop();
  void WorkerLoop(Worker& worker);

  const int threads_;
  const int spin_pauses_;
  KilnCpuContext context_;
  // There are threads_ - 1 workers.
  std::vector<std::unique_ptr<Worker>> workers_;
  struct Main;
  std::unique_ptr<Main> main_;
};

// Returns the cores that this process may run on, in order.
std::vector<int> AllowedCores();

}  // namespace kiln::runtime
