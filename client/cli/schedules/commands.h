// The commands about schedules that were not measured: chosen by the declaration, of templates, and
// the choice that a computation gets where nothing is searched.
#pragma once

#include "client/cli/command.h"

namespace kiln::client {

Run AddTemplates(CLI::App& templates, SessionFlags& session);
Run AddSchedule(CLI::App& schedule, SessionFlags& session);

// kiln choice ...
Run AddChoiceQuery(CLI::App& query, SessionFlags& session);
Run AddChoicePin(CLI::App& pin, SessionFlags& session);
Run AddChoiceUnpin(CLI::App& unpin, SessionFlags& session);
Run AddChoiceList(CLI::App& list, SessionFlags& session);

}  // namespace kiln::client
