#include "client/jobs/kernel_source.h"

#include "base/file/file.h"
#include "client/jobs/at_place.h"
#include "compiler/handwritten/computation.h"

namespace kiln::client {
namespace {

using handwritten::KernelText;

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Returns the path of a file that another file names.
std::string Beside(const std::string& path, const std::string& name) {
  const size_t slash = path.rfind('/');
  if (slash == path.npos || name.starts_with('/')) return name;
  return path.substr(0, slash + 1) + name;
}

StatusOr<Workload> ComputationOf(const KernelText& text, const std::string& space) {
  const handwritten::ComputationSource& from = text.computation;
  if (text.reference) {
    Workload workload{.dag = nullptr, .description = {}};
    const StatusOr<dag::DagPtr> declared = handwritten::DeclaredComputation(text);
    if (!declared.ok()) return AtPlace(space, declared.status());
    workload.dag = *declared;
    return workload;
  }
  WorkloadArguments arguments{.op = from.op, .args = from.args};
  if (!from.file.empty()) arguments.op = Beside(space, from.file);
  if (!from.dtype.empty()) arguments.dtype = from.dtype;
  arguments.out_dtype = from.out_dtype;
  arguments.epilogue = from.epilogue;
  if (!from.file.empty() && !IsTextFile(arguments.op)) arguments.op = "./" + arguments.op;
  const StatusOr<Workload> workload = LoadWorkload(arguments);
  // The error of a text file says already where it is.
  if (!workload.ok() && from.file.empty())
    return InvalidArgument("{}: operator: {}", space, Message(workload.status()));
  return workload;
}

}  // namespace

StatusOr<KernelSource> LoadKernelSource(const std::string& source, const std::string& space) {
  KILN_ASSIGN_OR_RETURN(const handwritten::Language language, handwritten::LanguageOfFile(source));
  if (space.empty()) {
    return InvalidArgument(
        "{} is a kernel: say --space FILE.toml, which describes its parameters, launch and "
        "computation (docs/howto/tune-a-kernel.md)",
        source);
  }
  KILN_ASSIGN_OR_RETURN(std::string code, ReadFile(source, handwritten::kMaxKernelTextBytes));
  KILN_ASSIGN_OR_RETURN(const std::string toml, ReadFile(space, handwritten::kMaxKernelTextBytes));
  StatusOr<KernelText> text =
      handwritten::ParseSpaceFile(toml, language, NameOf(source), std::move(code));
  if (!text.ok()) return AtPlace(space, text.status());
  if (text->reference && text->reference->code.source.empty()) {
    handwritten::Code& reference = text->reference->code;
    KILN_ASSIGN_OR_RETURN(reference.source, ReadFile(Beside(space, reference.file),
                                                     handwritten::kMaxKernelTextBytes));
  }
  KernelSource loaded{.text = *std::move(text), .workload = {}};
  KILN_ASSIGN_OR_RETURN(loaded.workload, ComputationOf(loaded.text, space));
  const std::string of = loaded.workload.description;
  loaded.workload.description = fmt::format("{} {}", NameOf(source), loaded.text.code.function) +
                                (of.empty() ? std::string() : fmt::format(", {}", of));
  // All sources of the kernel have to fit one text.
  KILN_RETURN_IF_ERROR(Annotate(
      handwritten::ParseKernelText(handwritten::PrintKernelText(loaded.text)).status(), space));
  return loaded;
}

std::string TargetOfKernel(const std::string& source, const std::string& given, bool is_default) {
  const auto language = handwritten::LanguageOfFile(source);
  if (!is_default || !language.ok()) return given;
  return *language == handwritten::Language::kCuda ? "cuda" : "llvm";
}

}  // namespace kiln::client
