// Stubs for --config=static: functions that lld refers to and Kiln never reaches, since it gives
// lld x86-64 objects only and no bitcode. lld initializes every target that LLVM was built with, to
// optimize at link time. The real functions would double the binary. A newer LLVM with one more
// target fails to link here, with the name to add.
#include <llvm/Passes/PassPlugin.h>

#define TARGET(name)                             \
  void LLVMInitialize##name##AsmPrinter(void) {} \
  void LLVMInitialize##name##Target(void) {}     \
  void LLVMInitialize##name##TargetInfo(void) {} \
  void LLVMInitialize##name##TargetMC(void) {}

#define TARGET_AND_PARSER(name) \
  TARGET(name)                  \
  void LLVMInitialize##name##AsmParser(void) {}

extern "C" {

TARGET(NVPTX)
TARGET(XCore)
TARGET_AND_PARSER(AArch64)
TARGET_AND_PARSER(AMDGPU)
TARGET_AND_PARSER(ARM)
TARGET_AND_PARSER(AVR)
TARGET_AND_PARSER(BPF)
TARGET_AND_PARSER(Hexagon)
TARGET_AND_PARSER(Lanai)
TARGET_AND_PARSER(LoongArch)
TARGET_AND_PARSER(M68k)
TARGET_AND_PARSER(MSP430)
TARGET_AND_PARSER(Mips)
TARGET_AND_PARSER(PowerPC)
TARGET_AND_PARSER(RISCV)
TARGET_AND_PARSER(Sparc)
TARGET_AND_PARSER(SystemZ)
TARGET_AND_PARSER(VE)
TARGET_AND_PARSER(WebAssembly)
TARGET_AND_PARSER(Xtensa)

}  // extern "C"

// Stub for Polly, which Debian's LLVM loads into every pipeline of a link-time optimization.
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "Polly", "none", [](llvm::PassBuilder&) {}};
}
