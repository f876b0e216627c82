// Protects this process from others of its user, and says which process the kernel ends when memory
// is short. Linux.
#pragma once

namespace kiln {

// From now on no process without CAP_SYS_PTRACE can trace this process, or read its memory, its
// descriptors or its environment through /proc, and it leaves no core file. Its files in /proc
// belong to root. Programs that it starts begin unprotected: each calls this for itself before it
// reads a secret. The protection survives a change of the user. Costs a system call.
void HideProcess();

// Values for SetOomScore: how willingly the kernel ends a process of ours when memory is short. A
// daemon has 0, or the score that its supervisor gave it. This one is for compilers, and for
// processes that check a program.
inline constexpr int kOomScoreOfBuild = 500;
// Score of a candidate's process, which ends before all others.
inline constexpr int kOomScoreOfProgram = 1000;

// Sets the score of this process and of processes that it starts. Best effort: without /proc
// nothing changes.
void SetOomScore(int score);

}  // namespace kiln
