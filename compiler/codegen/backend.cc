#include "compiler/codegen/backend.h"

namespace kiln::codegen {

Status Backend::Check(const ir::Program&, const target::Target&,
                      const target::HardwareParams&) const {
  return OkStatus();
}

StatusOr<GeneratedSource> Backend::Generate(const ir::Program&, const target::Target&,
                                            const CompileOptions&, CompileTimes&) const {
  return Unimplemented("target {} has no source that another compiler takes", kind().name);
}

StatusOr<std::string> Backend::Show(std::string_view form, const ir::Program&,
                                    const target::Target&, const ir::PassInstruments*) const {
  return Unimplemented("target {} has no {} form", kind().name, form);
}

Status Backend::RunPasses(const ir::Program&, const ir::PassInstruments*) const {
  return OkStatus();
}

}  // namespace kiln::codegen
