// What the process does with memory that it has freed.
#pragma once

namespace kiln {

// Keeps up to 256 MiB of it for the next allocations. By default the C library gives what is free
// at the end of the heap back to the system at once, and takes it again, page by page: a search,
// which makes and drops thousands of programs a second, spends a tenth of its time on that. For
// programs that search; call it early in main.
void KeepFreedMemory();

}  // namespace kiln
