#include "scheduler/daemon.h"

int main(int argc, char** argv) { return kiln::scheduler::SchedulerMain(argc, argv); }
