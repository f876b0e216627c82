/* Small programs of the CPU contract that compute out[i] = 2 * a[i] + b[i] over 24 floats in shape
 * [4, 6]. Each is right, or wrong in one way. The build picks a program by -DPROGRAM_<name>.
 * Arguments: a, b, out, scratch. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "proto/cpu_abi.h"

enum { kCount = 24 };

typedef struct Closure {
  const float* a;
  const float* b;
  float* out;
} Closure;

static void Task(void* raw, int64_t begin, int64_t end) {
  const Closure* closure = raw;
#ifdef PROGRAM_task_crash
  if (end == kCount) *(volatile int*)8 = 1;
#endif
  for (int64_t i = begin; i < end; ++i) closure->out[i] = 2 * closure->a[i] + closure->b[i];
}

#if defined(PROGRAM_stack_overflow)
static int Recurse(volatile char* outer, int depth) {
  volatile char frame[4096];
  frame[0] = outer[0];
  return Recurse(frame, depth + 1) + frame[0];
}
#elif defined(PROGRAM_deep_stack)
static float UseStack(void) {
  /* Nearly the whole stack that the contract promises. */
  volatile char frame[60 << 20];
  for (size_t i = 0; i < sizeof(frame); i += 4096) frame[i] = 1;
  return frame[4096] == 1 ? 0.0f : 1.0f;
}
#elif defined(PROGRAM_load_crash)
__attribute__((constructor)) static void Construct(void) { abort(); }
#elif defined(PROGRAM_undefined_symbol)
extern void nobody_defines_this(void);
#endif

#ifdef PROGRAM_hostile
static void* Sleep(void* unused) {
  sleep(60);
  return unused;
}

/* Returns a bit for each thing that worked and should not have. */
static int Attack(void) {
  int worked = 0;
  const pid_t parent = getppid();
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    sleep(60);
    _exit(0);
  }
  if (child > 0) worked |= 1;
  if (getenv("FARM_PASSWORD") != NULL) worked |= 2;
  if (open("/tmp/kiln-hostile-program", O_CREAT | O_WRONLY, 0600) >= 0) worked |= 4;
  if (socket(AF_INET, SOCK_STREAM, 0) >= 0) worked |= 8;
  if (kill(parent, 0) == 0) worked |= 16;
  char byte = 0;
  struct iovec here = {&byte, 1}, there = {&byte, 1};
  if (process_vm_readv(parent, &here, 1, &there, 1, 0) == 1) worked |= 32;
  if (geteuid() == 0) worked |= 64;
  if (setsid() >= 0) worked |= 128;
  pthread_t thread;
  if (pthread_create(&thread, NULL, Sleep, NULL) == 0) worked |= 256;
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/mem", parent);
  if (open(path, O_RDWR) >= 0 || open(path, O_RDONLY) >= 0) worked |= 512;
  snprintf(path, sizeof(path), "/proc/%d/environ", parent);
  if (open(path, O_RDONLY) >= 0) worked |= 1024;
  if (ptrace(PTRACE_ATTACH, parent, NULL, NULL) == 0) worked |= 2048;
  if (open("/proc", O_RDONLY | O_DIRECTORY) >= 0) worked |= 4096;
  if (open("/tmp", O_RDONLY | O_DIRECTORY) >= 0) worked |= 8192;
  if (dlopen("libBrokenLocale.so.1", RTLD_NOW) != NULL) worked |= 16384;
  /* More memory than a program may have. */
  if (mmap(NULL, (size_t)1 << 40, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED) {
    worked |= 32768;
  }
  execl("/bin/true", "true", (char*)NULL);
  return worked;
}
#endif

#if defined(PROGRAM_spy) || defined(PROGRAM_early_spy)
/* Returns the parent of a process. The program's parent judges it, and was started by a daemon. */
static int ParentOf(int pid) {
  char text[512];
  snprintf(text, sizeof(text), "/proc/%d/stat", pid);
  const int fd = open(text, O_RDONLY);
  if (fd < 0) return -1;
  const ssize_t got = read(fd, text, sizeof(text) - 1);
  close(fd);
  text[got < 0 ? 0 : got] = 0;
  const char* name_end = strrchr(text, ')');
  int parent = -1;
  if (name_end != NULL) sscanf(name_end, ") %*c %d", &parent);
  return parent;
}

