#include "client/jobs/task_list.h"

#include <charconv>
#include <cmath>
#include <sstream>

#include "base/file/file.h"

namespace kiln::client {
namespace {

constexpr size_t kMaxListBytes = 1 << 20;

// Takes an option such as "variants=all"; false: the word is no option. Arguments have "=" too, but
// after a comma.
StatusOr<bool> TakeOption(std::string_view word, TaskListEntry& task) {
  const size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
  if (equals == std::string_view::npos) return false;
  if (name == "network") {
    task.network = value;
    return true;
  }
  if (name != "variants") return false;
  task.variants = value;
  if (value == kDirectVariants || value == kWinogradVariants || value == kAllVariants) return true;
  return InvalidArgument("found 'variants={}', expected direct, winograd or all", value);
}

StatusOr<TaskListEntry> ParseLine(const std::string& line, const std::string& folder) {
  std::istringstream in(line);
  std::string weight, excess;
  TaskListEntry task;
  WorkloadArguments& arguments = task.arguments;
  in >> weight >> arguments.op;
  std::string* const places[] = {&arguments.args, &arguments.epilogue, &excess};
  size_t place = 0;
  for (std::string word; in >> word;) {
    KILN_ASSIGN_OR_RETURN(const bool option, TakeOption(word, task));
    if (!option && place < std::size(places)) *places[place++] = word;
  }
  const char* end = weight.data() + weight.size();
  const auto [at, error] = std::from_chars(weight.data(), end, task.weight);
  const bool good = error == std::errc() && at == end && std::isfinite(task.weight);
  if (!good || task.weight <= 0) {
    return InvalidArgument(
        "found '{}', expected a weight above 0, as in "
        "`2 matmul 512,512,512 bias,relu`",
        weight);
  }
  if (arguments.op.empty()) {
    return InvalidArgument("found a weight alone, expected an operator or a text file after it");
  }
  if (!excess.empty()) {
    return InvalidArgument(
        "found '{}', expected the end of the line after weight, operator, arguments and epilogue",
        excess);
  }
  if (IsTextFile(arguments.op) && arguments.op[0] != '/' && !folder.empty()) {
    arguments.op = folder + "/" + arguments.op;
  }
  // An operator that cannot be loaded is reported with its line.
  KILN_RETURN_IF_ERROR(LoadWorkload(arguments).status());
  return task;
}

}  // namespace

StatusOr<std::vector<TaskListEntry>> ParseTaskList(std::string_view text, const std::string& name,
                                                   const std::string& folder) {
  std::vector<TaskListEntry> tasks;
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    line.resize(std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    StatusOr<TaskListEntry> task = ParseLine(line, folder);
    if (!task.ok()) return InvalidArgument("{}:{}: {}", name, number, Message(task.status()));
    tasks.push_back(*std::move(task));
  }
  if (tasks.empty()) {
    return InvalidArgument("{} lists no task, expected lines like `2 matmul 512,512,512`", name);
  }
  return tasks;
}

StatusOr<std::vector<TaskListEntry>> LoadTaskList(const std::string& path) {
  KILN_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxListBytes));
  const size_t slash = path.rfind('/');
  return ParseTaskList(text, path, slash == std::string::npos ? "" : path.substr(0, slash));
}

}  // namespace kiln::client
