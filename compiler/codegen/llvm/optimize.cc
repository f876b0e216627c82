#include "compiler/codegen/llvm/optimize.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Transforms/IPO/MergeFunctions.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include <algorithm>

#include "base/status.h"
#include "compiler/codegen/llvm/block_memory.h"
#include "compiler/codegen/llvm/machine.h"
#include "compiler/codegen/llvm/minimum_maximum.h"
#include "compiler/codegen/llvm/prefetch_weights.h"
#include "compiler/codegen/llvm/transpose_loads.h"

namespace kiln::codegen {
namespace {
// The dependence analysis behind LLVM's vectorizer looks at pairs of accesses. A loop with more
// accesses than this is one that the schedule unrolled, and never a fast one.
constexpr int kMaxAccessesToVectorize = 128;
// LLVM's vectorizer (19) follows all ways through the values that meet behind conditions. Their
// number doubles with each such value, where one selects the next. The loop of 3 steps of an argmax
// has 6.
constexpr int kMaxAccessPairsToVectorize = 12;
// In modules with at least this many functions, equal functions are merged into one. Chains of
// operators have thousands of functions of a few kinds, and each takes milliseconds to compile. In
// smaller modules all functions keep their names, so that people can find them.
constexpr int kMinAccessesToMerge = 128;
// Passes that look for memory dependences across blocks skip larger functions.
constexpr unsigned kMaxInstructionsToSearch = 3000;

bool IsVectorAccess(const llvm::Instruction& instruction) {
  return llvm::getLoadStorePointerOperand(&instruction) != nullptr &&
         llvm::getLoadStoreType(const_cast<llvm::Instruction*>(&instruction))->isVectorTy();
}

bool HasVectorAccess(const llvm::BasicBlock& block) {
  return std::any_of(block.begin(), block.end(), IsVectorAccess);
}

int CountAccesses(const llvm::BasicBlock& block) {
  return static_cast<int>(std::count_if(block.begin(), block.end(), [](const auto& instruction) {
    return llvm::getLoadStorePointerOperand(&instruction) != nullptr;
  }));
}

// Counts the values that meet behind conditions of the loop's body.
int CountMeetings(const llvm::Loop& loop) {
  int count = 0;
  for (const llvm::BasicBlock* block : loop.blocks()) {
    if (block == loop.getHeader()) continue;
    count += static_cast<int>(std::ranges::distance(block->phis()));
  }
  return count;
}

// Tells whether the loop reduces by minimum or maximum: one of its calls takes the value of the
// iteration before.
bool ReducesByMinimumOrMaximum(const llvm::Loop& loop) {
  for (const llvm::PHINode& carried : loop.getHeader()->phis()) {
    for (const llvm::User* user : carried.users()) {
      const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(user);
      if (call != nullptr && loop.contains(call) &&
          (call->getIntrinsicID() == llvm::Intrinsic::minimum ||
           call->getIntrinsicID() == llvm::Intrinsic::maximum))
        return true;
    }
  }
  return false;
}

// Tells whether a load of the loop reads elements that are not neighbours in memory from one
// iteration to the next. A vector load of such elements would be a gather.
bool HasStridedLoad(const llvm::Loop& loop, llvm::ScalarEvolution& evolution) {
  const llvm::DataLayout& layout = loop.getHeader()->getModule()->getDataLayout();
  for (const llvm::BasicBlock* block : loop.blocks()) {
    for (const llvm::Instruction& instruction : *block) {
      const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
      if (load == nullptr) continue;
      const llvm::SCEV* address =
          evolution.getSCEV(const_cast<llvm::Value*>(load->getPointerOperand()));
      if (evolution.isLoopInvariant(address, &loop)) continue;
      const auto* steps = llvm::dyn_cast<llvm::SCEVAddRecExpr>(address);
      if (steps == nullptr || steps->getLoop() != &loop) return true;
      const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(steps->getStepRecurrence(evolution));
      const auto size = static_cast<int64_t>(layout.getTypeStoreSize(load->getType()));
      if (step == nullptr || step->getAPInt().getSExtValue() != size) return true;
    }
  }
  return false;
}

// Keeps LLVM's vectorizer away from loops that are vector code already, or are too long: it takes
// long to find that it can do nothing. A reduction by minimum or maximum with a stride stays
// scalar, too: gathers take twice the time of its loads.
struct MarkVectorLoopsPass : llvm::PassInfoMixin<MarkVectorLoopsPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    for (llvm::Loop* loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder()) {
      if (!loop->isInnermost()) continue;
      bool is_vector = false;
      int accesses = 0;
      for (const llvm::BasicBlock* block : loop->blocks()) {
        is_vector = is_vector || HasVectorAccess(*block);
        accesses += CountAccesses(*block);
      }
      if (is_vector || accesses > kMaxAccessesToVectorize ||
          CountMeetings(*loop) > kMaxAccessPairsToVectorize ||
          (ReducesByMinimumOrMaximum(*loop) &&
           HasStridedLoad(*loop, analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)))) {
        llvm::addStringMetadataToLoop(loop, "llvm.loop.isvectorized", 1);
      }
    }
    return llvm::PreservedAnalyses::all();
  }
};

