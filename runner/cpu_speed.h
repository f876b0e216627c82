// How fast a core of this machine's CPU is now, measured.
#pragma once

#include <cstdint>

namespace kiln::runner {

// Each takes a few milliseconds of the calling thread and returns the best of some tries, since
// others use the core, too. 0: it cannot be measured on this kind of CPU.

// By a chain of multiplications that wait for each other, 3 cycles each in x86-64 cores since 2008;
// rounded to 50 MHz.
int32_t MeasureClockMhz();

// float32 operations of multiply-adds that wait for nothing, in the widest vectors that there are,
// in 10^9 a second; rounded to 5.
int32_t MeasureGflopsPerCore();

}  // namespace kiln::runner