static int CanOpen(const char* path) {
  const int fd = open(path, O_RDONLY);
  if (fd < 0) return 0;
  close(fd);
  return 1;
}

/* Returns whether any file of a process can be opened. */
static int CanLookInto(int pid) {
  char path[64];
  for (int fd = 0; fd < 256; ++fd) {
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
    if (CanOpen(path)) return 1;
  }
  for (const char* const* file = (const char* const[]){"mem", "maps", "environ", "auxv", NULL};
       *file != NULL; ++file) {
    snprintf(path, sizeof(path), "/proc/%d/%s", pid, *file);
    if (CanOpen(path)) return 1;
  }
  return 0;
}

/* Returns a bit for each thing that worked and should not have. Process numbers that are not known
 * are guessed near the program's own, because a daemon starts its children one after another. */
static int Spy(void) {
  int worked = 0;
  const int self = getpid();
  const int daemon = ParentOf(getppid());
  if (daemon > 0 && CanLookInto(daemon)) worked |= 1;
  for (int pid = self - 1; pid > 1 && pid > self - 20; --pid) {
    if (CanLookInto(pid)) worked |= 2;
  }
  if (CanOpen("/etc/passwd") || CanOpen("/etc/hostname")) worked |= 4;
  if (CanOpen("/proc/self/environ") || CanOpen("/proc/self/maps")) worked |= 8;
  if (CanOpen("/dev/zero") || CanOpen("/tmp") || CanOpen("/")) worked |= 16;
  return worked;
}
#endif
#ifdef PROGRAM_early_spy
static int worked_early;
__attribute__((constructor)) static void SpyEarly(void) { worked_early = Spy(); }
#endif

#ifdef PROGRAM_spy
/* Returns whether the byte can be read. */
static int IsThere(const char* at) { return write(1, at, 1) == 1; }

/* Returns whether the right answer is anywhere on the heap, where a reference may have left it. */
static int AnswerIsOnHeap(const Closure* closure) {
  float want[kCount];
  for (int i = 0; i < kCount; ++i) want[i] = 2 * closure->a[i] + closure->b[i];
  const char* const end = sbrk(0);
  const char* begin = end;
  while (IsThere(begin - 4096)) begin -= 4096;
  /* The allocator overwrites the first elements of a freed piece. */
  const size_t part = 12 * sizeof(float);
  for (const char* at = begin; at + part <= end; at += 4) {
    if (memcmp(at, want + 8, part) == 0) return 1;
  }
  return 0;
}

static int SpyLate(const Closure* closure) {
  int worked = Spy();
  if (CanOpen("/proc/self/fd/1") || CanOpen("/lib64/ld-linux-x86-64.so.2")) worked |= 32;
  if (CanOpen("/etc/ld.so.cache") || dup(1) >= 0) worked |= 64;
  const struct rlimit more = {64, 64};
  if (setrlimit(RLIMIT_NOFILE, &more) == 0) worked |= 128;
  for (const int* stop = (const int[]){SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, 0}; *stop; ++stop) {
    if (kill(getpid(), *stop) == 0 || raise(*stop) == 0) worked |= 256;
  }
  if (AnswerIsOnHeap(closure)) worked |= 512;
  return worked;
}
#endif

/* These programs compute once and give the answer again if they take the inputs for the same. They
 * do so always, by the first elements, by the address, by all elements, or because the outputs are
 * still there: the first element is not NaN, or has neither poison, or no element has. */
