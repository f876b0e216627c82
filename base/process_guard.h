// What this process keeps from others of its user, and which one the kernel ends when memory is
// short. Linux.
#pragma once

namespace kiln {

// From now on no process without CAP_SYS_PTRACE can trace this one or read its memory, its
// descriptors or its environment through /proc, and it leaves no core file. Its files in /proc
// belong to root. Programs that it starts begin without this: each says so for itself, before it
// reads a secret. A change of the user keeps it. Costs a system call.
void HideProcess();

// How willingly the kernel ends a process of ours when memory is short, for SetOomScore. A daemon
// has 0, or what its supervisor gave it.
inline constexpr int kOomScoreOfBuild = 500;     // compilers, and who judges a program
inline constexpr int kOomScoreOfProgram = 1000;  // a candidate: it goes before all others

// Of this process and those that it starts. Best effort: without /proc nothing changes.
void SetOomScore(int score);

}  // namespace kiln
