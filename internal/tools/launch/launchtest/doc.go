// Package launchtest makes stand-ins for launchers, MPI programs and the
// preload library, for tests: nothing of MPI needs to be installed, only a C
// compiler. The launchers give their ranks no variable but those that their
// options name, and write down how they were called.
package launchtest
