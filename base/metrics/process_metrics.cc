#include "base/metrics/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace kiln {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

// Returns the file's text, at most 8 KiB; "" if there is none.
std::string ReadText(const char* path) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path, "re"));
  if (file == nullptr) return "";
  std::string text(8192, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  return text;
}

// Returns the words behind the process's name, which may have spaces itself: the first of them is
// the third field of /proc/self/stat (proc(5)).
std::vector<std::string> StatFields() {
  std::string text = ReadText("/proc/self/stat");
  const size_t end = text.rfind(')');
  std::vector<std::string> fields;
  if (end == std::string::npos) return fields;
  char* rest = nullptr;
  for (char* word = strtok_r(text.data() + end + 1, " \n", &rest); word != nullptr;
       word = strtok_r(nullptr, " \n", &rest)) {
    fields.emplace_back(word);
  }
  return fields;
}

// Returns the Unix time at which the machine started; 0 if it is not known.
double BootTime() {
  const std::string text = ReadText("/proc/stat");
  const size_t found = text.find("\nbtime ");
  return found == std::string::npos ? 0 : std::atof(text.c_str() + found + 7);
}

int OpenDescriptors() {
  const std::unique_ptr<DIR, CloseFolder> folder(opendir("/proc/self/fd"));
  if (folder == nullptr) return 0;
  int count = 0;
  while (readdir(folder.get()) != nullptr) ++count;
  // The folder itself, ".", and "..".
  return count - 3;
}

}  // namespace

void CollectProcess(MetricSheet& sheet) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  sheet.Counter("process_cpu_seconds_total", "CPU time of the process, without its children.",
                seconds(usage.ru_utime) + seconds(usage.ru_stime));
  sheet.Gauge("process_open_fds", "Descriptors that are open.", OpenDescriptors());
  // Numbers of the fields, from the third one on: 20 threads, 22 start, 23 virtual bytes, 24 pages.
  const std::vector<std::string> fields = StatFields();
  if (fields.size() < 22) return;
  const auto field = [&](size_t number) { return std::atof(fields[number - 3].c_str()); };
  sheet.Gauge("process_threads", "Threads of the process.", field(20));
  sheet.Gauge("process_virtual_memory_bytes", "Size of the address space.", field(23));
  sheet.Gauge("process_resident_memory_bytes", "Memory of the process that is in RAM.",
              field(24) * static_cast<double>(sysconf(_SC_PAGESIZE)));
  if (const double boot_s = BootTime(); boot_s > 0) {
    sheet.Gauge("process_start_time_seconds", "Unix time at which the process started.",
                boot_s + field(22) / static_cast<double>(sysconf(_SC_CLK_TCK)));
  }
}

}  // namespace kiln
