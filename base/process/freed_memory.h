// Control over the memory that the process has freed.
#pragma once

#include <cstdint>

namespace kiln {

// Bytes that a program that searches keeps for its next allocations.
inline constexpr int64_t kFreedBytesToKeep = int64_t{256} << 20;

// Heaps of such a program for each core. With one heap a core, threads wait for each other: a
// search on two cores that runs nothing tries a sixth fewer candidates a second.
inline constexpr int kHeapsPerCore = 4;

// Keeps up to 256 MiB of freed memory in each of the C library's heaps, and allows kHeapsPerCore
// heaps for each core. By default the library gives free memory at the end of a heap back to the
// system at once, and takes it again page by page. A search makes and drops thousands of programs a
// second, and would spend a tenth of its time on that. By default there are also eight heaps for
// each core. No call can give back the free ends of those that belong to threads, so a process that
// starts threads for each job would grow with every job. Programs that search call this at the
// start of main, before there are threads, and GiveBackFreedMemory from time to time, since heaps
// have holes.
void KeepFreedMemory();

// Gives all freed memory back to the system if there are more than `keep_bytes`. That takes some
// tens of milliseconds, in which other threads that allocate may wait. Otherwise the call takes
// some microseconds for each heap. Thread-safe.
void GiveBackFreedMemory(int64_t keep_bytes = 0);

}  // namespace kiln
