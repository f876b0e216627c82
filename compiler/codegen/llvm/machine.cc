#include "compiler/codegen/llvm/machine.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "compiler/codegen/llvm/llvm.h"

namespace kiln::codegen {
namespace {
std::string OptionOr(const target::Target& target, const std::string& name,
                     const std::string& otherwise) {
  const auto it = target.options.find(name);
  return it == target.options.end() || it->second.empty() ? otherwise : it->second;
}

void InitializeLlvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
}

StatusOr<const llvm::Target*> FindFamily(const std::string& triple) {
  InitializeLlvm();
  std::string error;
  const llvm::Target* family = llvm::TargetRegistry::lookupTarget(triple, error);
  const llvm::Triple parsed(triple), host(llvm::sys::getProcessTriple());
  if (family == nullptr || parsed.getArch() != host.getArch() || !parsed.isOSLinux()) {
    return InvalidArgument(
        "no code can be made for '{}': -mtriple must be a Linux on this machine's processor "
        "family, like '{}'",
        triple, host.str());
  }
  return family;
}

std::string TripleOf(const target::Target& target) {
  return OptionOr(target, "mtriple", llvm::sys::getProcessTriple());
}

// Returns features that the host has and its CPU model lacks, or the other way round (hypervisors
// hide some): "-amx-int8,+xyz".
std::string HostDifferences(const llvm::Target& family, const std::string& triple,
                            const std::string& cpu) {
  const std::unique_ptr<llvm::MCSubtargetInfo> model(family.createMCSubtargetInfo(triple, cpu, ""));
  const auto host = llvm::sys::getHostCPUFeatures();
  std::map<std::string, bool> differences;
  for (const auto& feature : host) {
    const std::string name = feature.getKey().str();
    if (model->checkFeatures("+" + name) != feature.getValue())
      differences[name] = feature.getValue();
  }
  std::string text;
  for (const auto& [name, on] : differences) {
    text += (text.empty() ? "" : ",") + std::string(on ? "+" : "-") + name;
  }
  return text;
}

Status CheckCpuName(const llvm::Target& family, const std::string& triple, const std::string& cpu) {
  const std::unique_ptr<llvm::MCSubtargetInfo> model(family.createMCSubtargetInfo(triple, "", ""));
  if (model->isCPUStringValid(cpu)) return OkStatus();
  return InvalidArgument(
      "unknown -mcpu '{}': expected 'native', 'x86-64-v3', 'skylake-avx512', 'znver4' or another "
      "name of llc-19 -mcpu=help",
      cpu);
}

Status CheckAttributes(const llvm::Target& family, const std::string& triple,
                       const std::string& attributes) {
  const std::unique_ptr<llvm::MCSubtargetInfo> model(family.createMCSubtargetInfo(triple, "", ""));
  const auto known = model->getAllProcessorFeatures();
  llvm::SmallVector<llvm::StringRef> features;
  llvm::StringRef(attributes).split(features, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef feature : features) {
    const llvm::StringRef name = feature.drop_front();
    const bool signed_name = feature.front() == '+' || feature.front() == '-';
    const auto it =
        std::find_if(known.begin(), known.end(), [&](const auto& k) { return name == k.Key; });
    if (!signed_name || it == known.end()) {
      return InvalidArgument(
          "unknown -mattr '{}': expected a comma-separated list like '+avx2,-avx512f'",
          feature.str());
    }
  }
  return OkStatus();
}

bool HasFeature(const llvm::TargetMachine& machine, const std::string& name) {
  return machine.getMCSubtargetInfo()->checkFeatures("+" + name);
}

int WidestVectorBytes(const llvm::TargetMachine& machine) {
  if (HasFeature(machine, "avx512f")) return 64;
  return HasFeature(machine, "avx") ? 32 : 16;
}

// Returns 0 if the target leaves the width open.
int WantedVectorBytes(const target::Target& target) {
  return target.Option("vector-width").empty()
             ? 0
             : target::DefaultHardware(target, 1).vector_unit_bytes;
}

Status CheckVectorWidth(const target::Target& target) {
  const int wanted = WantedVectorBytes(target);
  if (wanted == 0) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const llvm::TargetMachine* machine, FindMachine(target));
  const int widest = WidestVectorBytes(*machine);
  if (wanted < 32 && widest >= 32) {
    return InvalidArgument(
        "target option -vector-width={}: LLVM's code for processors with AVX has vectors of 256 "
        "bits, expected 256 or more; -mattr=-avx leaves AVX out",
        8 * wanted);
  }
  if (wanted <= widest) return OkStatus();
  return InvalidArgument(
      "target option -vector-width={}: {} has vectors of {} bits, expected that or less",
      8 * wanted, target.Option("mcpu"), 8 * widest);
}
}  // namespace