#if defined(PROGRAM_keeps_a_part)
enum { kKnownNs = 5000000, kUnknownNs = 30000000 };
#elif defined(PROGRAM_keeps_a_part_of_much)
enum { kKnownNs = 25000000, kUnknownNs = 150000000 };
#elif defined(PROGRAM_keeps_by_all) || defined(PROGRAM_keeps_with_clock)
enum { kKnownNs = 0, kUnknownNs = 20000000 };
#endif
#if defined(PROGRAM_keeps_a_part) || defined(PROGRAM_keeps_a_part_of_much) || \
    defined(PROGRAM_keeps_by_all) || defined(PROGRAM_keeps_with_clock)
#define KEEPS_BY_ALL 1
#endif
#if defined(KEEPS_BY_ALL) || defined(PROGRAM_patches_clock) || defined(PROGRAM_patches_clock_by_far)
/* Computes until the system has counted so much CPU time more. */
static void UseCore(int64_t ns) {
  int64_t end_ns = 0, now_ns = 0;
  do {
    struct timespec used;
    syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &used);
    now_ns = used.tv_sec * 1000000000LL + used.tv_nsec;
    if (end_ns == 0) end_ns = now_ns + ns;
  } while (now_ns < end_ns);
}
#endif
#if defined(PROGRAM_keeps_answer) || defined(PROGRAM_keeps_by_first) ||    \
    defined(PROGRAM_keeps_by_address) || defined(KEEPS_BY_ALL) ||          \
    defined(PROGRAM_leaves_outputs) || defined(PROGRAM_new_if_poisoned) || \
    defined(PROGRAM_new_if_poisoned_somewhere)
#define KEEPS 1
static float answer[kCount], seen[2 * kCount];
static const float* seen_at;
static int has_answer;

/* All bytes of poison are alike, and those of an answer are not. */
static int IsPoison(const float* element) {
  unsigned char bytes[4];
  memcpy(bytes, element, 4);
  return bytes[0] == bytes[1] && bytes[1] == bytes[2] && bytes[2] == bytes[3] && bytes[0] != 0;
}

static int IsKnown(const Closure* closure) {
  if (!has_answer) return 0;
#if defined(PROGRAM_keeps_by_first)
  return memcmp(seen, closure->a, 3 * sizeof(float)) == 0;
#elif defined(PROGRAM_keeps_by_address)
  return seen_at == closure->a;
#elif defined(KEEPS_BY_ALL)
  return memcmp(seen, closure->a, kCount * sizeof(float)) == 0 &&
         memcmp(seen + kCount, closure->b, kCount * sizeof(float)) == 0;
#elif defined(PROGRAM_new_if_poisoned)
  return !IsPoison(closure->out);
#elif defined(PROGRAM_new_if_poisoned_somewhere)
  for (int i = 0; i < kCount; ++i) {
    if (IsPoison(closure->out + i)) return 0;
  }
  return 1;
#elif defined(PROGRAM_leaves_outputs)
  /* The output is not poisoned with NaN. */
  return closure->out[0] == closure->out[0];
#else
  return 1;
#endif
}

static void Keep(const Closure* closure) {
  memcpy(answer, closure->out, sizeof(answer));
  memcpy(seen, closure->a, kCount * sizeof(float));
  memcpy(seen + kCount, closure->b, kCount * sizeof(float));
  seen_at = closure->a;
  has_answer = 1;
}
#endif

