// kiln model trains, keeps, shows and queries cost models.
#pragma once

#include "client/cli/command.h"

namespace kiln::client {

Run AddModelTrain(CLI::App& train, SessionFlags& session);
Run AddModelShow(CLI::App& show, SessionFlags& session);
Run AddModelTest(CLI::App& test, SessionFlags& session);
Run AddModelPredict(CLI::App& predict, SessionFlags& session);
Run AddModelList(CLI::App& list, SessionFlags& session);
Run AddModelGet(CLI::App& get, SessionFlags& session);
Run AddModelPut(CLI::App& put, SessionFlags& session);
Run AddModelDelete(CLI::App& remove, SessionFlags& session);

}  // namespace kiln::client