bool HasMaskedAccess(const llvm::TargetMachine& machine) {
  return HasFeature(machine, "avx512f") && HasFeature(machine, "avx512vl");
}

StatusOr<target::Target> ResolveCpu(const target::Target& target) {
  if (target.kind != &target::kLlvm) {
    return InvalidArgument("the target is no CPU: expected 'llvm -mcpu=...'");
  }
  target::Target resolved = target;
  const std::string triple = TripleOf(target);
  KILN_ASSIGN_OR_RETURN(const llvm::Target* family, FindFamily(triple));
  const std::string cpu = OptionOr(target, "mcpu", "native");
  const std::string attributes = OptionOr(target, "mattr", "");
  if (cpu == "native") {
    resolved.options["mcpu"] = llvm::sys::getHostCPUName().str();
    std::string differences = HostDifferences(*family, triple, resolved.options["mcpu"]);
    if (!attributes.empty()) differences += (differences.empty() ? "" : ",") + attributes;
    if (!differences.empty()) resolved.options["mattr"] = differences;
  }
  KILN_RETURN_IF_ERROR(CheckCpuName(*family, triple, resolved.options["mcpu"]));
  KILN_RETURN_IF_ERROR(CheckAttributes(*family, triple, attributes));
  KILN_RETURN_IF_ERROR(CheckVectorWidth(resolved));
  return resolved;
}

StatusOr<std::vector<std::string>> CpuFeaturesUsed(const target::Target& target,
                                                   std::span<const std::string_view> features) {
  KILN_ASSIGN_OR_RETURN(const target::Target resolved, ResolveCpu(target));
  KILN_ASSIGN_OR_RETURN(const llvm::TargetMachine* machine, FindMachine(resolved));
  std::vector<std::string> used;
  for (std::string_view feature : features) {
    if (HasFeature(*machine, std::string(feature))) used.emplace_back(feature);
  }
  return used;
}

StatusOr<llvm::TargetMachine*> FindMachine(const target::Target& target) {
  const std::string triple = TripleOf(target);
  const std::string cpu = OptionOr(target, "mcpu", "");
  const std::string features = OptionOr(target, "mattr", "");
  KILN_ASSIGN_OR_RETURN(const llvm::Target* family, FindFamily(triple));
  static auto* machines = new std::map<std::string, std::unique_ptr<llvm::TargetMachine>>;
  std::unique_ptr<llvm::TargetMachine>& machine = (*machines)[triple + ' ' + cpu + ' ' + features];
  if (machine == nullptr) {
    llvm::TargetOptions options;
    // The flags on the operations decide.
    options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
    machine.reset(family->createTargetMachine(triple, cpu, features, options, llvm::Reloc::PIC_,
                                              std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  }
  if (machine == nullptr) return Internal("LLVM made no target machine for '{}'", triple);
  return machine.get();
}

CpuFeatures FeaturesOf(llvm::TargetMachine& machine, const target::Target& target) {
  CpuFeatures features;
  features.vector_bytes = WidestVectorBytes(machine);
  if (const int wanted = WantedVectorBytes(target); wanted > 0)
    features.vector_bytes = std::min(features.vector_bytes, wanted);
  features.masked_access = HasMaskedAccess(machine);
  features.half_convert = HasFeature(machine, "f16c") || HasFeature(machine, "avx512f");
  return features;
}

void PrepareModule(llvm::TargetMachine& machine, const CpuFeatures& features,
                   llvm::Module& module) {
  module.setTargetTriple(machine.getTargetTriple().str());
  module.setDataLayout(machine.createDataLayout());
  module.setPICLevel(llvm::PICLevel::BigPIC);
  const std::string width = std::to_string(8 * features.vector_bytes);
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr(llvm::Attribute::NoUnwind);
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    function.addFnAttr("prefer-vector-width", width);
    function.addFnAttr("min-legal-vector-width", width);
  }
}

namespace {
// Returns the vector type of an access to widen. Null: the access stays.
llvm::FixedVectorType* OddVector(llvm::Type* type) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  if (vector == nullptr) return nullptr;
  const unsigned lanes = vector->getNumElements();
  const unsigned bits = vector->getScalarSizeInBits();
  const bool is_power = (lanes & (lanes - 1)) == 0;
  return is_power || lanes < 3 || (bits != 32 && bits != 64) ? nullptr : vector;
}

// Widens one access of `vector` to `wide` lanes with a constant mask.
class OddAccess {
 public:
  OddAccess(llvm::Instruction& access, llvm::FixedVectorType* vector)
      : builder_(&access), access_(access), lanes_(vector->getNumElements()) {
    unsigned wide = 1;
    while (wide < lanes_) wide *= 2;
    type_ = llvm::FixedVectorType::get(vector->getElementType(), wide);
    std::vector<llvm::Constant*> mask;
    for (unsigned l = 0; l < wide; ++l) {
      mask.push_back(builder_.getInt1(l < lanes_));
      widen_.push_back(l < lanes_ ? static_cast<int>(l) : -1);
    }
    for (unsigned l = 0; l < lanes_; ++l) narrow_.push_back(static_cast<int>(l));
    mask_ = llvm::ConstantVector::get(mask);
  }
  void WidenLoad(llvm::LoadInst& load) {
    auto* wide = builder_.CreateMaskedLoad(type_, load.getPointerOperand(), load.getAlign(), mask_,
                                           llvm::PoisonValue::get(type_));
    wide->copyMetadata(access_, {llvm::LLVMContext::MD_alias_scope, llvm::LLVMContext::MD_noalias});
    load.replaceAllUsesWith(builder_.CreateShuffleVector(wide, narrow_));
  }
  void WidenStore(llvm::StoreInst& store) {
    llvm::Value* value = builder_.CreateShuffleVector(store.getValueOperand(), widen_);
    auto* wide =
        builder_.CreateMaskedStore(value, store.getPointerOperand(), store.getAlign(), mask_);
    wide->copyMetadata(access_, {llvm::LLVMContext::MD_alias_scope, llvm::LLVMContext::MD_noalias});
  }

 private:
  llvm::IRBuilder<> builder_;
  llvm::Instruction& access_;
  unsigned lanes_;
  llvm::FixedVectorType* type_;
  llvm::Constant* mask_;
  std::vector<int> widen_, narrow_;
};
}  // namespace

