// What the process does with memory that it has freed.
#pragma once

#include <cstdint>

namespace kiln {

// What a program that searches keeps for its next allocations.
inline constexpr int64_t kFreedBytesToKeep = int64_t{256} << 20;

// Keeps up to 256 MiB of it in each of the C library's heaps, of which there are as many as eight
// for each core. By default the library gives what is free at the end of a heap back to the system
// at once, and takes it again, page by page: a search, which makes and drops thousands of programs a
// second, spends a tenth of its time on that. For programs that search; call it early in main, and
// GiveBackFreedMemory from time to time, since the heaps are many and have holes.
void KeepFreedMemory();

// Gives freed memory back to the system, all of it, if there is more than `keep_bytes`. Takes some
// tens of milliseconds then, in which others that allocate may wait, and else some microseconds for
// each heap. Thread-safe.
void GiveBackFreedMemory(int64_t keep_bytes = 0);

}  // namespace kiln
