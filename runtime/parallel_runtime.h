// The parallel_for of compiled CPU programs: a fixed pool of pinned threads with
// KILN_CPU_STACK_BYTES of stack.
//
// A launch wakes only the threads that get a slice; the caller takes the first slice itself.
// Threads spin for a short while after their work (so that back-to-back launches cost a few
// microseconds for launch and join together), then sleep on a futex. One caller at a time. A
// parallel_for inside a task runs inline, on the thread that called it.
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
    int threads = 1;  // the caller included; at least 1
    bool pin = true;  // thread i to the i-th core this process may run on; threads beyond the cores
                      // stay free
    int spin_pauses = 20000;  // how long an idle thread spins before it sleeps; about 0.3 to 0.8 ms
    // Runs each thread of the pool, for who has something to set up in it; null: it just runs.
    std::function<void(const std::function<void()>& thread)> around_thread = nullptr;
  };
  explicit ParallelRuntime(const Options& options);
  ~ParallelRuntime();  // waits for the pool's threads; no Call may be in progress
  ParallelRuntime(const ParallelRuntime&) = delete;
  ParallelRuntime& operator=(const ParallelRuntime&) = delete;

  int threads() const { return threads_; }

  // Runs `body` on the pool's own main thread, which has the stack and the place (core 0) that an
  // entry point may expect, and waits for it. Callable from any one thread at a time, not from
  // inside `body`.
  void Call(const std::function<void()>& body);

  // Inside Call only. Contiguous slices in order, as equal as can be; returns when all are done.
  void ParallelFor(KilnTask task, void* closure, int64_t extent);

  // For KilnEntry; valid as long as this object.
  KilnCpuContext* context() { return &context_; }

 private:
  struct Worker;
  void MainLoop();
  void WorkerLoop(Worker& worker);

  const int threads_;
  const int spin_pauses_;
  KilnCpuContext context_;
  std::vector<std::unique_ptr<Worker>> workers_;  // threads_ - 1 of them
  struct Main;
  std::unique_ptr<Main> main_;
};

// The cores this process may run on, in order.
std::vector<int> AllowedCores();

}  // namespace kiln::runtime