void WidenOddVectors(llvm::TargetMachine& machine, llvm::Module& module) {
  if (!HasMaskedAccess(machine)) return;
  std::vector<llvm::Instruction*> odd;
  for (llvm::Function& function : module) {
    for (llvm::BasicBlock& block : function) {
      for (llvm::Instruction& instruction : block) {
        if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
          if (load->isSimple() && OddVector(load->getType()) != nullptr) odd.push_back(load);
        } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
          if (store->isSimple() && OddVector(store->getValueOperand()->getType()) != nullptr)
            odd.push_back(store);
        }
      }
    }
  }
  for (llvm::Instruction* access : odd) {
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(access)) {
      OddAccess(*load, OddVector(load->getType())).WidenLoad(*load);
    } else {
      auto* store = llvm::cast<llvm::StoreInst>(access);
      OddAccess(*store, OddVector(store->getValueOperand()->getType())).WidenStore(*store);
    }
    access->eraseFromParent();
  }
}

StatusOr<std::string> EmitCode(llvm::TargetMachine& machine, llvm::Module& module,
                               llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> code;
  llvm::raw_svector_ostream out(code);
  // Does the same as addPassesToEmitFile without the scheduler behind register allocation. That
  // scheduler takes half of the time on unrolled bodies, and processors that reorder instructions
  // themselves gain nothing from it.
  auto& target = static_cast<llvm::LLVMTargetMachine&>(machine);
  llvm::legacy::PassManager passes;
  auto* info = new llvm::MachineModuleInfoWrapperPass(&target);
  llvm::TargetPassConfig* config = target.createPassConfig(passes);
  config->disablePass(&llvm::PostRASchedulerID);
  passes.add(config);
  passes.add(info);
  if (config->addISelPasses()) {
    return Internal("LLVM cannot emit code for '{}'", machine.getTargetTriple().str());
  }
  config->addMachinePasses();
  config->setInitialized();
  if (target.addAsmPrinter(passes, out, nullptr, type, info->getMMI().getContext())) {
    return Internal("LLVM cannot emit code for '{}'", machine.getTargetTriple().str());
  }
  passes.add(llvm::createFreeMachineFunctionPass());
  passes.run(module);
  return std::string(code.begin(), code.end());
}

}  // namespace kiln::codegen
