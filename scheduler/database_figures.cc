#include "scheduler/database_figures.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

namespace kiln::scheduler {
namespace {

void CollectFile(const std::string& path, const std::string& name, MetricSheet& sheet) {
  struct stat file{};
  if (stat(path.c_str(), &file) != 0) return;
  sheet.Gauge("kiln_database_bytes", "Size of the database's files.",
              static_cast<double>(file.st_size), {{"file", name}});
}

}  // namespace

void CollectDatabase(const std::string& path, MetricSheet& sheet) {
  CollectFile(path, "main", sheet);
  CollectFile(path + "-wal", "wal", sheet);
  struct statvfs disk{};
  if (statvfs(path.c_str(), &disk) != 0) return;
  const auto bytes = [&](fsblkcnt_t blocks) {
    return static_cast<double>(blocks) * static_cast<double>(disk.f_frsize);
  };
  sheet.Gauge("kiln_database_disk_bytes", "Size of the disk that has the database.",
              bytes(disk.f_blocks));
  // The space that is left for users without special rights.
  sheet.Gauge("kiln_database_disk_free_bytes", "Free bytes of the disk that has the database.",
              bytes(disk.f_bavail));
}

}  // namespace kiln::scheduler