// Returns false for passes that cost much and find next to nothing. The generator makes vectors,
// and the scalar code beside them is not worth a search for more.
bool IsWorthRunning(llvm::StringRef pass, const llvm::Any& unit) {
  if (pass == "LoopLoadEliminationPass") return false;
  const auto* function = llvm::any_cast<const llvm::Function*>(&unit);
  if (function == nullptr) return true;
  if (pass == "SLPVectorizerPass") {
    return std::none_of((*function)->begin(), (*function)->end(), HasVectorAccess);
  }
  const bool searches = pass == "GVNPass" || pass == "DSEPass" || pass == "JumpThreadingPass";
  return !searches || (*function)->getInstructionCount() <= kMaxInstructionsToSearch;
}

// Sets an option of LLVM's command line, which is the only way to set it. Sets the initial value,
// because the linker in this process resets options to that.
void SetLimit(const char* name, unsigned value) {
  auto& options = llvm::cl::getRegisteredOptions();
  const auto option = options.find(name);
  KILN_CHECK(option != options.end(), "this LLVM has no option -{}", name);
  static_cast<llvm::cl::opt<unsigned>*>(option->second)->setInitialValue(value);
}

// Both limits are for searches that take quadratic time on large blocks.
void SetLimitsOnce() {
  [[maybe_unused]] static const bool set = [] {
    // Number of instructions to look back for the source of a load (LLVM's default: 100).
    // BlockMemoryPass has done this within the block already.
    SetLimit("memdep-block-scan-limit", 20);
    // Number of accesses whose order the scheduler before register allocation keeps apart (LLVM's
    // default: 1000).
    SetLimit("dag-maps-huge-region", 200);
    return true;
  }();
}

// Merges kernels of equal code into one function, before anything else is done with them. This is
// safe because no code compares their addresses.
void MergeEqualFunctions(llvm::Module& module, llvm::ModuleAnalysisManager& analyses) {
  const auto defined = std::ranges::count_if(
      module, [](const llvm::Function& function) { return !function.isDeclaration(); });
  if (defined < kMinAccessesToMerge) return;
  for (llvm::Function& function : module) {
    if (function.hasLocalLinkage()) function.setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  }
  llvm::MergeFunctionsPass().run(module, analyses);
}

void AddEarlyPasses(llvm::ModulePassManager& passes, llvm::OptimizationLevel) {
  llvm::FunctionPassManager early;
  early.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  early.addPass(llvm::EarlyCSEPass());
  early.addPass(BlockMemoryPass());
  // Values that were made of one load have become equal.
  early.addPass(llvm::EarlyCSEPass());
  early.addPass(TransposeLoadsPass());
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(early)));
}

// LLVM has expanded short loops before these passes.
void AddLatePasses(llvm::FunctionPassManager& passes, llvm::OptimizationLevel) {
  passes.addPass(TransposeLoadsPass());
  passes.addPass(MarkVectorLoopsPass());
}
}  // namespace

void OptimizeModule(llvm::TargetMachine& machine, llvm::Module& module) {
  SetLimitsOnce();
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = true;
  tuning.LoopInterleaving = true;
  llvm::PassInstrumentationCallbacks callbacks;
  callbacks.registerShouldRunOptionalPassCallback(IsWorthRunning);
  llvm::PassBuilder builder(&machine, tuning, std::nullopt, &callbacks);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.registerPipelineEarlySimplificationEPCallback(AddEarlyPasses);
  builder.registerVectorizerStartEPCallback(AddLatePasses);
  builder.registerOptimizerLastEPCallback(
      [&](llvm::ModulePassManager& passes, llvm::OptimizationLevel) {
        llvm::FunctionPassManager last;
        last.addPass(PrefetchWeightsPass());
        last.addPass(MinimumMaximumPass(HasMaskedAccess(machine)));
        passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(last)));
      });
  MergeEqualFunctions(module, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
  WidenOddVectors(machine, module);
}

}  // namespace kiln::codegen
