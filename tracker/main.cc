#include "tracker/daemon.h"

int main(int argc, char** argv) { return kiln::tracker::TrackerMain(argc, argv); }