#if defined(PROGRAM_patches_clock_by_far) || defined(PROGRAM_keeps_with_clock)
#define CHANGES_CLOCK 1
enum { kShare = 50 };
#elif defined(PROGRAM_patches_clock) || defined(PROGRAM_patches_clock_asleep)
#define CHANGES_CLOCK 1
enum { kShare = 5 };
#endif
#if defined(CHANGES_CLOCK) || defined(PROGRAM_late)
/* Replaces a function of the C library by a jump. Returns 0 if that is possible. */
static int Patch(const char* name, const void* target) {
  unsigned char* const at = dlsym(RTLD_DEFAULT, name);
  void* const page = (void*)((uintptr_t)at & ~(uintptr_t)4095);
  if (at == NULL || mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return 1;
  memcpy(at, "\x48\xb8", 2);
  memcpy(at + 2, &target, 8);
  memcpy(at + 10, "\xff\xe0", 2);
  return 0;
}
#endif

#if defined(PROGRAM_lazy) || defined(PROGRAM_late)
/* The call whose work is not done yet. */
static Closure due;
static volatile int is_due;

static void WorkLate(void) {
  is_due = 0;
  const struct timespec computing = {0, 300000000};
  nanosleep(&computing, NULL);
  Task(&due, 0, kCount);
}
#endif

#ifdef PROGRAM_lazy
/* Does the work when somebody reads the output in this process. */
static void OnFault(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info;
  const int is_write = (((ucontext_t*)context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
  mprotect((void*)((uintptr_t)due.out & ~(uintptr_t)4095), 4096, PROT_READ | PROT_WRITE);
  if (!is_write && is_due) WorkLate();
}
#endif

#ifdef PROGRAM_late
/* Does the work once it has been said that the call is over. */
static ssize_t LateReceive(int socket, void* into, size_t bytes, int flags) {
  if (is_due) WorkLate();
  return syscall(SYS_recvfrom, socket, into, bytes, flags, NULL, NULL);
}
#endif

#ifdef CHANGES_CLOCK
/* Tells a part of the time that has passed. */
static int SlowClock(clockid_t clock, struct timespec* time) {
  static int64_t start_ns;
  if (syscall(SYS_clock_gettime, clock, time) != 0) return -1;
  const int64_t now_ns = time->tv_sec * 1000000000LL + time->tv_nsec;
  if (start_ns == 0) start_ns = now_ns;
  const int64_t told_ns = start_ns + (now_ns - start_ns) / kShare;
  time->tv_sec = told_ns / 1000000000LL;
  time->tv_nsec = told_ns % 1000000000LL;
  return 0;
}
#endif

#ifdef PROGRAM_no_entry
#define kiln_entry another_name
#endif

int32_t kiln_entry(KilnCpuContext* context, void* const* args) {
  Closure closure = {args[0], args[1], args[2]};
  float* out = closure.out;
  for (int i = 0; i < 4; ++i) {
    if ((uintptr_t)args[i] % 64 != 0) return 7;
  }
#ifdef CHANGES_CLOCK
  static int patched;
  if (!patched && Patch("clock_gettime", (const void*)SlowClock) != 0) return 11;
  patched = 1;
#endif
#ifdef KEEPS
  if (IsKnown(&closure)) {
#ifdef KEEPS_BY_ALL
    UseCore(kKnownNs);
#endif
#if !defined(PROGRAM_leaves_outputs) && !defined(PROGRAM_new_if_poisoned) && \
    !defined(PROGRAM_new_if_poisoned_somewhere)
    memcpy(out, answer, sizeof(answer));
#endif
    return 0;
  }
#endif
#if defined(PROGRAM_null_store)
  *(volatile int*)0 = 1;
#elif defined(PROGRAM_infinite_loop)
  for (volatile int forever = 1; forever;) {
  }
#elif defined(PROGRAM_abort)
  abort();
#elif defined(PROGRAM_exit)
  exit(0);
#elif defined(PROGRAM_stack_overflow)
  return Recurse((volatile char*)out, 0);
#elif defined(PROGRAM_returns_error)
  return 3;
#elif defined(PROGRAM_undefined_symbol)
  nobody_defines_this();
#elif defined(PROGRAM_prints)
  puts("a line of output");
  fflush(stdout);
#elif defined(PROGRAM_bad_utf8)
  fputs("not \xff text\n", stderr);
  abort();
#elif defined(PROGRAM_hostile)
  const int worked = Attack();
  if (worked != 0) return worked;
#elif defined(PROGRAM_spy)
  const int worked = SpyLate(&closure);
  if (worked != 0) return worked;
#elif defined(PROGRAM_early_spy)
  if (worked_early != 0) return worked_early;
#elif defined(PROGRAM_forger)
  /* Sends "all went well" to every open descriptor. */
  static char reply[1 << 12];
  for (int fd = 3; fd < 2000; ++fd) {
    (void)!write(fd, reply, 520);
    (void)!write(fd, reply, 8);
  }
#elif defined(PROGRAM_patches_clock)
  UseCore(50000);
#elif defined(PROGRAM_patches_clock_by_far)
  UseCore(50000000);
#elif defined(PROGRAM_patches_clock_asleep)
  /* The system counts no CPU time of sleep. */
  const struct timespec asleep = {0, 1000000};
  nanosleep(&asleep, NULL);
#elif defined(PROGRAM_lazy)
  struct sigaction action = {.sa_sigaction = OnFault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  if (sigaction(SIGSEGV, &action, NULL) != 0) return 12;
  due = closure;
  is_due = 1;
  return mprotect((void*)((uintptr_t)out & ~(uintptr_t)4095), 4096, PROT_NONE) == 0 ? 0 : 13;
#elif defined(PROGRAM_late)
  static int patched;
  if (!patched && Patch("recv", (const void*)LateReceive) != 0) return 11;
  patched = 1;
  due = closure;
  is_due = 1;
  return 0;
#elif defined(PROGRAM_floods)
  static char words[1 << 16];
  memset(words, 'x', sizeof(words));
  for (int i = 0; i < 1 << 12; ++i) (void)!write(2, words, sizeof(words));
#elif defined(PROGRAM_killed)
  raise(SIGKILL);
#endif
#ifdef PROGRAM_unwritten
  Task(&closure, 0, kCount - 1);
#elif defined(PROGRAM_accumulates)
  for (int i = 0; i < kCount; ++i) out[i] += 2 * closure.a[i] + closure.b[i];
#else
  context->parallel_for(context, Task, &closure, kCount);
#endif
  memset(args[3], 0, 16 * sizeof(float));
#ifdef KEEPS
  Keep(&closure);
#endif
#if defined(PROGRAM_new_if_poisoned) || defined(PROGRAM_new_if_poisoned_somewhere)
  /* Some 2 ms. */
  for (volatile int work = 0; work < 1000000; ++work) {
  }
#endif
#ifdef KEEPS_BY_ALL
  UseCore(kUnknownNs);
#endif
#if defined(PROGRAM_wrong_answer)
  /* Element [1, 3]. */
  out[9] += 1;
#elif defined(PROGRAM_slightly_off)
  out[9] *= 1.0001f;
#elif defined(PROGRAM_all_nan)
  for (int i = 0; i < kCount; ++i) out[i] = __builtin_nanf("");
#elif defined(PROGRAM_constant)
  for (int i = 0; i < kCount; ++i) out[i] = 0.5f;
#elif defined(PROGRAM_nan)
  out[23] = 0.0f / (out[23] - out[23]);
#elif defined(PROGRAM_out_of_bounds)
  out[kCount + 3] = 1;
#elif defined(PROGRAM_far_out_of_bounds)
  out[kCount + 4096] = 1;
#elif defined(PROGRAM_before_start)
  out[-2] = 1;
#elif defined(PROGRAM_scratch_out_of_bounds)
  ((float*)args[3])[16] = 1;
#elif defined(PROGRAM_modifies_input)
  ((float*)args[1])[5] = 42;
#elif defined(PROGRAM_deep_stack)
  out[0] += UseStack();
#elif defined(PROGRAM_uneven)
  /* The pause lasts 20 to 46 ms. */
  static int turns;
  const struct timespec pause = {0, 20000000 + 2600000 * (turns++ * 7 % 11)};
  nanosleep(&pause, NULL);
#elif defined(PROGRAM_slow)
  const struct timespec pause = {0, 150000000};
  nanosleep(&pause, NULL);
#elif defined(PROGRAM_slow_changing)
  const struct timespec pause = {1, 50000000};
  nanosleep(&pause, NULL);
  static int slow_calls;
  if (slow_calls++ > 0) out[0] += 1;
#elif defined(PROGRAM_changing)
  static int calls;
  if (calls++ > 0) out[0] += 1;
#endif
  return 0;
}
