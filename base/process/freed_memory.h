// Control over the memory that the process has freed.
//
// A program that links this library allocates with jemalloc in place of the C library. A search
// makes and drops thousands of programs a second, each of many small pieces. It takes a fifth less
// CPU time so (docs/experiments/several-gpus.md). The allocator keeps freed pages for some seconds.
// It gives unused ones back after that, but only while the process allocates. A program that goes
// idle calls GiveBackFreedMemory.
//
// In a sanitizer build, whose allocator is the sanitizer's, the calls do nothing.
#pragma once

#include <cstdint>

namespace kiln {

// Gives all freed memory back to the system if there are more than `keep_bytes`. That takes some
// milliseconds, in which other threads that allocate may wait. Otherwise the call takes some
// microseconds for each heap. Thread-safe.
void GiveBackFreedMemory(int64_t keep_bytes = 0);

// Gives what this thread has freed, and the allocator keeps for the thread, to its heap, from which
// all threads take and which gives pages back. For a thread that rests for long after much work.
// Takes some microseconds.
void FlushThreadCache();

// Returns the bytes of address space that have no memory behind them and that the allocator takes
// again before it asks the system for more. Thread-safe.
int64_t RetainedBytes();

}  // namespace kiln
