// Package scale derives runs with many ranks from a recorded run with few, and replays them.
//
// Copies of the recorded run may lie side by side (tiles). The tiles don't communicate, so
// they say nothing of the network; they say what the nodes of a large machine pin together.
//
// Strong scaling keeps the problem and divides it among more ranks, as the program itself does: each
// program has a rule for its decomposition, which gives the peers and the sizes of the buffers. The
// rules follow NPB 3.4-MPI (FT/ft.f, IS/is.c, CG/cg.f, make_set.f, define.f and the solvers of BT and SP). The
// order of calls, the call sites and the compute phases are those of the recording; compute phases
// shrink as the share of each rank does. Programs without a rule are refused: in LU and MG, a rank
// within the grid has neighbours on sides where none of four ranks has one, so the recording lacks
// what it does.
//
// Weak scaling lets the problem grow with the ranks: FT's grid doubles with them, and the cubes of BT and SP have as many
// points for each rank as was recorded. IS and CG have no larger problem between their classes.
//
// FT's problem may also be of a larger class than the recorded one. Its buffers grow with the points of its grid, and its
// compute phases as n log n of them, which is what transforming them takes. (FT.C of four ranks computes 1.6 times as long as
// what is derived from FT.B.)
//
// # Memory
//
// A Base holds the records of the recorded ranks. A derived rank makes its records one call at a
// time from them, so the number of derived ranks does not matter.
package scale
