// The present speed of a core of this machine's CPU, measured.
#pragma once

#include <cstdint>

namespace kiln::runner {

// Each function takes a few milliseconds of the calling thread and returns the best of some tries,
// because others use the core, too. 0: the speed cannot be measured on this kind of CPU.

// Measures a chain of multiplications that wait for each other, 3 cycles each in x86-64 cores since
// 2008. The result is rounded to 50 MHz.
int32_t MeasureClockMhz();

// Returns the float32 operations of independent multiply-adds in the widest vectors that the CPU
// has, in 10^9 a second, rounded to 5.
int32_t MeasureGflopsPerCore();

}  // namespace kiln::runner
