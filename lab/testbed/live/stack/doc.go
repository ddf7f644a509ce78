// Package stack knows the MPI stacks that run on the software RDMA device
// (lab/testbed/softverbs): an MPI library, the transport below it, and the settings
// under which nothing but the device carries data between the ranks.
//
// A Job is a value: stack, ranks, program, and whether the transport keeps its
// own registration cache. Pinwheel is a command before the launcher, as for its
// users: Job.Under is "pinwheel run" with options. Start starts the job, Wait
// bounds it, and Result says what every rank did on the device.
//
// # How ranks get the device
//
// LD_LIBRARY_PATH and LD_PRELOAD go through the launcher's own option (-x, -genv),
// so that neither the launcher nor a shell sees them. All other settings are in
// the environment of the launcher, which runs its ranks on this machine with it.
//
// # Caches
//
// A Job has the transport's cache on unless NoCache is set. Then it has the
// variables that "pinwheel run" sets (package launch). A test counts the
// registrations of both, and so shows that the settings work.
//
// # Caveats
//
// Commands and files are those of Debian's packages.
package stack
