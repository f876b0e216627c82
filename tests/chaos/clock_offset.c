// A clock that a test sets, for one process: the wall clock plus an offset.
//
// Loaded with LD_PRELOAD. KILN_CLOCK_OFFSET names a file of eight bytes, a signed number of
// nanoseconds in the machine's byte order, which is mapped at the first question: whoever writes
// the file sets the clock of the running process. Monotonic clocks stay as they are. The kernel is
// asked by system calls, because a program's allocator may read the clock before the loader can
// look up functions of libc.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { kNanoseconds = 1000000000 };

static int64_t Offset(void) {
  static _Atomic(int64_t*) mapped;
  int64_t* offset = atomic_load(&mapped);
  if (offset == NULL) {
    const char* path = getenv("KILN_CLOCK_OFFSET");
    const int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    void* const memory = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) return 0;
    offset = memory;
    atomic_store(&mapped, offset);
  }
  return *(volatile int64_t*)offset;
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  const int failed = (int)syscall(SYS_clock_gettime, clock, now);
  if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
  const int64_t all = now->tv_sec * (int64_t)kNanoseconds + now->tv_nsec + Offset();
  now->tv_sec = all / kNanoseconds;
  now->tv_nsec = all % kNanoseconds;
  return 0;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  (void)zone;
  struct timespec exact;
  if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return -1;
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* result) {
  struct timespec exact;
  if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return -1;
  if (result != NULL) *result = exact.tv_sec;
  return exact.tv_sec;
}
